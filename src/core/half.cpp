// Half floats, by the functions that lower/ prints into host.c: kernels and C++ round alike.
#include "core/dtype.h"

extern "C" {
float strata_f16_to_f32(uint16_t x);
uint16_t strata_f32_to_f16(float x);
float strata_bf16_to_f32(uint16_t x);
uint16_t strata_f32_to_bf16(float x);
}

namespace strata {

float to_float(BFloat16 v) { return strata_bf16_to_f32(v.bits); }
float to_float(Half v) { return strata_f16_to_f32(v.bits); }
BFloat16 to_bfloat16(float v) { return {strata_f32_to_bf16(v)}; }
Half to_half(float v) { return {strata_f32_to_f16(v)}; }

}  // namespace strata
