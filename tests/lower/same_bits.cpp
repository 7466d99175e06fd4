// The same bits from every library, for every kernel of the table.
#include <cstdio>

#include "harness.h"

namespace strata::lower::test {

void test_same_bits(const std::vector<Library>& libs) {
  std::mt19937_64 rng(7);
  int64_t runs = 0;
  for (int64_t k = 0; k < table.count; ++k) {
    const KernelDesc& d = table.kernels[k];
    for (int t = 0; t < kDTypeCount; ++t) {
      if (d.kind == KernelKind::Space || !(d.dtypes >> t & 1)) continue;
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
            if (!lib.has(d.name, DType(t))) continue;
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
