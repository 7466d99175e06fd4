// Where in the user's program something happened. A front end installs a provider; C++ programs have none. A mark is
// cheap to take (a pointer and a number) and is turned into text only when an error or a report needs it.
#pragma once
#include <cstdint>
#include <string>

namespace strata {

// One line of the user's program. `code` is owned by the provider and is kept alive by it for ever.
struct SourceMark {
  const void* code = nullptr;
  int32_t position = 0;
  explicit operator bool() const { return code != nullptr; }
};

struct SourceProvider {
  SourceMark (*take)() = nullptr;
  std::string (*text)(SourceMark mark) = nullptr;  // "file.py:12 in function"
  // Where the program is now, through its calls: "model.py:12 in forward < train.py:40 in step".
  std::string (*chain)() = nullptr;
};

void set_source_provider(SourceProvider provider);
SourceMark take_source_mark();
std::string source_chain();                // empty without a provider, or where it is nowhere
std::string source_text(SourceMark mark);  // "an unknown line" when there is no mark

}  // namespace strata
