#include "harness.h"

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lower/expr/build.h"

namespace strata::lower {
extern const KernelDesc test_kernels[];
extern const int64_t test_kernel_count;
}  // namespace strata::lower

namespace strata::lower::test {

Table table{test_kernels, test_kernel_count};

namespace {

int failed = 0;

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "strata-lower-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

constexpr uint32_t kVectorTypes = 1u << int(DType::F32) | 1u << int(DType::F64) | 1u << int(DType::BF16) |
                                  1u << int(DType::I64) | 1u << int(DType::Bool);

template <class T>
T read(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void write_value(DType t, char* p, double v) {
  auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (t) {
    case DType::Bool:
      return put(uint8_t(v != 0));
    case DType::U8:
      return put(uint8_t(int64_t(v)));
    case DType::I8:
      return put(int8_t(int64_t(v)));
    case DType::U16:
      return put(uint16_t(int64_t(v)));
    case DType::I16:
      return put(int16_t(int64_t(v)));
    case DType::U32:
      return put(uint32_t(int64_t(v)));
    case DType::I32:
      return put(int32_t(int64_t(v)));
    case DType::U64:
      return put(uint64_t(int64_t(v)));
    case DType::I64:
      return put(int64_t(v));
    case DType::F16:
      return put(to_half(float(v)));
    case DType::BF16:
      return put(to_bfloat16(float(v)));
    case DType::F32:
      return put(float(v));
    case DType::F64:
      return put(v);
    case DType::C64:
      return put(float(v)), p += 4, put(0.0f);
    case DType::C128:
      return put(v), p += 8, put(0.0);
  }
}

}  // namespace

int failures() { return failed; }
void check(bool ok, const std::string& what) {
  if (ok) return;
  if (++failed <= 60) std::printf("FAILED: %s\n", what.c_str());
}

std::vector<Library> build_libraries(bool wide, int64_t first, int64_t step, bool all) {
  static Folder folder;
  std::vector<Library> out;
  for (const char* compiler : {"clang-19", "gcc"}) {
    bool there = std::system((std::string(compiler) + " --version > /dev/null 2>&1").c_str()) == 0;
    check(there, std::string(compiler) + " is not installed: ./run setup installs it");
    if (!there) continue;
    for (Isa isa : {Isa::Base, Isa::V3, Isa::V4}) {
      if (!all && !out.empty()) continue;
      if (isa == Isa::V3 && !__builtin_cpu_supports("x86-64-v3")) continue;
      if (isa == Isa::V4 && !__builtin_cpu_supports("x86-64-v4")) continue;
      std::vector<Kernel> kernels;
      for (int64_t k = first % step; k < table.count; k += step)
        for (int t = 0; t < kDTypeCount; ++t)
          if (table.kernels[k].kind != KernelKind::Space && (table.kernels[k].dtypes >> t & 1) &&
              (isa == Isa::Base || wide || (kVectorTypes >> t & 1)))
            kernels.push_back(build_kernel(table.kernels[k], DType(t)));
      std::string stem = (folder.path / (std::string(compiler) + isa_name(isa))).string();
      std::ofstream(stem + ".c") << print_file("test", kernels, isa);
      auto start = std::chrono::steady_clock::now();
      std::string command = std::string(compiler) + " " + kCompileFlags + " " + isa_flags(isa) + " -shared -o " + stem +
                            ".so " + stem + ".c -lm";
      void* so = compile_library(stem, command);
      if (!so) continue;
      Library lib{std::string(compiler) + " " + isa_name(isa), isa, {}, {}, 0, int64_t(kernels.size())};
      lib.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::string symbol = std::string("strata_kernels_") + isa_name(isa) + "_test";
      auto* file = static_cast<const StrataKernelFile*>(dlsym(so, symbol.c_str()));
      check(file != nullptr, symbol);
      for (int64_t k = 0; file && k < file->count; ++k)
        lib.kernels[{file->entries[k].name, DType(file->entries[k].dtype)}] = &file->entries[k];
      out.push_back(std::move(lib));
    }
  }
  std::filesystem::create_directory(folder.path / "c99");
  out.push_back(build_c99((folder.path / "c99").string(), first, step));
  return out;
}

void* compile_library(const std::string& stem, const std::string& command) {
  check(std::system(command.c_str()) == 0, command);
  void* so = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  check(so != nullptr, so ? "" : dlerror());
  return so;
}

Buffer random_buffer(DType t, int64_t n, std::mt19937_64& rng, bool tame) {
  static constexpr double specials[] = {0.0,      -0.0,      1,    -1,    0.5,          -0.5,   1.5,  2.5,   3,
                                        INFINITY, -INFINITY, NAN,  1e-40, -1e-40,       1e-310, 3e38, -3e38, 65504,
                                        65519,    65520,     1e10, -1e10, 2147483648.0, 9.3e18, 1e-8, 88.8,  -103.5};
  Buffer b(t, n);
  std::normal_distribution<double> normal;
  int64_t parts = is_complex(t) ? 2 * n : n;
  DType part = traits(t).component;
  for (int64_t i = 0; i < parts; ++i) {
    char* p = b.data() + i * itemsize(part);
    uint64_t r = rng();
    if (is_float(part)) {
      int kind = tame ? 2 : int(r % 4);
      if (kind == 0)
        write_value(part, p, specials[(r >> 8) % std::size(specials)]);
      else if (kind == 1)
        std::memcpy(p, &r, size_t(itemsize(part)));  // any bits
      else
        write_value(part, p, kind == 2 ? normal(rng) : 30 * normal(rng));
    } else if (part == DType::Bool) {
      *p = char(r >> 20 & 1);
    } else if (r % 3 == 0 && !tame) {
      r = rng();
      std::memcpy(p, &r, size_t(itemsize(part)));
    } else if (r % 31 == 1 && !tame) {
      uint64_t top = uint64_t(1) << (traits(part).bits - 1);
      top = r & 64 ? top - 1 : top;
      std::memcpy(p, &top, size_t(itemsize(part)));
    } else {
      write_value(part, p, double(int64_t((r >> 8) % 23) - (traits(part).kind == DKind::Signed ? 11 : 0)));
    }
  }
  return b;
}

double get(const Buffer& b, int64_t i, int part) {
  DType t = traits(b.type).component;
  const char* p = b.data() + i * itemsize(b.type) + part * itemsize(t);
  switch (t) {
    case DType::Bool:
    case DType::U8:
      return read<uint8_t>(p);
    case DType::I8:
      return read<int8_t>(p);
    case DType::U16:
      return read<uint16_t>(p);
    case DType::I16:
      return read<int16_t>(p);
    case DType::U32:
      return read<uint32_t>(p);
    case DType::I32:
      return read<int32_t>(p);
    case DType::U64:
      return double(read<uint64_t>(p));
    case DType::I64:
      return double(read<int64_t>(p));
    case DType::F16:
      return to_float(read<Half>(p));
    case DType::BF16:
      return to_float(read<BFloat16>(p));
    case DType::F32:
      return read<float>(p);
    default:
      return read<double>(p);
  }
}

std::string differ(const Buffer& a, const Buffer& b) {
  DType t = traits(a.type).component;
  int parts = is_complex(a.type) ? 2 : 1;
  for (int64_t i = 0; i < a.count; ++i)
    for (int p = 0; p < parts; ++p) {
      int64_t at = i * itemsize(a.type) + p * itemsize(t);
      if (std::memcmp(a.data() + at, b.data() + at, size_t(itemsize(t))) == 0) continue;
      double x = get(a, i, p), y = get(b, i, p);
      if (is_float(t) && std::isnan(x) && std::isnan(y)) continue;
      char text[160];
      std::snprintf(text, sizeof text, "element %ld of %ld: %.17g and %.17g", long(i), long(a.count), x, y);
      return text;
    }
  return "";
}

const KernelDesc& find_desc(const std::string& name) {
  for (int64_t k = 0; k < table.count; ++k)
    if (name == table.kernels[k].name) return table.kernels[k];
  throw std::runtime_error("no kernel " + name);
}

void set_scalar(Call& c, size_t k, double v) {
  c.params[k] = {0, 0};
  write_value(c.info.scalars[k].type, reinterpret_cast<char*>(&c.params[k]), v);
}

Call make_call(const KernelDesc& desc, DType dtype, int64_t n, std::mt19937_64& rng, bool tame,
               const std::vector<double>& scalars) {
  Call c{&desc, describe(desc, dtype), dtype, {}, {}};
  for (const Operand& o : c.info.inputs) {
    c.inputs.push_back(random_buffer(o.storage, o.per_row ? 1 : n, rng, tame));
    if (o.name != "target" || o.storage != DType::I64) continue;
    for (int64_t i = 0; i < c.inputs.back().count; ++i) c.inputs.back().as<int64_t>()[i] = int64_t(rng() % uint64_t(n));
  }
  c.params.resize(c.info.scalars.size());
  for (size_t k = 0; k < c.params.size(); ++k)
    set_scalar(c, k, k < scalars.size() ? scalars[k] : 0.25 + 0.5 * double(k));
  return c;
}

namespace {

struct Slot {
  alignas(16) char bytes[16] = {};
};

// Integers wrap.
template <class T>
T sum_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) return T(uint64_t(x) + uint64_t(y));
  return T(x + y);
}
template <class T>
T product_of(T x, T y) {
  if constexpr (std::is_integral_v<T>) return T(uint64_t(x) * uint64_t(y));
  return T(x * y);
}

template <class T>
void combine_as(Combine c, char* a, const char* b) {
  T x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  bool arg = c == Combine::ArgMax || c == Combine::ArgMin;
  if (arg) {
    bool later = c == Combine::ArgMax ? y > x : y < x;
    if (later || (y != y && x == x)) std::memcpy(a, b, 16);
    return;
  }
  switch (c) {
    case Combine::Add:
      x = sum_of(x, y);
      break;
    case Combine::Mul:
      x = product_of(x, y);
      break;
    case Combine::Max:
      x = x != x || y > x ? (x != x ? x : y) : y != y ? y : x;
      break;
    case Combine::Min:
      x = x != x || y < x ? (x != x ? x : y) : y != y ? y : x;
      break;
    case Combine::Or:
      x = T(x != 0 || y != 0);
      break;
    default:
      x = T(x != 0 && y != 0);
  }
  std::memcpy(a, &x, sizeof x);
}

template <class T>
void combine_pairs(Combine c, char* a, const char* b) {
  T x[2], y[2];
  std::memcpy(x, a, sizeof x);
  std::memcpy(y, b, sizeof y);
  T re = c == Combine::Add ? x[0] + y[0] : x[0] * y[0] - x[1] * y[1];
  T im = c == Combine::Add ? x[1] + y[1] : x[0] * y[1] + x[1] * y[0];
  T r[2] = {re, im};
  std::memcpy(a, r, sizeof r);
}

void combine(const StrataReduction& r, char* a, const char* b) {
  Combine c = Combine(r.combine);
  switch (DType(r.accumulator)) {
    case DType::Bool:
    case DType::U8:
      return combine_as<uint8_t>(c, a, b);
    case DType::I8:
      return combine_as<int8_t>(c, a, b);
    case DType::U16:
      return combine_as<uint16_t>(c, a, b);
    case DType::I16:
      return combine_as<int16_t>(c, a, b);
    case DType::U32:
      return combine_as<uint32_t>(c, a, b);
    case DType::I32:
      return combine_as<int32_t>(c, a, b);
    case DType::U64:
      return combine_as<uint64_t>(c, a, b);
    case DType::I64:
      return combine_as<int64_t>(c, a, b);
    case DType::F32:
      return combine_as<float>(c, a, b);
    case DType::F64:
      return combine_as<double>(c, a, b);
    case DType::C64:
      return combine_pairs<float>(c, a, b);
    case DType::C128:
      return combine_pairs<double>(c, a, b);
    default:
      check(false, "accumulator type");
  }
}

constexpr int64_t kPart = 65536;

void run_rows(const StrataKernelEntry& e, const Call& call, std::vector<Buffer>& outputs, int64_t n, int32_t* status) {
  std::vector<Slot> reduced(e.reductions + 1);
  std::vector<Buffer> scratch;
  for (int k = 0; k < e.scratch_rows; ++k) scratch.emplace_back(traits(call.dtype).compute, n);
  int done = 0;
  for (int p = 0; p < e.passes; ++p) {
    const StrataRowPass& pass = e.pass[p];
    bool per_row = p + 1 == e.passes && !pass.elementwise;
    std::vector<std::vector<Slot>> partial;
    for (int64_t first = 0; first < (per_row ? 1 : n); first += kPart) {
      std::vector<char*> ptr, rows;
      for (size_t k = 0; k < outputs.size(); ++k)
        ptr.push_back(outputs[k].data() + (e.per_row[k] ? 0 : first * itemsize(outputs[k].type)));
      for (size_t k = 0; k < call.inputs.size(); ++k)
        ptr.push_back(const_cast<char*>(call.inputs[k].data()) +
                      (e.per_row[e.outputs + k] ? 0 : first * itemsize(call.inputs[k].type)));
      for (Buffer& s : scratch) rows.push_back(s.data() + first * itemsize(s.type));
      partial.emplace_back(pass.reductions + 1);
      int64_t count = per_row ? 1 : std::min(kPart, n - first);
      StrataRowArgs args{
          ptr.data(), call.params.data(), reduced.data(), rows.data(), partial.back().data(), count, first, n, status};
      pass.fn(&args);
    }
    for (size_t w = 1; w < partial.size(); w *= 2)
      for (size_t k = 0; k + w < partial.size(); k += 2 * w)
        for (int r = 0; r < pass.reductions; ++r)
          combine(e.reduction[done + r], partial[k][size_t(r)].bytes, partial[k + w][size_t(r)].bytes);
    for (int r = 0; r < pass.reductions; ++r) reduced[size_t(done + r)] = partial[0][size_t(r)];
    done += pass.reductions;
  }
}

}  // namespace

std::vector<Buffer> run(const Library& lib, const Call& call, int64_t n, int32_t* status, int64_t flags) {
  if (auto nest = lib.nests.find({call.desc->name, call.dtype}); nest != lib.nests.end())
    return run_nest(nest->second, call, n, status);
  const StrataKernelEntry& e = *lib.kernels.at({call.desc->name, call.dtype});
  std::vector<Buffer> outputs;
  for (int k = 0; k < e.outputs; ++k) outputs.emplace_back(DType(e.output_dtype[k]), e.per_row[k] ? 1 : n);
  int32_t ignored = 0;
  if (!status) status = &ignored;
  if (e.kind == 1) {
    run_rows(e, call, outputs, n, status);
    return outputs;
  }
  std::vector<char*> ptr;
  std::vector<int64_t> step;
  for (Buffer& b : outputs) ptr.push_back(b.data()), step.push_back(16 * itemsize(b.type));
  for (const Buffer& b : call.inputs) ptr.push_back(const_cast<char*>(b.data())), step.push_back(16 * itemsize(b.type));
  e.pointwise(ptr.data(), step.data(), call.params.data(), n / 16, flags, status);
  return outputs;
}

}  // namespace strata::lower::test
