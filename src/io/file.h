// Files: whole or mapped for reading; writing is atomic (a new file beside the old one, synced, then renamed over it).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/storage.h"

namespace strata::io {

// The bytes of a file, mapped; alive as long as somebody holds it.
class MappedFile {
 public:
  static std::shared_ptr<MappedFile> open(const std::string& path);  // raises; FileNotFoundError's text for missing files
  ~MappedFile();
  const char* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::string_view view(uint64_t offset, uint64_t length) const;  // raises when it does not lie inside

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  uint64_t size_ = 0;
};

// Receives the content in pieces.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  void write(const void* data, uint64_t bytes);  // raises on errors and a full disk
  uint64_t position() const { return position_; }

 private:
  int fd_;
  uint64_t position_ = 0;
};

// Calls `fill` to write a temporary file in the same folder, syncs it and renames it to `path`. On any error the
// temporary file is removed and what was at `path` stays.
void write_atomically(const std::string& path, const std::function<void(Writer&)>& fill);

}  // namespace strata::io
