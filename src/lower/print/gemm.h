// Prints the C text of the generated matrix-product kernels.
//
// What a product is (contract 5): every output element is a sum of chains. A chain takes up to 1,024 consecutive k and
// is acc = fma(a[i,k], b[k,j], acc) in order of k, starting from +0, in the compute type; the chains' results are added
// in order. The result is rounded once to the storage type. Integers wrap, bool is any(a & b). Complex keeps two
// accumulators: re = fma(ar, br, re), re = fma(-ai, bi, re); im = fma(ar, bi, im), im = fma(ai, br, im).
// Blocking, packing, threads and instruction set leave the bits alone, because they only choose which element runs
// when.
//
// The text is header-free C11 that Clang and GCC compile to the same bits at -O2 -ffp-contract=off; it holds one kernel
// set per dtype: functions gemm_<dtype>_<level>_pack_a, _pack_b, _kernel, _round (static) and one exported table
// gemm_<dtype>_<level>, a struct laid out like ops/matmul/gemm.h's GemmKernel. dtype is a DTypeTraits cname.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::lower {

enum class GemmLevel {
  base,  // one-lane bodies that call fmaf: any machine
  v3,    // x86-64-v3: 8 lanes of 4 bytes
  v4     // x86-64-v4: 16 lanes of 4 bytes
};
inline constexpr int gemm_chain = 1024;

const char* gemm_level_name(GemmLevel level);  // "base", "v3", "v4"

// The dtypes that print_gemm knows: f32 f64 bf16 f16 i64 i32 i16 i8 u8 b8 c64 c128.
const std::vector<std::string_view>& gemm_dtypes();

// The text for these dtypes at one level. Raises Value for a dtype that it does not know.
std::string print_gemm(GemmLevel level, const std::vector<std::string_view>& dtypes);

}  // namespace strata::lower
