// Relocatable objects (ELF64, x86-64) to code in memory: what a compiled kernel needs of a linker and no more. Every
// number of an object is checked before it is used: objects from disk are nobody's to trust.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::jit {

class DebuggerEntry;

// The memory of one loaded object: code that cannot be written, constants that can be neither written nor run, data
// that cannot be run. Unmapped with it.
class Image {
 public:
  // Raises Runtime where the object is not one, is cut or bent, or needs what is not offered. `lines`: debuggers are
  // told of it and of its table of lines. `title`: what profilers, where they ask, are told beside functions' names.
  explicit Image(std::string_view object, bool lines = false, std::string_view title = {});
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // A global function or object, or null.
  void* symbol(std::string_view name) const;
  const std::vector<std::string>& names() const { return names_; }  // of all of them, sorted
  size_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  size_t bytes_ = 0;
  std::vector<std::string> names_;
  std::vector<char*> addresses_;  // like names_
  std::unique_ptr<DebuggerEntry> entry_;
};

}  // namespace strata::jit
