// Where bytes come from and go to. A Source is a file, a mapped file or memory; every access is checked against its
// size. A Writer takes bytes in order; files are written atomically (a new file beside the old one, synced, then
// renamed over it).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/storage.h"

namespace strata::io {

class Source : public std::enable_shared_from_this<Source> {
 public:
  // Reads when asked; storages are copies. Raises FileNotFound or Runtime errors.
  static std::shared_ptr<Source> file(const std::string& path);
  // Maps the file privately; storages lie in the mapping where their alignment allows, and writing to them does not
  // change the file. The file must not be cut while they live.
  static std::shared_ptr<Source> mapped(const std::string& path);
  // Bytes that stay where they are while the source is used; storages are copies.
  static std::shared_ptr<Source> memory(std::string_view bytes, std::string name);
  virtual ~Source() = default;

  const std::string& name() const { return name_; }  // for messages
  uint64_t size() const { return size_; }
  void check(uint64_t offset, uint64_t bytes) const;  // raises where they do not lie inside
  void read(uint64_t offset, void* to, uint64_t bytes) const;
  std::string text(uint64_t offset, uint64_t bytes) const;
  // Memory of these bytes, aligned to `alignment`.
  Ref<Storage> storage(uint64_t offset, uint64_t bytes, uint64_t alignment) const;
  // Whether storages are the file's own pages, of which most may never be read.
  virtual const char* pages() const { return nullptr; }
  // Raises "load: '<name>' <what>".
  [[noreturn]] void refuse(const std::string& what) const;

 protected:
  virtual void fetch(uint64_t offset, void* to, uint64_t bytes) const = 0;
  std::string name_;
  uint64_t size_ = 0;
};

class Writer {
 public:
  virtual ~Writer() = default;
  void write(const void* data, uint64_t bytes) {
    put(static_cast<const char*>(data), bytes);
    position_ += bytes;
  }
  uint64_t position() const { return position_; }

 protected:
  virtual void put(const char* data, uint64_t bytes) = 0;  // raises on errors and a full disk

 private:
  uint64_t position_ = 0;
};

// Calls `fill` to write a temporary file in the folder of `path`, syncs it and renames it to `path` (to what `path`
// points to, where it is a symbolic link). On any error the temporary file is removed and what was at `path` stays.
// A device or a pipe is written directly.
void write_atomically(const std::string& path, const std::function<void(Writer&)>& fill);

}  // namespace strata::io
