#include "run/loop/pointwise_loop.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>

#include "core/parallel.h"
#include "run/loop/blocks.h"
#include "run/loop/cast.h"
#include "run/loop/maker.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kChunk = 1024;   // elements staged at a time
constexpr int64_t kTinyRow = 15;   // elements of a row that take less time than a call for them
constexpr int64_t kLongRow = 128;  // elements of a row that are worth a kernel's call

// While elements are made, memory brings what is read and written beside them.
void prefetch(char* p, int64_t bytes, bool writes) {
  for (const char* end = p + bytes; p < end; p += 64) writes ? __builtin_prefetch(p, 1) : __builtin_prefetch(p);
}

}  // namespace

void PointwiseLoop::add(const Tensor& t, DType kernel, bool output) {
  STRATA_INTERNAL(count_ < kMaxOperands, "a pointwise kernel with more than ", kMaxOperands, " operands");
  Operand& o = operands_[count_++];
  outputs_ += output;
  o.base = t.bytes();
  o.dtype = t.dtype();
  o.kernel = kernel;
  o.output = output;
  size_t n = shape_.size(), lead = n - t.dim();
  o.strides.resize(n, 0);
  for (size_t d = 0; d < n; ++d)
    o.strides[d] = d < lead || t.sizes()[d - lead] == 1 ? 0 : t.strides()[d - lead] * t.itemsize();
}

void PointwiseLoop::add(char* base, DimVec strides, DType kernel, bool output) {
  STRATA_INTERNAL(count_ < kMaxOperands, "a pointwise kernel with more than ", kMaxOperands, " operands");
  Operand& o = operands_[count_++];
  outputs_ += output;
  o.base = base;
  o.dtype = o.kernel = kernel;
  o.output = output;
  o.strides = std::move(strides);
}

void PointwiseLoop::add_made(const Maker& maker, DimVec strides, DType kernel) {
  add(made_base(), std::move(strides), kernel, false);
  operands_[count_ - 1].maker = &maker;
}

// Sorts dims so that the first output is walked in the order of its memory.
void PointwiseLoop::order_dims() {
  size_t n = shape_.size();
  SmallVec<int64_t, 8> order;
  for (size_t d = 0; d < n; ++d)
    if (shape_[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return operands_[0].strides[a] > operands_[0].strides[b]; });
  DimVec shape;
  for (int64_t d : order) shape.push_back(shape_[d]);
  for (int i = 0; i < count_; ++i) {
    DimVec s;
    for (int64_t d : order) s.push_back(operands_[i].strides[d]);
    operands_[i].strides = s;
  }
  shape_ = shape;
}

void PointwiseLoop::coalesce() {
  if (shape_.empty()) {
    shape_.push_back(1);
    for (int i = 0; i < count_; ++i) operands_[i].strides.push_back(0);
    return;
  }
  size_t kept = 0;
  for (size_t d = 1; d < shape_.size(); ++d) {
    bool joins = true;
    for (int i = 0; i < count_; ++i) joins &= operands_[i].strides[kept] == operands_[i].strides[d] * shape_[d];
    if (joins) {
      shape_[kept] *= shape_[d];
    } else {
      shape_[++kept] = shape_[d];
    }
    for (int i = 0; i < count_; ++i) operands_[i].strides[kept] = operands_[i].strides[d];
  }
  shape_.resize(kept + 1);
  for (int i = 0; i < count_; ++i) operands_[i].strides.resize(kept + 1);
}

// A dim along which an operand lies while rows go across it becomes the one of neighbouring rows, which are turned
// over some at a time.
void PointwiseLoop::bring_near() {
  constexpr int64_t kFar = 64, kFewColumns = 32;  // bytes, and elements of a row that are worth it
  const size_t last = shape_.size() - 1;
  for (int i = 1; i < count_ && shape_[last] >= kFewColumns; ++i) {
    const Operand& o = operands_[i];
    if (o.maker || o.dtype != o.kernel || std::abs(o.strides[last]) <= kFar) continue;
    for (size_t d = 0; d + 1 < last; ++d) {
      if (o.strides[d] != itemsize(o.kernel) || shape_[d] < kBlock) continue;
      std::rotate(shape_.begin() + d, shape_.begin() + d + 1, shape_.begin() + last);
      for (int k = 0; k < count_; ++k) {
        DimVec& s = operands_[k].strides;
        std::rotate(s.begin() + d, s.begin() + d + 1, s.begin() + last);
      }
      return;
    }
  }
}

int64_t PointwiseLoop::offset_at(const Operand& o, int64_t index) const {
  int64_t offset = 0;
  for (size_t d = shape_.size(); d-- > 0;) {
    offset += index % shape_[d] * o.strides[d];
    index /= shape_[d];
  }
  return offset;
}

// Elements of an input from where they are into a contiguous buffer of the kernel's dtype.
void PointwiseLoop::take(const Operand& o, const char* from, int64_t stride, char* buffer, int64_t count) {
  const int64_t width = itemsize(o.kernel);
  if (o.maker) return make_elements(*o.maker, from, stride, width, buffer, width, count);
  cast_fn(o.dtype, o.kernel)(from, stride, buffer, width, count);
}

// Moves elements [begin, begin + count) of an operand between its memory and a contiguous buffer of the kernel's dtype.
void PointwiseLoop::stage(const Operand& o, char* buffer, int64_t begin, int64_t count, bool in) const {
  const CastFn cast = cast_fn(o.kernel, o.dtype);
  int64_t width = itemsize(o.kernel), inner = shape_.back(), stride = o.strides.back();
  if (o.ordered) {
    char* p = o.base + begin * itemsize(o.dtype);
    in ? take(o, p, stride, buffer, count) : cast(buffer, width, p, stride, count);
    return;
  }
  size_t n = shape_.size();
  const bool tiny = inner <= kTinyRow && !o.maker && n > 1;  // column by column
  const bool spreads = in && stride == 0 && o.dtype == o.kernel && !o.maker && n > 1;
  SmallVec<int64_t, 8> at(n);
  int64_t rest = begin;
  char* p = o.base;
  for (size_t d = n; d-- > 0;) {
    at[d] = rest % shape_[d];
    rest /= shape_[d];
    p += at[d] * o.strides[d];
  }
  while (count > 0) {
    int64_t run = std::min(count, inner - at[n - 1]);
    if (const int64_t rows = o.turned && at[n - 1] == 0 ? std::min(count / inner, shape_[n - 2] - at[n - 2]) : 0;
        rows > 1) {
      if (in)
        transpose(width, p, stride, buffer, inner * width, inner, rows);
      else
        transpose(width, buffer, inner * width, p, stride, rows, inner);
      run = rows * inner;
      p += (rows - 1) * width;
      at[n - 2] += rows - 1;
    } else if (const int64_t many = spreads && at[n - 1] == 0 ? std::min(count / inner, shape_[n - 2] - at[n - 2]) : 0;
               many > 1) {
      spread(p, o.strides[n - 2], width, buffer, many, inner);
      run = many * inner;
      p += (many - 1) * o.strides[n - 2];
      at[n - 2] += many - 1;
    } else if (const int64_t few = tiny && at[n - 1] == 0 ? std::min(count / inner, shape_[n - 2] - at[n - 2]) : 0;
               few > 1) {
      const int64_t apart = o.strides[n - 2], row = inner * width;
      const CastFn from = cast_fn(o.dtype, o.kernel);
      for (int64_t k = 0; k < inner; ++k)
        in ? from(p + k * stride, apart, buffer + k * width, row, few)
           : cast(buffer + k * width, row, p + k * stride, apart, few);
      run = few * inner;
      p += (few - 1) * apart;
      at[n - 2] += few - 1;
    } else if (in)
      take(o, p, stride, buffer, run);
    else
      cast(buffer, width, p, stride, run);
    buffer += run * width;
    count -= run;
    if (count == 0) return;
    p -= at[n - 1] * stride;
    at[n - 1] = 0;
    for (size_t d = n - 1; d-- > 0;) {
      p += o.strides[d];
      if (++at[d] < shape_[d]) break;
      p -= shape_[d] * o.strides[d];
      at[d] = 0;
    }
  }
}

void PointwiseLoop::run_range(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end,
                              int32_t* status) const {
  alignas(64) char buffer[kMaxOperands][kChunk * 16];
  int64_t inner = shape_.back();
  bool by_row = inner >= long_row_;
  // Many rows at a time: what lies turned over, and what is only converted beside rows that come again.
  const auto in_order = [](const Operand& o) { return o.ordered || o.constant || o.repeats; };
  const auto turned = [](const Operand& o) { return o.turned; };
  if (inner <= kChunk / 4)
    by_row &=
        std::none_of(operands_, operands_ + count_, turned) && !std::all_of(operands_, operands_ + count_, in_order);
  if (!by_row) inner = row_;
  // Staged in whole rows, if possible in whole blocks: what is a row again and again stays. What is made anew is made
  // in few pieces.
  const int64_t most = kChunk * (!made_ || widest_ > 8 ? 1
                                 : widest_ > 2         ? 2
                                                       : 4),
                even = std::lcm(inner, kBlock),
                chunk = by_row || inner > kChunk ? most
                        : kChunk / even          ? kChunk / even * even
                                                 : kChunk / inner * inner;
  bool staged[kMaxOperands];
  bool any_staged = false;
  int64_t same = INT64_MAX;
  char* ptr[kMaxOperands];
  int64_t size[kMaxOperands], step[kMaxOperands], jump[kMaxOperands];
  CastFn cast[kMaxOperands];
  // What a buffer holds: a row that repeats is staged once, as long as all that repeat stay the same.
  const char* held[kMaxOperands] = {};
  int64_t held_count[kMaxOperands] = {};
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    size[i] = itemsize(o.kernel);
    step[i] = size[i] * kBlock;
    cast[i] = o.output ? cast_fn(o.kernel, o.dtype) : cast_fn(o.dtype, o.kernel);
    bool direct = o.dense || (by_row && o.dtype == o.kernel && o.strides.back() == size[i] && !o.maker);
    staged[i] = !direct && !o.constant;
    if (!by_row && staged[i] && o.repeats) same = std::min(same, o.repeats);
    // A value that is the same along the row is spread once per row.
    if (o.constant) {
      cast[i](o.base, 0, buffer[i], size[i], held_ ? STRATA_HELD_BYTES / size[i] : kBlock);
      ptr[i] = buffer[i];
      step[i] = 0;
    } else if (staged[i] && by_row && !o.output && o.strides.back() == 0) {
      step[i] = 0;
    } else {
      any_staged |= staged[i];
    }
    jump[i] = o.constant || o.repeats ? 0 : inner * size[i];
  }
  // Where the row at hand begins, by operand, and its place in the dims outside of it.
  const size_t outer = shape_.size() - 1;
  int64_t column = begin % inner, row[kMaxOperands];
  SmallVec<int64_t, 8> at(outer);
  for (int64_t d = int64_t(outer) - 1, rest = begin / inner; d >= 0; rest /= shape_[size_t(d--)])
    at[size_t(d)] = rest % shape_[size_t(d)];
  for (int i = 0; i < count_; ++i) row[i] = offset_at(operands_[i], begin - column);
  auto next_row = [&] {
    column = 0;
    for (size_t d = outer; d-- > 0;) {
      for (int i = 0; i < count_; ++i) row[i] += operands_[i].strides[d];
      if (++at[d] < shape_[d]) return;
      for (int i = 0; i < count_; ++i) row[i] -= shape_[d] * operands_[i].strides[d];
      at[d] = 0;
    }
  };
  auto place = [&](int i) { return operands_[i].base + row[i] + column * operands_[i].strides.back(); };
  while (begin < end) {
    int64_t n = end - begin;
    if (by_row) n = std::min(n, inner - column);
    if (any_staged) n = std::min(n, column && chunk % inner == 0 && !by_row ? inner - column : chunk);
    n = std::min(n, same - begin % same);
    if (begin % same == 0) std::fill_n(held_count, count_, 0);
    for (int i = 0; i < count_; ++i) {
      const Operand& o = operands_[i];
      if (o.constant) continue;
      if (!staged[i]) {
        ptr[i] = o.dense ? o.base + begin * size[i] : place(i);
        if (made_) prefetch(ptr[i], n * size[i], o.output);
        continue;
      }
      ptr[i] = buffer[i];
      if (o.output) continue;
      if (!by_row) {
        if (o.repeats && column == 0 && n <= held_count[i]) continue;
        stage(o, buffer[i], begin, n, true);
        held_count[i] = o.repeats && column == 0 ? n : 0;
        continue;
      }
      const char* p = place(i);
      if (p == held[i] && n == held_count[i]) continue;
      take(o, p, o.strides.back(), buffer[i], step[i] ? n : kBlock);
      held[i] = p;
      held_count[i] = n;
    }
    if (column == 0 && n % inner == 0 && holds(jump, step, n / inner, inner))
      run_down(fn, ptr, jump, step, params, n / inner, inner, status);
    else
      run_span(fn, ptr, size, step, outputs_, count_, params, n, 0, again_, status);
    for (int i = 0; i < outputs_; ++i) {
      const Operand& o = operands_[i];
      if (!staged[i]) continue;
      if (by_row)
        cast[i](buffer[i], size[i], place(i), o.strides.back(), n);
      else
        stage(o, buffer[i], begin, n, false);
    }
    begin += n;
    if (!by_row)
      column = begin % inner;
    else if ((column += n) == inner)
      next_row();
  }
}

// Rows that come again: the innermost dim's, or such of several dims as all that does not lie dense comes again by.
void PointwiseLoop::find_rows(int64_t n) {
  const size_t last = shape_.size() - 1;
  const auto repeats = [&](const Operand& o, size_t first, int64_t length) {
    for (size_t d = first; d-- > 0 && o.strides[d] == 0;) length *= shape_[d];
    return !o.output && first > 0 && (length == n || length >= 8 * kChunk) ? length : 0;
  };
  size_t first = last;
  row_ = shape_[last];
  for (int64_t length = row_, f = int64_t(last); f > 0 && length <= kChunk / 2; length *= shape_[size_t(--f)])
    if (std::all_of(operands_, operands_ + count_,
                    [&](const Operand& o) { return o.dense || o.constant || repeats(o, size_t(f), length); })) {
      first = size_t(f);
      row_ = length;
      break;
    }
  for (int i = 0; i < count_; ++i) operands_[i].repeats = repeats(operands_[i], first, row_);
}

bool PointwiseLoop::results_apart(unsigned inputs) const {
  const char *begin[kMaxOperands], *end[kMaxOperands];
  int count = 0;
  for (int i = 0; i < count_; ++i) {
    if (i >= outputs_ && !(inputs >> (i - outputs_) & 1)) continue;
    const Operand& o = operands_[i];
    begin[count] = o.base;
    end[count] = o.base + itemsize(o.dtype);
    for (size_t d = 0; d < shape_.size(); ++d)
      (o.strides[d] < 0 ? begin : end)[count] += (shape_[d] - 1) * o.strides[d];
    ++count;
  }
  return apart(begin, end, outputs_, count);
}

int64_t PointwiseLoop::elements() const {
  int64_t n = 1;
  for (int64_t s : shape_) n *= s;
  return n;
}

bool PointwiseLoop::lay_out(int64_t n) {
  order_dims();
  coalesce();
  bring_near();
  bool all_dense = true;
  for (int i = 0; i < count_; ++i) {
    Operand& o = operands_[i];
    const int64_t width = itemsize(o.kernel);
    int64_t own = itemsize(o.dtype);
    bool zero = true;
    for (int64_t s : o.strides) zero &= s == 0;
    o.constant = !o.output && zero && n > 1;
    o.ordered = !o.constant;
    for (size_t d = shape_.size(); d-- > 0 && o.ordered; own *= shape_[d])
      o.ordered = o.strides[d] == own || shape_[d] == 1;
    o.dense = o.ordered && o.dtype == o.kernel && !o.maker;
    const size_t last = o.strides.size() - 1;
    o.turned = o.dtype == o.kernel && !o.maker && last > 0 && o.strides[last - 1] == width && o.strides[last] > 64;
    all_dense &= o.dense;
    made_ |= o.maker != nullptr;
    widest_ = std::max(widest_, width);
  }
  if (!all_dense) find_rows(n);
  return all_dense;
}

void PointwiseLoop::take_at_once(int64_t together) {
  block_ = together * kBlock;
  long_row_ = together > 1 ? kLongRow * 2 : kLongRow;
}

int32_t PointwiseLoop::run(const StrataKernelEntry& kernel, const void* params) {
  const StrataPointwiseFn fn = kernel.pointwise;
  take_at_once(kernel.together);
  held_ = kernel.held;
  row_forms_ = kernel.row_forms;
  row_values_ = kernel.row_values;
  const int64_t n = elements();
  if (n == 0) return 0;
  const bool dense = lay_out(n);
  if (n >= kTabled && looks_up(kernel)) return run_looked_up(kernel, params, n);
  if (dense) {
    char* ptr[kMaxOperands];
    int64_t size[kMaxOperands];
    for (int i = 0; i < count_; ++i) {
      ptr[i] = operands_[i].base;
      size[i] = itemsize(operands_[i].kernel);
    }
    return run_contiguous(fn, ptr, size, outputs_, count_ - outputs_, params, n);
  }
  std::atomic<int32_t> status{0};
  again_ = results_apart(~0u);
  if (const int64_t tiles = count_tiles(); tiles > 0) {
    parallel_for(0, tiles, std::max<int64_t>(1, kPointwiseGrain / 2 / (tile_rows_ * tile_columns_)),
                 [&](int64_t begin, int64_t end) {
                   int32_t s = 0;
                   run_tiles(fn, params, begin, end, &s);
                   if (s) status.fetch_or(s);
                 });
    return status;
  }
  if (const int64_t valued = one_value_each(); valued || blocks_each()) {
    const int64_t rows = n / shape_.back(), grain = std::max<int64_t>(1, kPointwiseGrain / shape_.back());
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      int32_t s = 0;
      valued ? run_valued(fn, params, valued, begin, end, &s) : run_blocks(fn, params, begin, end, &s);
      if (s) status.fetch_or(s);
    });
    return status;
  }
  const bool in_place = rows_in_place();
  // To make elements costs as much again.
  parallel_for(0, n, made_ ? kPointwiseGrain / 2 : kPointwiseGrain, [&](int64_t begin, int64_t end) {
    int32_t s = 0;
    if (in_place)
      run_rows(fn, params, begin, end, &s);
    else
      run_range(fn, params, begin, end, &s);
    if (s) status.fetch_or(s);
  });
  return status;
}

}  // namespace strata::eager
