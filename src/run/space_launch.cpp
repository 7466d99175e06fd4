#include "run/space_launch.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace strata::eager {

SpaceLaunch::SpaceLaunch(const StrataSpaceEntry& form, const SpaceArgs& args) : form_(form) {
  const auto& [op, dtype, outs, ins, places, scalars, extents, index] = args;
  for (int r = 0; r < form.ranges; ++r) scatters_ |= form.range[r].runs == 2;
  STRATA_INTERNAL(form.operands == outs.size() + ins.size() && form.operands <= kMaxOperands, form.name, ": takes ",
                  int(form.operands), " operands");
  if (index >= 0) index_ = int(outs.size()) + index;
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

SpaceLaunch::SpaceLaunch(const StrataSpaceEntry& form, const SpaceLaunch& narrow, int64_t many)
    : form_(form),
      plain_(narrow.plain_ - 1),
      index_(narrow.index_),
      reads_(narrow.reads_),
      scatters_(narrow.scatters_) {
  std::copy(std::begin(narrow.role_), std::end(narrow.role_), role_);
  std::copy(std::begin(narrow.operand_), std::end(narrow.operand_), operand_);
  std::copy(std::begin(narrow.extent_), std::end(narrow.extent_), extent_);
  std::copy(std::begin(narrow.plain_size_), std::end(narrow.plain_size_), plain_size_);
  for (int k = 0; k < form.operands; ++k) {
    if (!narrow.is_moved(k)) continue;
    operand_[k].width *= many;
    for (int d = 0; d < form.operand[k].dims; ++d) operand_[k].stride[d] /= many;
    for (int d = 0; d < plain_; ++d) operand_[k].plain[d] /= many;
  }
}

int64_t SpaceLaunch::as_one() const {
  const int last = plain_ - 1;
  if (last < 0 || plain_size_[last] < 2) return 0;
  const int64_t many = plain_size_[last], bytes = many * operand_[0].width;
  if (bytes > 16 || !std::has_single_bit(uint64_t(bytes))) return 0;
  for (int k = 0; k < form_.operands; ++k) {
    const Operand& o = operand_[k];
    if (!is_moved(k)) {
      if (o.plain[last] != 0) return 0;
      continue;
    }
    if (!o.has_plain || o.plain[last] != 1 || reinterpret_cast<uintptr_t>(o.memory + o.offset) % uint64_t(bytes))
      return 0;
    for (int d = 0; d < form_.operand[k].dims; ++d) {
      const int r = form_.operand[k].range[d];
      if (form_.range[r].kind != STRATA_DIM_PLAIN && extent_[r] > 1 && o.stride[d] % many) return 0;
    }
    for (int d = 0; d < last; ++d)
      if (o.plain[d] % many) return 0;
  }
  return many;
}

void SpaceLaunch::order_plain() {
  for (int i = 1; i < plain_; ++i)
    for (int j = i; j > 0 && operand_[0].plain[j - 1] < operand_[0].plain[j]; --j) swap_plain(j - 1, j);
  int kept = 0;
  for (int d = 0; d < plain_; ++d)
    if (plain_size_[d] != 1 && !repeats(d)) keep_plain(d, kept, kept > 0, 0);
  plain_ = kept;
}

bool SpaceLaunch::keep_plain(int d, int& kept, bool joins, int first) {
  for (int k = first; joins && k < form_.operands; ++k)
    joins = operand_[k].plain[kept - 1] == operand_[k].plain[d] * plain_size_[d];
  const int to = joins ? kept - 1 : kept++;
  plain_size_[to] = plain_size_[d] * (joins ? plain_size_[to] : 1);
  for (int k = 0; k < form_.operands; ++k) operand_[k].plain[to] = operand_[k].plain[d];
  return joins;
}

void SpaceLaunch::join_plain(DimVec& sizes) {
  size_t dims = 0;
  int kept = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int p = plain_role(role_[d]);  // its own inverse
    const bool joins = p >= 0 && keep_plain(p, kept, dims > 0 && role_[dims - 1] < 0, 1);
    if (joins) {
      sizes[dims - 1] *= sizes[d];
      continue;
    }
    role_[dims] = p >= 0 ? plain_role(kept - 1) : role_[d];
    sizes[dims++] = sizes[d];
  }
  sizes.resize(dims);
  if (kept > 0) plain_ = kept;
}

bool SpaceLaunch::wants_inner() const {
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

int64_t SpaceLaunch::contributions() const {
  int64_t n = 1;
  for (int r = 0; r < form_.ranges; ++r)
    if (form_.range[r].runs == 2 && (extent_[r] == 0 || __builtin_mul_overflow(n, extent_[r], &n)))
      return extent_[r] == 0 ? 0 : std::numeric_limits<int64_t>::max();
  return n;
}

// One element goes to one place again and again: once is enough.
bool SpaceLaunch::repeats(int d) const {
  for (int k = 0; k < form_.operands; ++k)
    if (operand_[k].plain[d] != 0) return false;
  return true;
}

void SpaceLaunch::swap_plain(int a, int b) {
  std::swap(plain_size_[a], plain_size_[b]);
  for (int k = 0; k < form_.operands; ++k) std::swap(operand_[k].plain[a], operand_[k].plain[b]);
}

int SpaceLaunch::outputs() const {
  int n = 0;
  while (n < form_.operands && form_.operand[n].output) ++n;
  return n;
}

void SpaceLaunch::bind(size_t k, const Tensor& t, ArrayRef<Place> places) {
  const StrataSpaceOperand& o = form_.operand[k];
  Operand& out = operand_[k];
  const bool beside = form_.chained && (k == 1 || k == 2);  // lies as the result does
  if (beside) out = operand_[0];
  out.width = t.itemsize();
  out.memory = t.numel() && !t.storage()->handle() ? t.bytes() : nullptr;  // a device has its own
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
    if (k == 0) role_[at] = o.range[d];
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
    if (k == 0) role_[d] = plain_role(plain);
    out.plain[plain++] = t.strides()[d];
  }
  if (!has_plain) return;
  STRATA_INTERNAL(plain_ < 0 || plain == plain_, form_.name, ": operand ", k, " has ", plain, " plain dims");
  plain_ = plain;
}

void SpaceLaunch::lay_out(int64_t* stride) {
  for (int k = 0; k < form_.operands; ++k)
    for (int d = 0; d < form_.operand[k].dims; ++d) {
      const StrataSpaceRange& r = form_.range[form_.operand[k].range[d]];
      int64_t s = operand_[k].stride[d];
      if (r.kind == STRATA_DIM_PLAIN)
        s = r.component ? operand_[k].plain[inner()] : outer() >= 0 ? operand_[k].plain[outer()] : 0;
      *stride++ = s;
    }
  for (int r = 0; r < form_.ranges; ++r)
    if (form_.range[r].kind == STRATA_DIM_PLAIN)
      extent_[r] = form_.range[r].component ? plain_size_[inner()] : outer() >= 0 ? plain_size_[outer()] : 1;
}

}  // namespace strata::eager
