// lower_test's comparison of bits over the operator table itself: `table_check [SEED STEP [nests]]` takes every
// STEP-th kernel; with `nests` only Clang's one-lane kernels and the portable nests are compared.
#include <cstdio>
#include <cstdlib>

#include "harness.h"

int main(int argc, char** argv) {
  using namespace strata::lower;
  using namespace strata::lower::test;
  table = {table_kernels, table_kernel_count};
  try {
    const int64_t seed = argc > 2 ? std::atol(argv[1]) : 0, step = argc > 2 ? std::atol(argv[2]) : 1;
    std::vector<Library> libs = build_libraries(false, seed, step, argc < 4);
    for (const Library& l : libs)
      std::printf("%-14s %ld kernels in %.2f s, %.1f ms each\n", l.name.c_str(), long(l.functions), l.seconds,
                  1000 * l.seconds / double(l.functions));
    test_same_bits(libs);
  } catch (const std::exception& e) {
    check(false, e.what());
  }
  std::printf(failures() ? "%d failures\n" : "ok\n", failures());
  return failures() ? 1 : 0;
}
