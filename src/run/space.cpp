#include "run/space.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "core/parallel.h"
#include "lower/registry.h"
#include "run/isa.h"

namespace strata::run {
namespace {

constexpr int kMaxRanges = 16, kMaxOperands = 8, kMaxDims = TensorImpl::kMaxDims;
constexpr int64_t kGrain = 16384;  // elements that are worth a thread

struct Tables {
  std::unordered_map<std::string, const StrataSpaceEntry*> entries[kIsaCount];
  static std::string key(const char* name, int dtype, int rank, int inner) {
    return std::string(name) + '/' + char('a' + dtype) + char('0' + rank) + char('0' + inner);
  }
  Tables() {
    for (const StrataSpaceTable* t = strata_space_tables; t->isa; ++t)
      for (int64_t k = 0; k < t->file->count; ++k) {
        const StrataSpaceEntry& e = t->file->entries[k];
        entries[isa_index(t->isa)].emplace(key(e.name, e.dtype, e.rank, e.inner), &e);
      }
  }
};

constexpr StrataSpaceEntry kNone = {};  // remembered where there is none

// Null where the kernel has no such form.
const StrataSpaceEntry* find_form(const SpaceOp& op, DType dtype, int rank, bool inner) {
  if (rank > kMaxGroup) return nullptr;
  const uint32_t now = isa_generation();
  if (STRATA_UNLIKELY(op.generation.load(std::memory_order_relaxed) != now)) {
    for (auto& row : op.cache)
      for (auto& c : row) c.store(nullptr, std::memory_order_relaxed);
    op.generation.store(now, std::memory_order_relaxed);
  }
  auto& cached = op.cache[int(dtype)][2 * rank + inner];
  if (const StrataSpaceEntry* e = cached.load(std::memory_order_relaxed)) return e == &kNone ? nullptr : e;
  static const Tables* tables = new Tables;
  const StrataSpaceEntry* e = nullptr;
  for (int isa : {current_isa(), 0}) {
    auto found = tables->entries[isa].find(Tables::key(op.name, int(dtype), rank, inner));
    if (found == tables->entries[isa].end()) continue;
    e = found->second;
    break;
  }
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
  Launch(const StrataSpaceEntry& form, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> ins,
         ArrayRef<Place> places, ArrayRef<Extent> extents)
      : form_(form) {
    STRATA_INTERNAL(form.operands == outs.size() + ins.size() && form.operands <= kMaxOperands, form.name, ": takes ",
                    int(form.operands), " operands");
    std::fill(std::begin(extent_), std::end(extent_), int64_t(-1));
    for (size_t k = 0; k < form.operands; ++k) bind(k, k < outs.size() ? *outs[k] : *ins[k - outs.size()], places);
    for (size_t k = 0; k < form.operands; ++k)
      if (!operand_[k].has_plain) std::fill_n(operand_[k].plain, std::max(plain_, 0), int64_t(0));
    for (int r = 0; r < form.ranges; ++r)
      for (const Extent& e : extents)
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
      if (plain_size_[d] == 1) continue;
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
    int64_t own = 0;
    for (int d = 0; d < form_.operand[0].dims; ++d) {
      const int r = form_.operand[0].range[d];
      if (form_.range[r].kind == STRATA_DIM_PLAIN || extent_[r] <= 1) continue;
      own = own ? std::min(own, operand_[0].stride[d]) : operand_[0].stride[d];
    }
    return own == 0 || operand_[0].plain[plain_ - 1] < own;
  }

  int32_t run(const void* scalars);

 private:
  void swap_plain(int a, int b) {
    std::swap(plain_size_[a], plain_size_[b]);
    for (int k = 0; k < form_.operands; ++k) std::swap(operand_[k].plain[a], operand_[k].plain[b]);
  }

  void bind(size_t k, const Tensor& t, ArrayRef<Place> places);

  const StrataSpaceEntry& form_;
  Operand operand_[kMaxOperands];
  int64_t extent_[kMaxRanges];
  int64_t plain_size_[kMaxDims];
  int plain_ = -1;
  double reads_ = 1;  // elements of a reduction
};

void Launch::bind(size_t k, const Tensor& t, ArrayRef<Place> places) {
  const StrataSpaceOperand& o = form_.operand[k];
  Operand& out = operand_[k];
  out.width = t.itemsize();
  out.memory = t.numel() ? t.bytes() : nullptr;
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
    if (extent < 0) extent = t.sizes()[at];
  }
  out.has_plain = has_plain;
  int plain = 0;
  for (int64_t d = 0; d < nd; ++d) {
    if (kinds[d] != 0) continue;
    STRATA_INTERNAL(has_plain, form_.name, ": operand ", k, " has a dim that its pattern lacks");
    if (plain_ < 0) plain_size_[plain] = t.sizes()[d];
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
    if (split < 0 || (end[split] < 16 && extent_[r] > end[split])) split = loops;
    ++loops;
  }
  int64_t times = 1;
  for (int d = 0; d < walked; ++d) times *= plain_size_[d];
  if (volume == 0 || times == 0) return 0;
  const int64_t units = split < 0 ? 1 : end[split];
  std::atomic<int32_t> status{0};
  // Elements that a unit reads, those of its reductions counted.
  const double work = std::max(1.0, double(volume) / double(units) * reads_);
  parallel_for(0, times * units, std::max<int64_t>(1, int64_t(double(kGrain) / work)), [&](int64_t from, int64_t to) {
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
  });
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

}  // namespace

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

int32_t space(const SpaceOp& op, DType dtype, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> ins,
              ArrayRef<Place> places, const void* scalars, ArrayRef<Extent> extents) {
  // A kernel with a computed group has a form for each number of its dims; another has one.
  size_t rank = 0;
  for (const Place& p : places) rank = std::max(rank, p.dims.size());
  const StrataSpaceEntry* form = find_form(op, dtype, int(rank), false);
  if (!form) form = find_form(op, dtype, 0, false);
  STRATA_INTERNAL(form, op.name, ": no space kernel for ", dtype, " and a group of ", rank, " dims");
  if (form->operands == 1 && form->ranges == 1 && form->operand[0].dims == 1 && outs[0]->is_contiguous())
    return run_line(*form, *outs[0], scalars);
  Launch launch(*form, outs, ins, places, extents);
  launch.order_plain();
  const StrataSpaceEntry* inner = launch.wants_inner() ? find_form(op, dtype, form->rank, true) : nullptr;
  if (!inner) return launch.run(scalars);
  Launch within(*inner, outs, ins, places, extents);
  within.order_plain();
  return within.run(scalars);
}

}  // namespace strata::run
