// The library "gcc c99": the table's kernels as whole loop nests in portable C.
#include <dlfcn.h>

#include <chrono>
#include <fstream>

#include "harness.h"
#include "lower/print/print_nest.h"

namespace strata::lower::test {

Library build_c99(const std::string& folder, int64_t first, int64_t step) {
  std::vector<Nest> nests;
  for (int64_t k = first % step; k < table.count; k += step)
    for (int t = 0; t < kDTypeCount; ++t)
      if (table.kernels[k].kind != KernelKind::Space && (table.kernels[k].dtypes >> t & 1))
        nests.push_back(build_nest(table.kernels[k], DType(t)));
  const std::string stem = folder + "/kernels";
  std::ofstream(stem + ".c") << print_nests(nests, c99, true);
  Library lib{"gcc c99", Isa::Base, {}, {}, 0, int64_t(nests.size())};
  auto start = std::chrono::steady_clock::now();
  void* so = compile_library(
      stem, "cd " + folder + " && gcc -std=c99 -O2 -ffp-contract=off -w -fPIC -shared -o kernels.so kernels.c -lm");
  lib.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Nest& n : nests) {
    void* fn = so ? dlsym(so, ("call_" + n.symbol()).c_str()) : nullptr;
    check(fn != nullptr, "no function call_" + n.symbol());
    if (fn) lib.nests[{n.name, n.dtype}] = {n, reinterpret_cast<StrataNestFn>(fn)};
  }
  return lib;
}

std::vector<Buffer> run_nest(const NestKernel& kernel, const Call& call, int64_t n, int32_t* status) {
  const Nest& nest = kernel.nest;
  const bool rows = call.desc->kind == KernelKind::Rows;
  std::vector<int64_t> extent = rows ? std::vector<int64_t>{1, n} : std::vector<int64_t>{n};
  std::vector<Buffer> outputs;
  std::vector<void*> memory;
  std::vector<int64_t> offset(nest.operands.size(), 0), stride;
  for (const NestOperand& o : nest.operands) {
    int64_t count = 1;
    for (int d : o.dims) count *= extent[size_t(d)];
    if (o.output) outputs.emplace_back(o.storage, count);
    for (size_t d = 0; d < o.dims.size(); ++d)
      stride.push_back(d + 1 == o.dims.size() && !(rows && d == 0) ? 1 : count);
  }
  for (Buffer& b : outputs) memory.push_back(b.data());
  for (const Buffer& b : call.inputs) memory.push_back(const_cast<char*>(b.data()));
  std::vector<int64_t> begin(extent.size(), 0);
  int32_t ignored = 0;
  StrataNestArgs args{memory.data(),      offset.data(), extent.data(), stride.data(),
                      call.params.data(), begin.data(),  extent.data(), status ? status : &ignored};
  kernel.fn(&args);
  return outputs;
}

}  // namespace strata::lower::test
