#include "io/checksum.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/parallel.h"

namespace strata::io {

uint32_t checksum(uint32_t crc, const void* data, uint64_t bytes) {
  constexpr int64_t kPiece = 1 << 20;
  const auto* p = static_cast<const Bytef*>(data);
  const int64_t total = int64_t(bytes), pieces = (total + kPiece - 1) / kPiece;
  auto length = [&](int64_t i) { return std::min(kPiece, total - i * kPiece); };
  if (pieces <= 1) return uint32_t(::crc32(crc, p, uInt(bytes)));
  std::vector<uint32_t> parts(static_cast<size_t>(pieces));
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) parts[size_t(i)] = uint32_t(::crc32(0, p + i * kPiece, uInt(length(i))));
  });
  for (int64_t i = 0; i < pieces; ++i) crc = uint32_t(::crc32_combine(crc, parts[size_t(i)], z_off_t(length(i))));
  return crc;
}

}  // namespace strata::io
