// Test harness of lower/: prints the test table, compiles it with every compiler and instruction set of this machine,
// loads it, and runs kernels as a caller must (kernel_abi.h).
#pragma once
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lower/ir/nest.h"
#include "lower/kernel_abi.h"
#include "lower/print/print_c.h"

namespace strata::lower::test {

struct Buffer {
  DType type = DType::F32;
  std::vector<uint64_t> words;  // aligned memory
  int64_t count = 0;
  Buffer() = default;
  Buffer(DType t, int64_t n) : type(t), words(size_t((n * itemsize(t) + 7) / 8 + 16)), count(n) {}
  char* data() { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(words.data()) + 63) / 64 * 64); }
  const char* data() const { return const_cast<Buffer*>(this)->data(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  Buffer(const Buffer& o) : type(o.type), words(o.words.size()), count(o.count) {
    std::memcpy(data(), o.data(), size_t(count * itemsize(type)));
  }
  Buffer& operator=(const Buffer& o) {
    Buffer copy(o);
    std::swap(words, copy.words);
    type = o.type;
    count = o.count;
    return *this;
  }
};

// The kernels that are tested: the small table of these tests unless another is set.
struct Table {
  const KernelDesc* kernels;
  int64_t count;
};
extern Table table;

struct NestKernel {
  Nest nest;
  StrataNestFn fn;
};

struct Library {
  std::string name;  // "clang-19 v4"
  Isa isa;
  std::map<std::pair<std::string, DType>, const StrataKernelEntry*> kernels;
  std::map<std::pair<std::string, DType>, NestKernel> nests;  // of the library "gcc c99", instead of kernels
  bool has(const std::string& kernel, DType t) const { return kernels.count({kernel, t}) || nests.count({kernel, t}); }
  double seconds = 0;
  int64_t functions = 0;
};

// All libraries that this machine can make and run; `wide`: every dtype with 16 lanes too. The folder is removed at the
// end.
// With `step` above 1 only every step-th kernel of the table, from `first` on; without `all` only Clang's one-lane
// kernels and the nests.
std::vector<Library> build_libraries(bool wide, int64_t first = 0, int64_t step = 1, bool all = true);

// Compiles a file and loads it; null (and a failed check) where that does not work.
void* compile_library(const std::string& stem, const std::string& command_to_stem);

// The table as portable C99, compiled in a folder that holds nothing else, without a header of ours.
Library build_c99(const std::string& folder, int64_t first, int64_t step);

// Random values with every special among them; `tame`: finite and near 1.
Buffer random_buffer(DType t, int64_t n, std::mt19937_64& rng, bool tame);
double get(const Buffer& b, int64_t i, int part = 0);  // the value as a double

// Equal bits, any NaN being any NaN; else a message.
std::string differ(const Buffer& a, const Buffer& b);

struct Call {
  const KernelDesc* desc;
  KernelInfo info;
  DType dtype;
  std::vector<Buffer> inputs;
  std::vector<std::array<uint64_t, 2>> params;
};
const KernelDesc& find_desc(const std::string& name);
Call make_call(const KernelDesc& desc, DType dtype, int64_t n, std::mt19937_64& rng, bool tame,
               const std::vector<double>& scalars = {});
void set_scalar(Call& c, size_t k, double v);

// Runs a kernel over a row, or n elements (a multiple of 16); gives its outputs.
std::vector<Buffer> run(const Library& lib, const Call& call, int64_t n, int32_t* status = nullptr, int64_t flags = 0);

std::vector<Buffer> run_nest(const NestKernel& kernel, const Call& call, int64_t n, int32_t* status);

// All libraries against the first (Clang, one lane).
void test_same_bits(const std::vector<Library>& libs);

int failures();
void check(bool ok, const std::string& what);

}  // namespace strata::lower::test
