// Memory formats: which strides an operator gives to its result.
#pragma once
#include <cstdint>

#include "base/array_ref.h"

namespace strata {

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

DimVec contiguous_strides(IntArrayRef sizes);
DimVec channels_last_strides(IntArrayRef sizes);  // of 4-d and 5-d sizes: channels vary fastest
DimVec strides_for(IntArrayRef sizes, MemoryFormat format);

}  // namespace strata
