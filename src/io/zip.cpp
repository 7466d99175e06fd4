#include "io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "io/checksum.h"

namespace strata::io {

namespace {

constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50,
                   kLocator64Mark = 0x07064b50;
constexpr uint64_t kPiece = 1 << 20;

template <class T>
T number(std::string_view s, uint64_t at) {
  T v;
  std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}

}  // namespace

void ZipReader::refuse(const std::string& what) const { source_.refuse("is no valid zip archive: " + what); }

ZipReader::ZipReader(const Source& source) : source_(source) { read_directory(find_directory()); }

const ZipEntry* ZipReader::find(const std::string& name) const {
  auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second];
}

ZipReader::Directory ZipReader::find_directory() const {
  uint64_t size = source_.size();
  if (size < kEndBytes) refuse("it is cut");
  // The end record stands last, before a comment of at most 65,535 bytes.
  uint64_t tail = std::min<uint64_t>(size, kEndBytes + 0xffff);
  std::string text = source_.text(size - tail, tail);
  uint64_t at = tail - kEndBytes;
  while (number<uint32_t>(text, at) != kEndMark || number<uint16_t>(text, at + 20) != tail - at - kEndBytes) {
    if (at == 0) refuse("its end is missing; the file is cut");
    --at;
  }
  if (number<uint16_t>(text, at + 4) != 0 || number<uint16_t>(text, at + 6) != 0) refuse("it has several parts");
  Directory d{number<uint32_t>(text, at + 16), number<uint32_t>(text, at + 12), number<uint16_t>(text, at + 10)};
  uint64_t end = size - tail + at;  // where the directory must end at the latest
  if (end >= kLocator64Bytes) {
    std::string locator = source_.text(end - kLocator64Bytes, kLocator64Bytes);
    if (number<uint32_t>(locator, 0) == kLocator64Mark) {
      uint64_t where = number<uint64_t>(locator, 8);
      if (number<uint32_t>(locator, 4) != 0 || number<uint32_t>(locator, 16) > 1) refuse("it has several parts");
      if (where > end - kLocator64Bytes || end - kLocator64Bytes - where < kEnd64Bytes)
        refuse("its zip64 end record lies outside");
      std::string record = source_.text(where, kEnd64Bytes);
      if (number<uint32_t>(record, 0) != kEnd64Mark) refuse("its zip64 end record is damaged");
      if (number<uint32_t>(record, 16) != 0 || number<uint32_t>(record, 20) != 0) refuse("it has several parts");
      d = {number<uint64_t>(record, 48), number<uint64_t>(record, 40), number<uint64_t>(record, 32)};
      end = where;
    }
  }
  if (d.offset > end || d.bytes > end - d.offset || d.count > d.bytes / kCentralBytes)
    refuse("its directory lies outside");
  return d;
}

void ZipReader::read_directory(const Directory& d) {
  std::string text = source_.text(d.offset, d.bytes);
  entries_.reserve(d.count);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  uint64_t at = 0;
  for (uint64_t i = 0; i < d.count; ++i) {
    if (text.size() - at < kCentralBytes || number<uint32_t>(text, at) != kCentralMark)
      refuse("its directory is damaged");
    uint16_t flags = number<uint16_t>(text, at + 8), method = number<uint16_t>(text, at + 10);
    ZipEntry e{};
    e.crc = number<uint32_t>(text, at + 16);
    e.packed = number<uint32_t>(text, at + 20);
    e.size = number<uint32_t>(text, at + 24);
    uint64_t name_bytes = number<uint16_t>(text, at + 28), extra = number<uint16_t>(text, at + 30);
    uint64_t comment = number<uint16_t>(text, at + 32), local = number<uint32_t>(text, at + 42);
    bool later_part = number<uint16_t>(text, at + 34) != 0;
    at += kCentralBytes;
    if (text.size() - at < name_bytes + extra + comment) refuse("its directory is damaged");
    e.name = text.substr(at, name_bytes);
    // Extra fields: what did not fit into 32 bits stands in field 1, in this order.
    uint64_t x = at + name_bytes, x_end = x + extra;
    while (x_end - x >= 4) {
      uint16_t id = number<uint16_t>(text, x), length = number<uint16_t>(text, x + 2);
      x += 4;
      if (length > x_end - x) refuse(str_cat("'", e.name, "' has a damaged extra field"));
      if (id == 1) {
        uint64_t y = x;
        for (uint64_t* field : {&e.size, &e.packed, &local}) {
          if (*field != 0xffffffff) continue;
          if (x + length - y < 8) refuse(str_cat("'", e.name, "' has a damaged zip64 field"));
          *field = number<uint64_t>(text, y);
          y += 8;
        }
      }
      x += length;
    }
    at += name_bytes + extra + comment;

    if (flags & 0x2041) refuse(str_cat("'", e.name, "' is encrypted"));
    if (method != 0 && method != Z_DEFLATED)
      refuse(str_cat("'", e.name, "' is packed with method ", method, "; expected stored or deflated"));
    e.deflated = method == Z_DEFLATED;
    if (later_part) refuse("it has several parts");
    if (!e.deflated && e.packed != e.size) refuse(str_cat("'", e.name, "' has two sizes"));
    if (e.size / kMaxZipRatio > e.packed + 64)
      refuse(str_cat("'", e.name, "' claims to unpack from ", e.packed, " to ", e.size, " bytes; the limit is ",
                     kMaxZipRatio, " times: unpack it and pack it anew without compression if you trust it"));
    if (local > d.offset || d.offset - local < kLocalBytes) refuse(str_cat("'", e.name, "' lies outside"));
    std::string head = source_.text(local, kLocalBytes);
    uint64_t local_name = number<uint16_t>(head, 26);
    e.offset = local + kLocalBytes + local_name + number<uint16_t>(head, 28);
    if (number<uint32_t>(head, 0) != kLocalMark || number<uint16_t>(head, 8) != method || local_name != name_bytes ||
        e.offset > d.offset || e.packed > d.offset - e.offset ||
        source_.text(local + kLocalBytes, name_bytes) != e.name)
      refuse(str_cat("'", e.name, "' is damaged: its two headers differ, or it lies outside"));
    if (!index_.emplace(e.name, entries_.size()).second) refuse(str_cat("the name '", e.name, "' stands twice"));
    ranges.emplace_back(local, e.offset + e.packed);
    entries_.push_back(std::move(e));
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) refuse("its entries overlap");
}

void ZipReader::unpack(const ZipEntry& e, void* to) const {
  if (!e.deflated) {
    source_.read(e.offset, to, e.size);
  } else {
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    struct End {
      z_stream* z;
      ~End() { inflateEnd(z); }
    } end{&z};
    std::string piece;
    uint64_t from = e.offset, left = e.packed, room = e.size;
    auto* out = static_cast<Bytef*>(to);
    Bytef none[1];
    int state = Z_OK;
    while (state != Z_STREAM_END) {
      if (z.avail_in == 0 && left) {
        uint64_t n = std::min(left, kPiece);
        piece = source_.text(from, n);
        from += n;
        left -= n;
        z.next_in = reinterpret_cast<Bytef*>(piece.data());
        z.avail_in = uInt(n);
      }
      uInt wanted = uInt(std::min<uint64_t>(room, uint64_t(1) << 30));
      z.next_out = wanted ? out : none;
      z.avail_out = wanted ? wanted : 1;  // one byte too many shows itself
      uInt before = z.avail_out;
      state = inflate(&z, Z_NO_FLUSH);
      uInt got = before - z.avail_out;
      if ((state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) || got > wanted ||
          (state == Z_BUF_ERROR && left == 0))
        refuse(str_cat("'", e.name, "' does not unpack; it is damaged"));
      out += got;
      room -= got;
    }
    if (room || left || z.avail_in) refuse(str_cat("'", e.name, "' unpacks to another size than it says"));
  }
  uint32_t crc = checksum(0, to, e.size);
  if (crc != e.crc) refuse(str_cat("'", e.name, "' is damaged: its checksum is ", crc, ", expected ", e.crc));
}

std::string ZipReader::text(const ZipEntry& e) const {
  std::string s(e.size, '\0');
  unpack(e, s.data());
  return s;
}

Ref<Storage> ZipReader::storage(const ZipEntry& e) const {
  if (!e.deflated && source_.pages()) return source_.storage(e.offset, e.size, 8);
  Ref<Storage> s = Storage::make(cpu_allocator(), e.size);
  unpack(e, s->data());
  return s;
}

}  // namespace strata::io
