// CRC-32 as zip files have it (polynomial 0xedb88320), by several threads for what is long.
#pragma once
#include <cstdint>

namespace strata::io {

// The checksum of what `crc` was the checksum of (0: of nothing), followed by these bytes.
uint32_t checksum(uint32_t crc, const void* data, uint64_t bytes);

}  // namespace strata::io
