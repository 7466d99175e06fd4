#include "jit/compile/bytes.h"

#include <bit>

namespace strata::jit {

// Seven bits a byte, the last one without the eighth; the sign is the lowest bit.
void ByteWriter::number(int64_t value) {
  uint64_t left = uint64_t(value) << 1 ^ uint64_t(value >> 63);
  for (; left >= 128; left >>= 7) out_ += char(left | 128);
  out_ += char(left);
}

void ByteWriter::real(double value) { number(std::bit_cast<int64_t>(value)); }

void ByteWriter::text(std::string_view value) {
  number(int64_t(value.size()));
  out_ += value;
}

int64_t ByteReader::number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (left_.empty()) break;
    const auto byte = uint8_t(left_[0]);
    left_.remove_prefix(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128) return int64_t(value >> 1 ^ -(value & 1));
  }
  good_ = false;
  left_ = {};
  return 0;
}

double ByteReader::real() { return std::bit_cast<double>(number()); }

size_t ByteReader::count() {
  const auto n = uint64_t(number());
  good_ = good_ && n <= left_.size();
  return good_ ? n : 0;
}

std::string ByteReader::text() {
  const std::string_view value = left_.substr(0, count());
  left_.remove_prefix(value.size());
  return std::string(value);
}

}  // namespace strata::jit
