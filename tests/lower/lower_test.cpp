// Tests of lower/: every kernel of the test table gives the same bits for every compiler and instruction set, and the
// values that an independent evaluation gives. `lower_test --bench [LIBRARY]` times some on one thread;
// `--wide` prints every dtype with 16 lanes, not only those that the build prints so; `--sample SEED` compares the bits
// of an eighth of the kernels.
#include <cmath>
#include <cstdio>

#include "harness.h"

namespace strata::lower::test {

void test_values(const std::vector<Library>& libs);  // values_test.cpp
void test_structure(const std::vector<Library>& libs);
void test_row_status(const std::vector<Library>& libs);
void test_errors();
void bench(const std::vector<Library>& libs, const std::string& only);  // lower_bench.cpp

}  // namespace strata::lower::test

int main(int argc, char** argv) {
  using namespace strata::lower::test;
  try {
    std::string mode = argc > 1 ? argv[1] : "";
    bool sample = mode == "--sample";
    std::vector<Library> libs =
        build_libraries(mode == "--wide", sample && argc > 2 ? std::atol(argv[2]) : 0, sample ? 8 : 1);
    for (const Library& l : libs)
      std::printf("%-14s %ld kernels in %.2f s, %.1f ms each\n", l.name.c_str(), long(l.functions), l.seconds,
                  1000 * l.seconds / double(l.functions));
    if (libs.empty()) return 1;
    if (mode == "--bench") return bench(libs, argc > 2 ? argv[2] : ""), 0;
    test_same_bits(libs);
    if (sample) return std::printf(failures() ? "%d failures\n" : "ok\n", failures()), failures() ? 1 : 0;
    test_values(libs);
    test_structure(libs);
    test_row_status(libs);
    test_errors();
  } catch (const std::exception& e) {
    check(false, e.what());
  }
  std::printf(failures() ? "%d failures\n" : "ok\n", failures());
  return failures() ? 1 : 0;
}
