#include "lower/fuzz/run.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lower/print/print_c.h"
#include "lower/print/print_nest.h"

namespace strata::lower::fuzz {
namespace {

thread_local sigjmp_buf before_the_call;

void leave(int signal) { siglongjmp(before_the_call, signal); }

// A call that may touch what it must not.
bool survives(StrataNestFn fn, const StrataNestArgs* args) {
  struct sigaction act = {}, segv, bus, fpe;
  act.sa_handler = leave;
  act.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &act, &segv);
  sigaction(SIGBUS, &act, &bus);
  sigaction(SIGFPE, &act, &fpe);
  const bool good = sigsetjmp(before_the_call, 1) == 0;
  if (good) fn(args);
  sigaction(SIGSEGV, &segv, nullptr);
  sigaction(SIGBUS, &bus, nullptr);
  sigaction(SIGFPE, &fpe, nullptr);
  return good;
}

// Values of nodes that a run computes, about.
double cost(const Value& v, const std::vector<int64_t>& sizes) {
  double all = 0;
  std::vector<uint64_t> around(v.nest.nodes.size(), 0);  // ranges that a node's turns run over
  for (size_t k = v.nest.nodes.size(); k-- > 0;) {
    around[k] |= v.nest.depends[k];
    const Node& n = v.nest.nodes[k];
    if (n.op == Op::Reduced)
      for (int a : v.nest.reductions[n.imm].reads())
        if (a >= 0) around[size_t(a)] |= v.nest.depends[size_t(a)] | v.nest.reductions[n.imm].over;
    double turns = 1;
    for (size_t r = 0; r < v.sizes.size(); ++r)
      if (around[k] >> r & 1) turns *= double(sizes[size_t(v.sizes[r])]);
    all += turns;
  }
  return all;
}

// Whether what is not launched, since one of its loops has no turn, has nothing to write: its results would be read as
// what memory held, and a kernel that it is part of may be launched.
bool whole(const Program& p, const std::vector<int64_t>& sizes) {
  return std::ranges::all_of(p.values, [&](const Value& v) {
    bool launched = true;
    for (size_t r = 0; r < v.sizes.size(); ++r) launched &= !(v.nest.loops() >> r & 1) || sizes[size_t(v.sizes[r])] > 0;
    return launched || std::ranges::all_of(v.outputs, [&](const Tensor& t) {
             return std::ranges::any_of(t.dims, [&](int d) { return sizes[size_t(d)] == 0; });
           });
  });
}

bool fits(const Program& p, const FusedProgram& fused, const std::vector<int64_t>& sizes, double most) {
  if (!whole(p, sizes)) return false;
  auto small = [&](const Tensor& t) {
    double n = 1;
    for (int d : t.dims) n *= double(sizes[size_t(d)]) + 3;
    return n <= 200000;
  };
  for (const Tensor& t : p.inputs)
    if (!small(t)) return false;
  double all = 0;
  for (const Value& v : p.values) {
    for (const Tensor& t : v.outputs)
      if (!small(t)) return false;
    all += cost(v, sizes);
  }
  for (const Value& v : fused.values) all += cost(v, sizes);
  return all <= most;
}

}  // namespace

std::vector<Target> targets() {
  std::vector<Target> all = {{"gcc c99", "gcc -std=c99 -O2 -ffp-contract=off -w -fPIC -shared", true}};
  for (Isa isa : {Isa::Base, Isa::V3, Isa::V4}) {
    if (isa == Isa::V3 && !__builtin_cpu_supports("x86-64-v3")) continue;
    if (isa == Isa::V4 && !__builtin_cpu_supports("x86-64-v4")) continue;
    all.push_back({isa_name(isa),
                   std::string("clang-19 ") + kCompileFlags + " -fno-unroll-loops " + isa_flags(isa) + " -shared",
                   false});
  }
  return all;
}

std::unique_ptr<Library> compile(const Target& target, const std::vector<const Nest*>& nests, const std::string& folder,
                                 const Change& changed) {
  static std::atomic<int> files = 0;
  const std::string stem = folder + "/" + std::to_string(files++);
  std::vector<Nest> all;
  for (const Nest* n : nests) all.push_back(*n);
  std::string text = print_nests(all, target.portable ? c99 : hinted_c, true);
  if (changed) changed(text);
  std::ofstream(stem + ".c") << text;
  const std::string command = target.command + " -o " + stem + ".so " + stem + ".c -lm 2> " + stem + ".log";
  const bool good = std::system(command.c_str()) == 0;
  if (!good) {
    std::ifstream log(stem + ".log");
    std::stringstream lines;
    lines << log.rdbuf();
    std::fprintf(stderr, "%s: %s failed\n%s\n", target.name.c_str(), command.c_str(),
                 lines.str().substr(0, 2000).c_str());
  }
  auto library = std::make_unique<Library>(stem + ".so");
  for (const char* end : {".c", ".so", ".log"}) std::filesystem::remove(stem + end);
  return library;
}

Library::Library(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
Library::~Library() {
  if (handle_) dlclose(handle_);
}
StrataNestFn Library::find(const Nest& nest) const {
  return handle_ ? reinterpret_cast<StrataNestFn>(dlsym(handle_, ("call_" + nest.symbol()).c_str())) : nullptr;
}

// Large ones, one dim of several perhaps, then others. What takes too long is made smaller.
std::vector<Setting> settings(const Program& program, const FusedProgram& fused) {
  static const std::vector<std::vector<int64_t>> kinds = {{65535, 65536, 65537, 131073},
                                                          {1000, 1023, 1024, 1025, 2049, 4096},
                                                          {15, 16, 17, 33, 64, 65, 100},
                                                          {0, 1, 2, 3, 5, 7}};
  static const std::vector<int> largest = {0, 0, 1, 1, 2, 2, 2, 3};  // of each setting
  Random rng(program.seed * 7919 + uint64_t(program.number));
  std::vector<Setting> all;
  for (size_t k = 0; k < largest.size(); ++k) {
    Setting s;
    s.tame = k == 1 || k % 2 == 0;
    s.stray = k > 2 && chance(rng, 50);
    s.seed = rng();
    for (int tries = 0;; ++tries) {
      const size_t kind = std::min<size_t>(size_t(largest[k] + tries / 4), 3);
      s.sizes.clear();
      for (int d = 0; d < program.sizes; ++d)
        s.sizes.push_back(pick(rng, kinds[std::min<size_t>(kind + rng() % 3, 3)]));
      s.sizes[rng() % s.sizes.size()] = pick(rng, kinds[kind]);
      if (tries > 20 || fits(program, fused, s.sizes, k < 2 ? 3e7 : 2e6)) break;
    }
    all.push_back(std::move(s));
  }
  return all;
}

std::string describe(const Setting& s) {
  std::ostringstream out;
  for (size_t k = 0; k < s.sizes.size(); ++k) out << (k ? ", " : "") << char('A' + k) << " = " << s.sizes[k];
  out << (s.tame ? "; tame values" : "; any values") << (s.stray ? ", places outside" : "");
  return out.str();
}

Bench::Bench(Arenas& arenas, const Program& program, const Setting& setting)
    : arenas_(arenas), setting_(setting), rng_(setting.seed) {
  arenas.clear();
  for (const Tensor& t : program.inputs) {
    const Block b = arenas.take(rng_, t.dtype, random_layout(rng_, sizes_of(t), true));
    fill(rng_, b, setting.tame, t.places_in < 0 ? -1 : setting.sizes[size_t(t.places_in)], setting.stray);
    inputs_[t.name] = b;
  }
  for (const Value& v : program.values)
    for (const Tensor& t : v.outputs) layouts_[t.name] = random_layout(rng_, sizes_of(t), false);
}

std::vector<int64_t> Bench::sizes_of(const Tensor& t) const {
  std::vector<int64_t> sizes;
  for (int d : t.dims) sizes.push_back(setting_.sizes[size_t(d)]);
  return sizes;
}

Outcome Bench::run(const std::vector<Value>& values, const std::function<StrataNestFn(const Nest&)>& find) {
  Outcome out;
  for (const Value& v : values) {
    std::vector<void*> memory;
    std::vector<int64_t> offset, extent, stride, begin, end;
    for (int s : v.sizes) extent.push_back(setting_.sizes[size_t(s)]);
    for (const NestOperand& o : v.nest.operands) {
      const auto input = inputs_.find(o.name);
      if (o.output) {
        Block b = arenas_.take(rng_, o.storage, layouts_.at(o.name));
        Random same(setting_.seed + 1);
        if (v.begins)
          fill(same, b, setting_.tame, -1, false);
        else
          fill_pattern(b);
        out.made[o.name] = b;
      }
      const Block& b = input != inputs_.end() && !o.output ? input->second : out.made.at(o.name);
      memory.push_back(b.data);
      offset.push_back(b.layout.start * itemsize(b.dtype));
      stride.insert(stride.end(), b.layout.strides.begin(), b.layout.strides.end());
    }
    std::vector<std::array<uint64_t, 2>> params;
    for (const Scalar& s : v.nest.scalars) {
      // By name: every run has the same.
      Random named(setting_.seed ^ std::hash<std::string>()(s.name));
      std::array<uint64_t, 2> slot{};
      const DType part = traits(s.type).component;
      for (int k = 0; k < 1 + is_complex(s.type); ++k) {
        char* p = reinterpret_cast<char*>(slot.data()) + k * itemsize(part);
        const int64_t i = int64_t(named() % 7) - 2;
        const double d = 0.37 * double(i) + 0.1;
        const float f = float(d);
        if (part == DType::F64)
          std::memcpy(p, &d, 8);
        else if (part == DType::F32)
          std::memcpy(p, &f, 4);
        else
          std::memcpy(p, &i, size_t(itemsize(part)));
        if (part == DType::Bool) *p = char(i & 1);
      }
      params.push_back(slot);
    }
    const uint64_t loops = v.nest.loops();
    for (size_t r = 0; r < v.sizes.size(); ++r)
      if (loops >> r & 1) begin.push_back(0), end.push_back(extent[r]);
    if (std::ranges::count(end, 0)) continue;  // a launch does not call it either
    const StrataNestArgs args{memory.data(), offset.data(), extent.data(), stride.data(),
                              params.data(), begin.data(),  end.data(),    &out.status};
    const StrataNestFn fn = find(v.nest);
    if (!fn)
      out.trouble = v.nest.name + " was not compiled";
    else if (!survives(fn, &args))
      out.trouble = v.nest.name + " touched memory that is not its own";
    if (!out.trouble.empty()) break;
  }
  return out;
}

std::string differ(const Outcome& a, const Outcome& b) {
  if (!b.trouble.empty()) return b.trouble;
  if (!a.trouble.empty()) return a.trouble;
  if (a.status != b.status) return "status " + std::to_string(b.status) + ", expected " + std::to_string(a.status);
  for (const auto& [name, block] : b.made)
    if (const std::string text = differ(a.made.at(name), block); !text.empty()) return name + ": " + text;
  return "";
}

}  // namespace strata::lower::fuzz
