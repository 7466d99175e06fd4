// What the tests of files share: bytes in and out of memory, expected refusals, a folder that goes away.
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "io/load.h"
#include "io/safetensors.h"

namespace strata::io {

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(bool(in)) << path << ": run from the root of the repository";
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

class StringWriter final : public Writer {
 public:
  std::string bytes;

 private:
  void put(const char* data, uint64_t n) override { bytes.append(data, n); }
};
inline std::string package_bytes(const Value& v) {
  StringWriter w;
  save(v, w);
  return w.bytes;
}

inline Value load_bytes(const std::string& bytes) { return load(*Source::memory(bytes, "file"), {}); }

// Loads, or raises an Error that is no internal one; returns its text, empty where it loads.
inline std::string refusal(const std::string& bytes) {
  try {
    load_bytes(bytes);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime) << e.message();
    EXPECT_NE(e.message(), "");
    return e.message();
  }
}

inline void expect_refused(const std::string& bytes, const std::string& part) {
  std::string text = refusal(bytes);
  EXPECT_NE(text.find(part), std::string::npos) << "expected '" << part << "', got '" << text << "'";
}

struct Folder {
  std::string path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "strata-io-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  size_t count() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
  }
};

template <class T>
void append(std::string& s, T v) {
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}

struct ZipItem {
  std::string name, data;
  uint16_t method = 0;
  uint16_t flags = 0;
  uint64_t claimed = UINT64_MAX;  // another unpacked size than the true one
};
// A zip archive of stored entries (or of data that is already deflated).
inline std::string make_zip(const std::vector<ZipItem>& items, bool zip64 = false) {
  std::string out, directory;
  for (const ZipItem& item : items) {
    uint64_t at = out.size(), size = item.claimed == UINT64_MAX ? item.data.size() : item.claimed;
    auto crc = uint32_t(crc32(0, reinterpret_cast<const Bytef*>(item.data.data()), uInt(item.data.size())));
    auto common = [&](std::string& s, bool wide) {
      append<uint16_t>(s, item.flags);
      append<uint16_t>(s, item.method);
      append<uint32_t>(s, 0);
      append<uint32_t>(s, crc);
      append<uint32_t>(s, wide ? 0xffffffff : uint32_t(item.data.size()));
      append<uint32_t>(s, wide ? 0xffffffff : uint32_t(size));
      append<uint16_t>(s, uint16_t(item.name.size()));
    };
    append<uint32_t>(out, 0x04034b50);
    append<uint16_t>(out, 20);
    common(out, false);
    append<uint16_t>(out, 0);
    out += item.name + item.data;
    append<uint32_t>(directory, 0x02014b50);
    append<uint32_t>(directory, 20 | 20 << 16);
    common(directory, zip64);
    append<uint16_t>(directory, zip64 ? 28 : 0);
    append<uint16_t>(directory, 0);
    append<uint64_t>(directory, 0);
    append<uint32_t>(directory, zip64 ? 0xffffffff : uint32_t(at));
    directory += item.name;
    if (zip64) {
      append<uint16_t>(directory, 1);
      append<uint16_t>(directory, 24);
      append<uint64_t>(directory, size);
      append<uint64_t>(directory, item.data.size());
      append<uint64_t>(directory, at);
    }
  }
  uint64_t offset = out.size();
  out += directory;
  if (zip64) {
    uint64_t record = out.size();
    append<uint32_t>(out, 0x06064b50);
    append<uint64_t>(out, 44);
    append<uint32_t>(out, 45 | 45 << 16);
    append<uint64_t>(out, 0);
    append<uint64_t>(out, items.size());
    append<uint64_t>(out, items.size());
    append<uint64_t>(out, directory.size());
    append<uint64_t>(out, offset);
    append<uint32_t>(out, 0x07064b50);
    append<uint32_t>(out, 0);
    append<uint64_t>(out, record);
    append<uint32_t>(out, 1);
  }
  append<uint32_t>(out, 0x06054b50);
  append<uint32_t>(out, 0);
  append<uint16_t>(out, zip64 ? 0xffff : uint16_t(items.size()));
  append<uint16_t>(out, zip64 ? 0xffff : uint16_t(items.size()));
  append<uint32_t>(out, zip64 ? 0xffffffff : uint32_t(directory.size()));
  append<uint32_t>(out, zip64 ? 0xffffffff : uint32_t(offset));
  append<uint16_t>(out, 0);
  return out;
}

}  // namespace strata::io
