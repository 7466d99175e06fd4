#include "run/space_pieces.h"

#include <algorithm>

namespace strata::eager {

SpacePieces::SpacePieces(const StrataSpaceEntry& form, const SpaceArgs& args)
    : SpaceLaunch(form, args), sizes_(args.outs[0]->sizes()), scalars_(args.scalars) {
  join_plain(sizes_);
  lay_out(stride_);
  const int dims = int(sizes_.size());
  auto dim_of = [&](int role) {
    const int d = int(std::find(role_, role_ + dims, role) - role_);
    return d < dims ? d : -1;
  };
  auto dim_of_range = [&](int r) {
    const bool plain = form.range[r].kind == STRATA_DIM_PLAIN;
    return dim_of(plain ? plain_role(form.range[r].component ? inner() : outer()) : r);
  };
  // The result is a block of rows along its last dim.
  for (int d = 0; d < form.operand[0].dims; ++d) {
    const int dim = dim_of_range(form.operand[0].range[d]);
    stride_[d] = dim == dims - 1 ? 1 : dim == dims - 2 ? sizes_[size_t(dims - 1)] : 0;
    has_block_ |= dim >= 0 && dim == dims - 2;
  }
  int loops = 0;
  for (int r = 0; r < form.ranges; ++r)
    if (form.range[r].runs) dim_of_loop_[loops++] = dim_of_range(r);
  for (int p = 0; p < outer(); ++p) dim_of_plain_[p] = dim_of(plain_role(p));
}

std::unique_ptr<SpacePieces> SpacePieces::of(const SpaceArgs& args) {
  size_t rank = 0;
  for (const Place& p : args.places) rank = std::max(rank, p.dims.size());
  const StrataSpaceEntry* form = first_form(args);
  if (!form || rank > size_t(kMaxGroup) || args.outs.size() != 1 || args.outs[0]->dim() == 0) return nullptr;
  std::unique_ptr<SpacePieces> made(new SpacePieces(*form, args));
  if (made->role_[made->sizes_.size() - 1] < 0)
    if (const StrataSpaceEntry* inner = find_form(args.op, args.dtype, form->rank, true))
      made.reset(new SpacePieces(*inner, args));
  return made->each_apart() ? std::move(made) : nullptr;
}

bool SpacePieces::each_apart() const {
  const size_t dims = sizes_.size();
  const int last = role_[dims - 1];
  bool along = last >= 0 && form_.range[last].runs == 1;
  for (int p : {inner(), outer()}) along |= p >= 0 && last == plain_role(p);
  for (int r = 0; r < form_.ranges; ++r) {
    const StrataSpaceRange& range = form_.range[r];
    if (range.runs > 1) return false;
    if (range.runs && range.kind != STRATA_DIM_PLAIN && std::find(role_, role_ + dims, r) == role_ + dims) return false;
  }
  return along && !scatters_;
}

void SpacePieces::make(int64_t first, int64_t count, char* to) const {
  const size_t dims = sizes_.size(), last = dims - 1;
  const int64_t width = operand_[0].width, inside = sizes_[last];
  int64_t at[kMaxDims], size[kMaxDims];
  for (size_t d = last; d > 0; --d) {
    at[d] = first % sizes_[d];
    first /= sizes_[d];
    size[d] = 1;
  }
  at[0] = first;
  size[0] = 1;
  void* memory[kMaxOperands];
  int64_t offset[kMaxOperands], begin[kMaxRanges], end[kMaxRanges];
  for (int k = 1; k < form_.operands; ++k) memory[k] = operand_[k].memory;
  int loops = 0;
  for (int r = 0; r < form_.ranges; ++r) loops += form_.range[r].runs != 0;
  int32_t mine = 0;
  const StrataNestArgs args{memory, offset, extent_, stride_, scalars_, begin, end, &mine};
  while (count > 0) {
    size[last] = std::min(count, inside - at[last]);
    if (has_block_)
      size[last - 1] = at[last] ? 1 : std::clamp(count / inside, int64_t(1), sizes_[last - 1] - at[last - 1]);
    for (int l = 0; l < loops; ++l) {
      const int d = dim_of_loop_[l];
      begin[l] = d < 0 ? 0 : at[d];
      end[l] = begin[l] + (d < 0 ? 1 : size[d]);
    }
    for (int k = 1; k < form_.operands; ++k) {
      offset[k] = operand_[k].offset;
      for (int p = 0; p < outer(); ++p) offset[k] += at[dim_of_plain_[p]] * operand_[k].plain[p] * operand_[k].width;
    }
    memory[0] = to;
    offset[0] = -(at[last] + (has_block_ ? at[last - 1] * inside : 0)) * width;
    form_.fn(&args);
    const int64_t made = has_block_ ? size[last] * size[last - 1] : size[last];
    to += made * width;
    count -= made;
    at[last] += size[last];
    for (size_t d = last; d > 0 && at[d] >= sizes_[d]; --d) at[d] = 0, at[d - 1] += d == last ? size[d - 1] : 1;
  }
  if (mine) status_.fetch_or(mine, std::memory_order_relaxed);
}

}  // namespace strata::eager
