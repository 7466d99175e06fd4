// Milliseconds of the compile service in this process. Usage: compiling KERNEL COUNT; KERNEL is `sincos` or a kernel of
// the table. Prints how and how long for COUNT texts that differ in a comment alone, a line each, in order.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "jit/service/compile.h"
#include "lower/desc.h"
#include "run/isa.h"

namespace strata::lower {
extern const KernelDesc table_kernels[];
extern const int64_t table_kernel_count;
}  // namespace strata::lower

using namespace strata;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const lower::KernelDesc sincos{
      "sincos", "bench", lower::KernelKind::Pointwise, "x", "", "result", "result = sin(x) * sin(x) + cos(x) * cos(x)",
      ~0u,      "bench"};
  const lower::KernelDesc* desc = std::string(argv[1]) == "sincos" ? &sincos : nullptr;
  for (int64_t k = 0; k < lower::table_kernel_count && !desc; ++k)
    if (std::string(argv[1]) == lower::table_kernels[k].name) desc = &lower::table_kernels[k];
  if (!desc) return 2;
  const auto isa = lower::Isa(eager::current_isa());
  const std::string text = lower::print_kernel(*desc, DType::F32, isa);
  for (int k = 0; k < std::atoi(argv[2]); ++k) {
    jit::Origin origin;
    jit::ProgramRef program = jit::compile({text + "// " + std::to_string(k) + "\n", isa}, &origin);
    std::printf("%s %.4f %zu\n", jit::how_name(origin.how), origin.ms, text.size());
  }
}
