#include "run/space.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "core/parallel.h"
#include "lower/registry.h"
#include "run/copy.h"
#include "run/isa.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/space_launch.h"

namespace strata::eager {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread
constexpr uint64_t kFewBins = 256, kMostBins = 1 << 20;
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

}  // namespace

const StrataSpaceEntry* find_form(const SpaceOp& op, DType dtype, int rank, bool inner, bool chained) {
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

const StrataSpaceEntry* first_form(const SpaceArgs& args) {
  size_t rank = 0;
  for (const Place& p : args.places) rank = std::max(rank, p.dims.size());
  const StrataSpaceEntry* form = find_form(args.op, args.dtype, int(rank), false);
  return form ? form : find_form(args.op, args.dtype, 0, false);
}

namespace {

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

// Runs `form`, prepared as `launch`, or the one with a plain range inside where that walks memory better. Of elements
// that are only moved a few neighbours are one.
int32_t run_form(const SpaceArgs& args, const StrataSpaceEntry& form, SpaceLaunch& launch) {
  launch.order_plain();
  if (const int64_t many = args.op.moves && !replaced(args.op) ? launch.as_one() : 0) {
    const DType dtype = dtype_of_width(many * args.outs[0]->itemsize());
    if (const StrataSpaceEntry* wide = find_form(args.op, dtype, form.rank, form.inner)) {
      SpaceLaunch elements(*wide, launch, many);
      if (!elements.wants_inner()) return elements.run(args.scalars);
    }
  }
  const StrataSpaceEntry* inner =
      launch.wants_inner() ? find_form(args.op, args.dtype, form.rank, true, form.chained) : nullptr;
  if (!inner) return launch.run(args.scalars);
  SpaceLaunch within(*inner, args);
  within.order_plain();
  return within.run(args.scalars);
}

// Whether it is plain that no place gets more contributions than a chain has: places that agree in their last bits are
// counted together, in few bins, which the first cache holds.
bool few(const SpaceArgs& args) {
  if (args.index < 0) return false;
  const Tensor& index = *args.ins[size_t(args.index)];
  if (index.dim() != 1 || index.dtype() != DType::I64) return false;
  const int64_t n = index.numel(), step = index.strides()[0], *value = index.data<int64_t>();
  const uint64_t mask = std::bit_ceil(std::max(uint64_t(n) / (kChain * 3 / 4), kFewBins)) - 1;
  if (mask >= kMostBins) return false;
  // A part has bins of its own, which are added up. Of few places some bin is full after the first elements.
  int64_t done = 0;
  const int64_t soon = std::min(n, 16 * kChain), parts = n > 4 * soon ? num_threads() : 1;
  const size_t bins = size_t(mask) + 1;
  std::vector<uint32_t> count(size_t(parts) * bins);
  std::atomic<bool> over{false};
  // Bytes hold what is added between two looks: their sum tells whether one of them ran over.
  auto add = [&](int64_t part, int64_t begin, int64_t end) {
    uint32_t* mine = count.data() + size_t(part) * bins;
    std::vector<uint8_t> seen(bins);
    while (begin < end && !over.load(std::memory_order_relaxed)) {
      const int64_t stop = std::min(end, begin + 4 * int64_t(bins)), length = stop - begin;
      for (; begin < stop; ++begin) ++seen[uint64_t(value[begin * step]) & mask];
      uint32_t sum = 0, most = 0;
      for (size_t bin = 0; bin < bins; ++bin) {
        sum += seen[bin];
        most = std::max(most, mine[bin] += seen[bin]);
        seen[bin] = 0;
      }
      if (sum != length || most > kChain) over.store(true, std::memory_order_relaxed);
    }
  };
  for (int64_t end : {soon, std::max(soon, n / 16)}) {
    add(0, done, end);
    done = end;
    if (over) return false;
  }
  const int64_t length = (n - done + parts - 1) / parts;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      add(part, done + part * length, std::min(n, done + (part + 1) * length));
  });
  for (size_t bin = 0; bin < bins && !over; ++bin) {
    uint32_t sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += count[size_t(part) * bins + bin];
    if (sum > kChain) over = true;
  }
  return !over;
}

// Chains of whole lines; none where they are no such, or where an index is outside.
std::optional<int32_t> in_lines(const SpaceArgs& args, const StrataSpaceEntry& form, SpaceLaunch& launch,
                                bool products) {
  launch.order_plain();
  const StrataSpaceEntry* inner = launch.wants_inner() ? find_form(args.op, args.dtype, form.rank, true) : nullptr;
  if (!inner) return std::nullopt;
  SpaceLaunch within(*inner, args);
  within.order_plain();
  return within.run_lines(args.scalars, args.outs[0]->dtype(), products);
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
  SpaceLaunch launch(form, chained);
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

namespace {

// An input that says one element again and again along the dim which the result walks fastest: kernels' innermost loops
// are vectors only over elements that lie side by side, and a copy of it is quicker made than read from in their way.
bool repeats_inside(const Tensor& in, const Tensor& result) {
  constexpr int64_t kWorth = 1024;
  if (in.dim() == 0 || result.dim() == 0 || in.strides().back() != 0 || in.sizes().back() <= 1) return false;
  return result.strides().back() == 1 && in.numel() >= kWorth && in.numel() <= 2 * result.numel();
}

// An input of a scatter, which walks all of it, that says elements again and again (the gradient of a sum).
bool repeats_somewhere(const Tensor& in, const StrataSpaceEntry& form) {
  constexpr int64_t kWorth = 1024;
  if (in.numel() < kWorth) return false;
  bool scatters = false, repeats = false;
  for (int r = 0; r < form.ranges; ++r) scatters |= form.range[r].runs == 2;
  for (int64_t d = 0; d < in.dim(); ++d) repeats |= in.strides()[size_t(d)] == 0 && in.sizes()[size_t(d)] > 1;
  return scatters && repeats;
}

// A tensor of those values whose last dim has elements of its own. Other dims that step by 0 do so still: a result may
// go further along them than their size.
Tensor with_own_elements(const Tensor& in) {
  DimVec sizes(in.sizes());
  for (size_t d = 0; d + 1 < sizes.size(); ++d)
    if (in.strides()[d] == 0) sizes[d] = 1;
  const Tensor copy = make_tensor(sizes, in.dtype());
  copy_values(copy, in.alias(sizes, in.strides(), in.storage_offset()));
  DimVec strides(copy.strides());
  for (size_t d = 0; d + 1 < sizes.size(); ++d)
    if (in.strides()[d] == 0) strides[d] = 0;
  return copy.alias(in.sizes(), strides, 0);
}

int32_t space_of_copies(const SpaceArgs& args, const StrataSpaceEntry& form) {
  std::vector<Tensor> copies(args.ins.size());
  std::vector<const Tensor*> ins(args.ins.begin(), args.ins.end());
  for (size_t k = 0; k < ins.size(); ++k) {
    if (int(k) != args.index && repeats_somewhere(*ins[k], form))
      copies[k] = contiguous_copy(*ins[k]);
    else if (args.index < 0 && repeats_inside(*ins[k], *args.outs[0]))
      copies[k] = with_own_elements(*ins[k]);
    else
      continue;
    ins[k] = &copies[k];
  }
  SpaceArgs other = args;
  other.ins = {ins.data(), ins.size()};
  return space(other);
}

// Where the index says one place for whole lines, since it repeats along all other dims: the kernel for lines.
std::optional<int32_t> space_of_lines(const SpaceArgs& args) {
  const Tensor& index = *args.ins[size_t(args.index)];
  if (index.dim() < 2 || args.places.empty() || args.places[0].dims.size() != 1 || replaced()) return std::nullopt;
  const int64_t at = args.places[0].dims[0];
  bool repeats = false;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (d == at || index.sizes()[d] == 1) continue;
    if (index.strides()[d] != 0) return std::nullopt;
    repeats = true;
  }
  Slot one;
  SpaceArgs lines{*args.op.lines, args.dtype, {}, {}, args.places, one.bytes, args.extents, args.index};
  const StrataSpaceEntry* form = repeats ? first_form(lines) : nullptr;
  // A complex number times one is not that number where it is infinite.
  if (!form || (form->scalars && is_complex(args.dtype))) return std::nullopt;
  if (form->scalars) store_scalar(Scalar(1), traits(args.dtype).compute, one.bytes);
  std::vector<Tensor> cut;  // to what the index has along its other dims
  cut.reserve(args.ins.size() + 1);
  const auto within = [&](const Tensor& t) {
    DimVec sizes(index.sizes());
    sizes[at] = t.sizes()[at];
    return &cut.emplace_back(t.alias(sizes, t.strides(), t.storage_offset()));
  };
  const Tensor* out = within(*args.outs[0]);
  std::vector<const Tensor*> ins(args.ins.begin(), args.ins.end());
  for (size_t k = 0; k < ins.size(); ++k)
    ins[k] = k != size_t(args.index)
                 ? within(*ins[k])
                 : &cut.emplace_back(index.alias(IntArrayRef(index.sizes()[at]), IntArrayRef(index.strides()[at]),
                                                 index.storage_offset()));
  lines.outs = {&out, 1};
  lines.ins = {ins.data(), ins.size()};
  return space(lines);
}

}  // namespace

int32_t space(const SpaceArgs& args) {
  if (args.op.lines && args.index >= 0)
    if (const std::optional<int32_t> status = space_of_lines(args)) return *status;
  const StrataSpaceEntry* form = first_form(args);
  STRATA_INTERNAL(form, args.op.name, ": no space kernel for ", args.dtype, " and places ", args.places.size());
  for (size_t k = 0; k < args.ins.size(); ++k)
    if (STRATA_UNLIKELY((args.index < 0 && repeats_inside(*args.ins[k], *args.outs[0])) ||
                        (int(k) != args.index && repeats_somewhere(*args.ins[k], *form))))
      return space_of_copies(args, *form);
  if (form->operands == 1 && form->ranges == 1 && form->operand[0].dims == 1 && args.outs[0]->is_contiguous())
    return run_line(*form, *args.outs[0], args.scalars);
  SpaceLaunch launch(*form, args);
  if (STRATA_UNLIKELY(launch.contributions() > kChain))
    if (const StrataSpaceEntry* chained = find_form(args.op, args.dtype, form->rank, false, true)) {
      STRATA_CHECK_NOT_IMPLEMENTED(launch.contributions() <= kMostTurns, args.op.name, ": ", launch.contributions(),
                                   " contributions to one element at once; divide the operands into parts");
      if (std::optional<int32_t> status = in_lines(args, *form, launch, chained->chained == 2)) return *status;
      if (!few(args)) return in_chains(args, *chained);
    }
  return run_form(args, *form, launch);
}

}  // namespace strata::eager
