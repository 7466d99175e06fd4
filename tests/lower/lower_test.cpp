// Tests of lower/: every kernel of the test table gives the same bits for every compiler and instruction set, and the
// values that an independent evaluation gives. `lower_test --bench [LIBRARY]` times some on one thread;
// `--wide` prints every dtype with 16 lanes, not only those that the build prints so; `--sample SEED` compares the bits
// of an eighth of the kernels.
#include <cmath>
#include <cstdio>

#include "harness.h"

namespace strata::lower {
extern const KernelDesc test_kernels[];
extern const int64_t test_kernel_count;
}  // namespace strata::lower

namespace strata::lower::test {

void test_values(const std::vector<Library>& libs);  // values_test.cpp
void test_structure(const std::vector<Library>& libs);
void test_errors();
void bench(const std::vector<Library>& libs, const std::string& only);  // lower_bench.cpp

// All libraries against the first (Clang, one lane).
void test_same_bits(const std::vector<Library>& libs) {
  std::mt19937_64 rng(7);
  int64_t runs = 0;
  for (int64_t k = 0; k < test_kernel_count; ++k) {
    const KernelDesc& d = test_kernels[k];
    for (int t = 0; t < kDTypeCount; ++t) {
      if (!(d.dtypes >> t & 1)) continue;
      bool rows = d.kind == KernelKind::Rows;
      std::vector<int64_t> lengths =
          rows ? std::vector<int64_t>{1, 15, 16, 17, 1000, 1024, 1025, 4096, 65536 + 77, 3 * 65536 + 5}
               : std::vector<int64_t>{16, 4096};
      for (int64_t n : lengths)
        for (bool tame : {true, false}) {
          Call call = make_call(d, DType(t), n, rng, tame);
          std::vector<Buffer> first;
          int32_t first_status = 0;
          for (const Library& lib : libs) {
            if (!lib.kernels.count({d.name, DType(t)})) continue;
            int32_t status = 0;
            std::vector<Buffer> got = run(lib, call, n, &status, !rows && n > 16);
            ++runs;
            if (first.empty()) {
              first = got;
              first_status = status;
              continue;
            }
            check(status == first_status, std::string(d.name) + ": status differs, " + lib.name);
            for (size_t o = 0; o < got.size(); ++o) {
              std::string text = differ(first[o], got[o]);
              if (!text.empty())
                check(false, std::string(d.name) + " " + traits(DType(t)).cname + " n=" + std::to_string(n) +
                                 (tame ? " tame" : "") + ", output " + std::to_string(o) + ", " + libs[0].name +
                                 " and " + lib.name + ": " + text);
            }
          }
        }
    }
  }
  check(runs > 0, "no kernel was compared");
  std::printf("same bits: %ld runs\n", long(runs));
}

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
    test_errors();
  } catch (const std::exception& e) {
    check(false, e.what());
  }
  std::printf(failures() ? "%d failures\n" : "ok\n", failures());
  return failures() ? 1 : 0;
}
