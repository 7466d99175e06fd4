#include "run/space.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_map>

#include "core/parallel.h"
#include "lower/registry.h"
#include "run/isa.h"

namespace strata::eager {
namespace {

constexpr int kMaxRanges = 16, kMaxOperands = 8, kMaxDims = TensorImpl::kMaxDims;
constexpr int64_t kGrain = 16384;    // elements that are worth a thread
constexpr int64_t kBlock = 1 << 22;  // elements between two looks for an interrupt
constexpr int64_t kChain = 1024;     // contributions of a chain (kernels count them so)
constexpr uint64_t kMostBins = 1 << 20;
constexpr int64_t kMostTurns = (int64_t(1) << 32) - 1;

struct Tables {
  std::unordered_map<std::string, const StrataSpaceEntry*> entries[kIsaCount];
  static std::string key(const char* name, int dtype, int rank, int inner, int chained) {
    return std::string(name) + '/' + char('a' + dtype) + char('0' + rank) + char('0' + inner) + char('0' + chained);
  }
  void add(int isa, const StrataSpaceFile& file) {
    for (int64_t k = 0; k < file.count; ++k) {
      const StrataSpaceEntry& e = file.entries[k];
      entries[isa].emplace(key(e.name, e.dtype, e.rank, e.inner, e.chained != 0), &e);
    }
  }
  const StrataSpaceEntry* find(int isa, const std::string& wanted) const {
    auto found = entries[isa].find(wanted);
    return found == entries[isa].end() ? nullptr : found->second;
  }
};

const Tables& linked() {
  static const Tables* tables = [] {
    auto* made = new Tables;
    for (const StrataSpaceTable* t = strata_space_tables; t->isa; ++t) made->add(isa_index(t->isa), *t->file);
    return made;
  }();
  return *tables;
}

std::atomic<const Tables*> others{nullptr};

constexpr StrataSpaceEntry kNone = {};  // remembered where there is none

// Null where the kernel has no such form.
const StrataSpaceEntry* find_form(const SpaceOp& op, DType dtype, int rank, bool inner, bool chained = false) {
  if (rank > kMaxGroup) return nullptr;
  const uint32_t now = isa_generation();
  if (STRATA_UNLIKELY(op.generation.load(std::memory_order_relaxed) != now)) {
    for (auto& row : op.cache)
      for (auto& c : row) c.store(nullptr, std::memory_order_relaxed);
    op.generation.store(now, std::memory_order_relaxed);
  }
  auto key = [&] { return Tables::key(op.name, int(dtype), rank, inner, chained); };
  if (const Tables* other = others.load(std::memory_order_acquire); STRATA_UNLIKELY(other != nullptr))
    if (const StrataSpaceEntry* e = other->find(0, key())) return e;
  auto& cached = op.cache[int(dtype)][8 * chained + 2 * rank + inner];
  if (const StrataSpaceEntry* e = cached.load(std::memory_order_relaxed)) return e == &kNone ? nullptr : e;
  const StrataSpaceEntry* e = linked().find(current_isa(), key());
  if (!e) e = linked().find(0, key());
  cached.store(e ? e : &kNone, std::memory_order_relaxed);
  return e;
}

// An operand: memory, and its strides by what its dims are.
struct Operand {
  char* memory;
  int64_t offset;              // bytes
  int64_t stride[kMaxRanges];  // elements, per dim of the kernel's operand
  int64_t plain[kMaxDims];     // elements, per plain dim; 0 where the operand has none
  bool has_plain;
  int64_t width;
};

class Launch {
 public:
  Launch(const StrataSpaceEntry& form, const SpaceArgs& args) : form_(form) {
    const auto& [op, dtype, outs, ins, places, scalars, extents, index] = args;
    for (int r = 0; r < form.ranges; ++r) scatters_ |= form.range[r].runs == 2;
    STRATA_INTERNAL(form.operands == outs.size() + ins.size() && form.operands <= kMaxOperands, form.name, ": takes ",
                    int(form.operands), " operands");
    std::fill(std::begin(extent_), std::end(extent_), int64_t(-1));
    for (size_t k = 0; k < form.operands; ++k) bind(k, k < outs.size() ? *outs[k] : *ins[k - outs.size()], places);
    for (size_t k = 0; k < form.operands; ++k)
      if (!operand_[k].has_plain) std::fill_n(operand_[k].plain, std::max(plain_, 0), int64_t(0));
    for (int r = 0; r < form.ranges; ++r)
      for (const Extent& e : args.extents)
        if (std::strcmp(e.name, form.range[r].name) == 0) {
          extent_[r] = e.values[form.range[r].component];
          reads_ *= double(std::max<int64_t>(extent_[r], 1));
        }
  }

  // Orders plain dims by the first output's strides and joins those that every operand walks in one step.
  void order_plain() {
    for (int i = 1; i < plain_; ++i)
      for (int j = i; j > 0 && operand_[0].plain[j - 1] < operand_[0].plain[j]; --j) swap_plain(j - 1, j);
    int kept = 0;
    for (int d = 0; d < plain_; ++d) {
      if (plain_size_[d] == 1 || repeats(d)) continue;
      bool joins = kept > 0;
      for (int k = 0; joins && k < form_.operands; ++k)
        joins = operand_[k].plain[kept - 1] == operand_[k].plain[d] * plain_size_[d];
      if (joins) {
        plain_size_[kept - 1] *= plain_size_[d];
        for (int k = 0; k < form_.operands; ++k) operand_[k].plain[kept - 1] = operand_[k].plain[d];
      } else {
        plain_size_[kept] = plain_size_[d];
        for (int k = 0; k < form_.operands; ++k) operand_[k].plain[kept] = operand_[k].plain[d];
        ++kept;
      }
    }
    plain_ = kept;
  }

  // Whether the plain dims' fastest one is faster in memory than what the kernel's own innermost loop walks. One plain
  // dim alone is that loop.
  bool wants_inner() const {
    if (plain_ == 0 || (plain_ == 1 && form_.ranges == 1)) return false;
    // Of a scatter the first input says, whose dims are loops.
    const int k = scatters_ ? outputs() : 0;
    if (k == form_.operands || !operand_[k].has_plain) return true;
    int64_t own = 0;
    for (int d = 0; d < form_.operand[k].dims; ++d) {
      const int r = form_.operand[k].range[d];
      if (form_.range[r].kind == STRATA_DIM_PLAIN || extent_[r] <= 1) continue;
      own = own ? std::min(own, operand_[k].stride[d]) : operand_[k].stride[d];
    }
    return own == 0 || operand_[k].plain[plain_ - 1] < own;
  }

  // At most so many contributions meet in one element.
  int64_t contributions() const {
    int64_t n = 1;
    for (int r = 0; r < form_.ranges; ++r)
      if (form_.range[r].runs == 2 && (extent_[r] == 0 || __builtin_mul_overflow(n, extent_[r], &n)))
        return extent_[r] == 0 ? 0 : std::numeric_limits<int64_t>::max();
    return n;
  }

  int32_t run(const void* scalars);

 private:
  // One element goes to one place again and again: once is enough.
  bool repeats(int d) const {
    for (int k = 0; k < form_.operands; ++k)
      if (operand_[k].plain[d] != 0) return false;
    return true;
  }
  void swap_plain(int a, int b) {
    std::swap(plain_size_[a], plain_size_[b]);
    for (int k = 0; k < form_.operands; ++k) std::swap(operand_[k].plain[a], operand_[k].plain[b]);
  }

  void bind(size_t k, const Tensor& t, ArrayRef<Place> places);
  int outputs() const {
    int n = 0;
    while (n < form_.operands && form_.operand[n].output) ++n;
    return n;
  }

  const StrataSpaceEntry& form_;
  Operand operand_[kMaxOperands];
  int64_t extent_[kMaxRanges];
  int64_t plain_size_[kMaxDims];
  int plain_ = -1;
  double reads_ = 1;  // elements of a reduction
  bool scatters_ = false;
};

void Launch::bind(size_t k, const Tensor& t, ArrayRef<Place> places) {
  const StrataSpaceOperand& o = form_.operand[k];
  Operand& out = operand_[k];
  const bool beside = form_.chained && (k == 1 || k == 2);  // lies as the result does
  if (beside) out = operand_[0];
  out.width = t.itemsize();
  out.memory = t.numel() ? t.bytes() : nullptr;
  if (beside) return;
  out.offset = 0;
  const int64_t nd = t.dim();
  uint8_t kinds[kMaxDims];  // of the tensor's dims: 0 plain, else 1 + the operand's dim
  std::fill_n(kinds, nd, uint8_t(0));
  int64_t last = nd;
  bool has_plain = false;
  for (int d = 0; d < o.dims; ++d) has_plain |= form_.range[o.range[d]].kind == STRATA_DIM_PLAIN;
  for (int d = o.dims; d-- > 0;) {
    const StrataSpaceRange& r = form_.range[o.range[d]];
    if (r.kind == STRATA_DIM_PLAIN) continue;
    const Place* place = nullptr;
    for (const Place& p : places)
      if (has_plain && std::strcmp(p.name, r.name) == 0) place = &p;
    const int64_t at = place ? place->dims[r.component] : --last;
    if (place && at < 0) {
      out.stride[d] = 0;
      extent_[o.range[d]] = 1;
      continue;
    }
    STRATA_INTERNAL(at >= 0 && at < nd && kinds[at] == 0, form_.name, ": dim ", r.name, " stands at ", at, " of ", nd);
    kinds[at] = uint8_t(1 + d);
    out.stride[d] = t.strides()[at];
    int64_t& extent = extent_[o.range[d]];
    // What scatters runs over what all its operands have: the index of a scatter may be smaller than the rest.
    const bool least = scatters_ && form_.range[o.range[d]].runs;
    if (extent < 0 || (least && t.sizes()[at] < extent)) extent = t.sizes()[at];
  }
  out.has_plain = has_plain;
  int plain = 0;
  for (int64_t d = 0; d < nd; ++d) {
    if (kinds[d] != 0) continue;
    STRATA_INTERNAL(has_plain, form_.name, ": operand ", k, " has a dim that its pattern lacks");
    if (plain_ < 0 || (scatters_ && t.sizes()[d] < plain_size_[plain])) plain_size_[plain] = t.sizes()[d];
    out.plain[plain++] = t.strides()[d];
  }
  if (!has_plain) return;
  STRATA_INTERNAL(plain_ < 0 || plain == plain_, form_.name, ": operand ", k, " has ", plain, " plain dims");
  plain_ = plain;
}

int32_t Launch::run(const void* scalars) {
  // The plain dims that are ranges of the kernel: its inner one is the last, its outer one the one before. The others
  // are walked here.
  const int inner = form_.inner ? plain_ - 1 : -1, outer = plain_ - 1 - form_.inner, walked = std::max(outer, 0);
  int64_t stride[kMaxOperands * kMaxRanges], begin[kMaxRanges], end[kMaxRanges];
  int strides = 0, loops = 0;
  for (int k = 0; k < form_.operands; ++k)
    for (int d = 0; d < form_.operand[k].dims; ++d) {
      const StrataSpaceRange& r = form_.range[form_.operand[k].range[d]];
      int64_t s = operand_[k].stride[d];
      if (r.kind == STRATA_DIM_PLAIN)
        s = r.component ? operand_[k].plain[inner] : outer >= 0 ? operand_[k].plain[outer] : 0;
      stride[strides++] = s;
    }
  int split = -1;
  int64_t volume = 1;
  for (int r = 0; r < form_.ranges; ++r) {
    if (form_.range[r].kind == STRATA_DIM_PLAIN)
      extent_[r] = form_.range[r].component ? plain_size_[inner] : outer >= 0 ? plain_size_[outer] : 1;
    if (!form_.range[r].runs) continue;
    begin[loops] = 0;
    end[loops] = extent_[r];
    volume *= extent_[r];
    const bool ordered = form_.range[r].runs >= 2;
    if (!ordered && (split < 0 || (end[split] < 16 && extent_[r] > end[split]))) split = loops;
    ++loops;
  }
  int64_t times = 1;
  for (int d = 0; d < walked; ++d) times *= plain_size_[d];
  if (volume == 0 || times == 0) return 0;
  // A scatter without a plain dim is one thread's, in blocks, so that it can be interrupted.
  const bool serial = split < 0 && scatters_ && loops > 0;
  if (serial) split = 0;
  const int64_t units = split < 0 ? 1 : end[split];
  std::atomic<int32_t> status{0};
  // Elements that a unit reads, those of its reductions counted.
  const double work = std::max(1.0, double(volume) / double(units) * reads_);
  auto part = [&](int64_t from, int64_t to) {
    void* memory[kMaxOperands];
    int64_t offset[kMaxOperands], first[kMaxRanges], past[kMaxRanges];
    std::copy(begin, begin + loops, first);
    std::copy(end, end + loops, past);
    for (int k = 0; k < form_.operands; ++k) memory[k] = operand_[k].memory;
    int32_t mine = 0;
    const StrataNestArgs args{memory, offset, extent_, stride, scalars, first, past, &mine};
    while (from < to) {
      int64_t rest = from / units, low = from % units, high = std::min(units, low + to - from);
      for (int k = 0; k < form_.operands; ++k) offset[k] = operand_[k].offset;
      for (int d = walked; d-- > 0; rest /= plain_size_[d])
        for (int k = 0; k < form_.operands; ++k)
          offset[k] += rest % plain_size_[d] * operand_[k].plain[d] * operand_[k].width;
      if (split >= 0) first[split] = low, past[split] = high;
      form_.fn(&args);
      from += high - low;
    }
    if (mine) status.fetch_or(mine, std::memory_order_relaxed);
  };
  if (!serial) {
    parallel_for(0, times * units, std::max<int64_t>(1, int64_t(double(kGrain) / work)), part);
  } else {
    const int64_t block = std::max<int64_t>(1, int64_t(double(kBlock) / work));
    for (int64_t from = 0; from < times * units; from += block) {
      check_interrupt();
      part(from, std::min(from + block, times * units));
    }
  }
  return status.load();
}

// A result without operands and without gaps, over one range: what a small factory runs.
int32_t run_line(const StrataSpaceEntry& form, const Tensor& out, const void* scalars) {
  const int64_t n = out.numel(), offset = 0, stride = 1;
  void* memory = out.bytes();
  std::atomic<int32_t> status{0};
  parallel_for(0, n, kGrain, [&](int64_t from, int64_t to) {
    int32_t mine = 0;
    const StrataNestArgs args{&memory, &offset, &n, &stride, scalars, &from, &to, &mine};
    form.fn(&args);
    if (mine) status.fetch_or(mine, std::memory_order_relaxed);
  });
  return status.load();
}

// Runs `form`, prepared as `launch`, or the one with a plain range inside where that walks memory better.
int32_t run_form(const SpaceArgs& args, const StrataSpaceEntry& form, Launch& launch) {
  launch.order_plain();
  const StrataSpaceEntry* inner =
      launch.wants_inner() ? find_form(args.op, args.dtype, form.rank, true, form.chained) : nullptr;
  if (!inner) return launch.run(args.scalars);
  Launch within(*inner, args);
  within.order_plain();
  return within.run(args.scalars);
}

// Whether it is plain that no place gets more contributions than a chain has: places that agree in their last bits are
// counted together.
bool few(const SpaceArgs& args) {
  if (args.index < 0) return false;
  const Tensor& index = *args.ins[size_t(args.index)];
  if (index.dim() != 1 || index.dtype() != DType::I64) return false;
  const int64_t n = index.numel(), step = index.strides()[0], *value = index.data<int64_t>();
  const uint64_t mask = std::bit_ceil(uint64_t(n) / (kChain / 2) + 1) - 1;
  if (mask >= kMostBins) return false;
  // A part has bins of its own, which are added up. Of few places some bin is full after the first elements.
  int64_t done = 0;
  const int64_t soon = std::min(n, 16 * kChain), parts = n > 4 * soon ? num_threads() : 1;
  std::vector<uint32_t> count(size_t(parts) * (mask + 1));
  auto add = [&](int64_t part, int64_t begin, int64_t end) {
    uint32_t* mine = count.data() + size_t(part) * (mask + 1);
    for (int64_t i = begin; i < end; ++i) ++mine[uint64_t(value[i * step]) & mask];
  };
  auto full = [&] {
    for (uint64_t bin = 0; bin <= mask; ++bin) {
      uint64_t sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += count[size_t(part) * (mask + 1) + bin];
      if (sum > uint64_t(kChain)) return true;
    }
    return false;
  };
  for (int64_t end : {soon, std::max(soon, n / 16)}) {
    add(0, done, end);
    done = end;
    if (full()) return false;
  }
  const int64_t length = (n - done + parts - 1) / parts;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      add(part, done + part * length, std::min(n, done + (part + 1) * length));
  });
  return !full();
}

// Two launches: contributions in chains of kChain, then the sums of each element's chains.
int32_t in_chains(const SpaceArgs& args, const StrataSpaceEntry& form) {
  static const SpaceOp sums{"fold_chain_sums"}, products{"fold_chain_products"};
  const Tensor& result = *args.outs[0];
  int64_t span = 1;  // elements from the first to the last
  for (int64_t d = 0; d < result.dim(); ++d) span += (result.sizes()[size_t(d)] - 1) * result.strides()[size_t(d)];
  auto like_result = [&](DType t) {
    return make_tensor(IntArrayRef(span), t).alias(result.sizes(), result.strides(), 0);
  };
  const Tensor total = like_result(result.dtype()), count = like_result(DType::U32);
  std::memset(count.bytes(), 0, size_t(span) * sizeof(uint32_t));
  const Tensor* outs[] = {&result, &total, &count};
  SpaceArgs chained = args;
  chained.outs = {outs, 3};
  Launch launch(form, chained);
  const int32_t status = run_form(chained, form, launch);
  space({form.chained == 1 ? sums : products, result.dtype(), {outs, 1}, {outs, 3}});
  return status;
}

}  // namespace

void use_spaces(ArrayRef<const StrataSpaceFile*> files) {
  auto* made = files.empty() ? nullptr : new Tables;  // stays: an entry of it may be at hand
  for (const StrataSpaceFile* f : files) made->add(0, *f);
  others.store(made, std::memory_order_release);
}

bool replaced() { return others.load(std::memory_order_acquire) != nullptr; }

bool replaced(const SpaceOp& op) {
  const Tables* other = others.load(std::memory_order_acquire);
  if (STRATA_LIKELY(!other)) return false;
  return std::any_of(other->entries[0].begin(), other->entries[0].end(),
                     [&](const auto& e) { return std::strcmp(e.second->name, op.name) == 0; });
}

DType width_dtype(DType t) {
  switch (itemsize(t)) {
    case 1:
      return DType::U8;
    case 2:
      return DType::U16;
    case 4:
      return DType::U32;
    case 8:
      return DType::U64;
    default:
      return DType::C128;
  }
}

int32_t space(const SpaceArgs& args) {
  // A kernel with a computed group has a form for each number of its dims; another has one.
  size_t rank = 0;
  for (const Place& p : args.places) rank = std::max(rank, p.dims.size());
  const StrataSpaceEntry* form = find_form(args.op, args.dtype, int(rank), false);
  if (!form) form = find_form(args.op, args.dtype, 0, false);
  STRATA_INTERNAL(form, args.op.name, ": no space kernel for ", args.dtype, " and a group of ", rank, " dims");
  if (form->operands == 1 && form->ranges == 1 && form->operand[0].dims == 1 && args.outs[0]->is_contiguous())
    return run_line(*form, *args.outs[0], args.scalars);
  Launch launch(*form, args);
  if (STRATA_UNLIKELY(launch.contributions() > kChain))
    if (const StrataSpaceEntry* chained = find_form(args.op, args.dtype, form->rank, false, true)) {
      STRATA_CHECK_NOT_IMPLEMENTED(launch.contributions() <= kMostTurns, args.op.name, ": ", launch.contributions(),
                                   " contributions to one element at once; divide the operands into parts");
      if (!few(args)) return in_chains(args, *chained);
    }
  return run_form(args, *form, launch);
}

}  // namespace strata::eager
