// What turns a text into an object, in the order in which the service asks them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "jit/service/compile.h"

namespace strata::jit {

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Changes whenever the same text might give another object; known without opening or running anything.
  virtual std::string identity(lower::Isa isa, bool lines) const = 0;
  virtual How how() const = 0;
  virtual std::string name() const = 0;
  // Nothing, or why it cannot be used. May open it.
  virtual std::string open() = 0;
  // A relocatable object. Raises Value where the text is wrong.
  virtual std::string object(const Request& request) = 0;
};

std::unique_ptr<Compiler> clang_compiler(std::string* why);   // null where the plugin's file is not there
std::unique_ptr<Compiler> system_compiler(std::string* why);  // null where none is found
// A file as it is now: its path, size and time.
std::string file_identity(const std::string& path);
// Raises Value for a text that a compiler refused. `lines`: "LINE:COLUMN: error: what", and anything else.
[[noreturn]] void refuse_text(const std::string& text, const std::string& lines);

}  // namespace strata::jit
