// A reader of zip archives for untrusted files: stored and deflated entries, with zip64. Names are names only, never
// paths. Refused: encryption, archives of several parts, names that stand twice, entries that overlap, entries that
// claim to unpack to more than kMaxZipRatio times their size. Reference: PKWARE's APPNOTE.TXT 6.3.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "io/file.h"

namespace strata::io {

constexpr uint64_t kMaxZipRatio = 100;

struct ZipEntry {
  std::string name;
  uint64_t offset;  // of the data in the file
  uint64_t packed, size;
  uint32_t crc;
  bool deflated;
};

class ZipReader {
 public:
  explicit ZipReader(const Source& source);  // raises for what is no such archive; keeps the reference
  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;
  // The unpacked bytes, checked against their CRC.
  std::string text(const ZipEntry& entry) const;
  // The same as memory. Of a mapped file, stored entries are its own pages and their CRC is not checked.
  Ref<Storage> storage(const ZipEntry& entry) const;

 private:
  struct Directory {
    uint64_t offset, bytes, count;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void unpack(const ZipEntry& entry, void* to) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const Source& source_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace strata::io
