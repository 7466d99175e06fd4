// Rows of a pointwise kernel's operands that are read and written where they lie, and what is the same for many rows.
#include <algorithm>
#include <utility>

#include "run/loop/blocks.h"
#include "run/loop/pointwise_loop.h"

namespace strata::eager {

namespace {

constexpr int64_t kSpreadRow = 96;  // elements of a row from which its one value is not laid out for each of them

constexpr int64_t kLongValued = 8192;  // elements of a row from which a call for it does not show

constexpr int64_t kFewBlocks = 5;  // of a row

constexpr int64_t kLine = 48;  // elements of rows at one distance from which finding the next ones does not show

}  // namespace

// Whether no operand's rows go through a buffer: they lie as the kernel takes them, or are one value. Not short rows
// that come again and again: a buffer keeps them, and what lies dense beside them is taken many rows at a time.
bool PointwiseLoop::rows_in_place() const {
  const auto all = [&](auto is) { return std::all_of(operands_, operands_ + count_, is); };
  const int64_t inner = shape_.back();
  if (inner < block_ || (inner < long_row_ && inner % block_ != 0 && (block_ > kBlock || !again_))) return false;
  if (inner < long_row_ && all([](const Operand& o) { return o.dense || o.repeats || o.constant; })) return false;
  if (inner < kSpreadRow && all([](const Operand& o) { return o.dense || o.strides.back() == 0; })) return false;
  return all([](const Operand& o) {
    const int64_t step = o.strides.back();
    return o.constant || (!o.maker && (step == 0 ? !o.output : o.dtype == o.kernel && step == itemsize(o.kernel)));
  });
}

// Whether the kernel holds what is the same for these rows. jump: bytes from a row to the next, by operand; step: to
// its next block, 0 where one block stands for all.
bool PointwiseLoop::holds(const int64_t* jump, const int64_t* step, int64_t rows, int64_t inner) const {
  if (!held_ || rows < 2 || inner * widest_ % STRATA_HELD_BYTES != 0) return false;
  for (int i = 0; i < count_; ++i) {
    const bool held = i >= outputs_ && held_ >> (i - outputs_) & 1;
    if (itemsize(operands_[i].kernel) != widest_ || ((held || step[i] == 0) && jump[i] != 0)) return false;
  }
  return true;
}

// Rows of `inner` elements, of which the kernel holds some at a time.
void PointwiseLoop::run_down(StrataPointwiseFn fn, char* const* ptr, const int64_t* jump, const int64_t* step,
                             const void* params, int64_t rows, int64_t inner, int32_t* status) const {
  char* at[kMaxOperands];
  std::copy_n(ptr, count_, at);
  for (int64_t left = inner * widest_; left > 0; left -= STRATA_HELD_BYTES) {
    fn(at, jump, params, rows, 2, status);
    for (int i = 0; i < count_; ++i) at[i] += step[i] ? STRATA_HELD_BYTES : 0;
  }
}

int64_t PointwiseLoop::values_of_rows() const {
  const int64_t inner = shape_.back();
  if (shape_.size() < 2 || inner < kBlock || inner > (block_ > kBlock ? long_row_ : kLongValued)) return -1;
  int64_t valued = 0;
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    if (o.maker || o.dtype != o.kernel) return -1;
    if (o.strides.back() == 0 && i >= outputs_)
      valued |= int64_t(1) << (i - outputs_);
    else if (o.strides.back() != itemsize(o.kernel))
      return -1;
  }
  if (held_) return valued;
  if (shape_.size() > 2 && shape_[shape_.size() - 2] * inner < kLine) return -1;
  const auto whole = [](const Operand& o) { return o.dense || o.repeats || o.constant; };
  if (inner < long_row_ && inner % kBlock != 0 && std::all_of(operands_, operands_ + count_, whole)) return -1;
  return valued;
}

int64_t PointwiseLoop::row_values(int64_t together) {
  take_at_once(together);
  return lay_out(elements()) ? -1 : values_of_rows();
}

int64_t PointwiseLoop::one_value_each() const {
  if (!(held_ | row_forms_) || (shape_.back() % kBlock != 0 && !again_)) return 0;
  const int64_t valued = values_of_rows();
  // A row's value is read when the rows before are written.
  if (valued < 0 || (valued && !results_apart(unsigned(valued)))) return 0;
  if (held_) return valued == held_ ? 4 : 0;
  if (row_forms_ == 8) return valued == row_values_ ? 64 : 0;
  return valued > 2 ? 0 : ((valued ? unsigned(valued) : 4) & row_forms_) << 3;
}

// Rows [begin, end), in lines of rows at one distance from each other.
void PointwiseLoop::run_valued(StrataPointwiseFn fn, const void* params, int64_t flags, int64_t begin, int64_t end,
                               int32_t* status) const {
  const size_t last = shape_.size() - 2;
  char* ptr[kMaxOperands];
  int64_t step[kMaxOperands + 1];
  step[count_] = shape_.back();
  for (int i = 0; i < count_; ++i) {
    step[i] = operands_[i].strides[last];
    ptr[i] = operands_[i].base + offset_at(operands_[i], begin * shape_.back());
  }
  DimVec at(last + 1, 0);
  for (int64_t d = int64_t(last), rest = begin; d >= 0; rest /= shape_[size_t(d--)])
    at[size_t(d)] = rest % shape_[size_t(d)];
  const auto move = [&](size_t d, int64_t by) {
    for (int i = 0; i < count_; ++i) ptr[i] += by * operands_[i].strides[d];
  };
  for (int64_t rows; begin < end; begin += rows) {
    rows = std::min(end - begin, shape_[last] - at[last]);
    fn(ptr, step, params, rows, flags, status);
    move(last, -std::exchange(at[last], 0));
    for (size_t d = last; d-- > 0;) {
      move(d, 1);
      if (++at[d] < shape_[d]) break;
      move(d, -shape_[d]);
      at[d] = 0;
    }
  }
}

bool PointwiseLoop::blocks_each() const {
  const int64_t inner = shape_.back();
  if (shape_.size() < 2 || inner % kBlock != 0 || inner > kFewBlocks * kBlock || shape_[shape_.size() - 2] < kBlock)
    return false;
  return std::all_of(operands_, operands_ + count_, [](const Operand& o) {
    return o.constant || (!o.maker && o.dtype == o.kernel && o.strides.back() == itemsize(o.kernel));
  });
}

void PointwiseLoop::run_blocks(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end,
                               int32_t* status) const {
  constexpr int64_t kDown = 64;  // rows at a time, whose next blocks are near then
  const size_t last = shape_.size() - 2;
  alignas(64) char constants[kMaxOperands][kBlock * 16];
  char *ptr[kMaxOperands], *at[kMaxOperands];
  int64_t step[kMaxOperands], next[kMaxOperands];  // bytes to the next row, and to the next block of a row
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    const int64_t size = itemsize(o.kernel);
    step[i] = o.constant ? 0 : o.strides[last];
    next[i] = o.constant ? 0 : kBlock * size;
    if (o.constant) take(o, o.base, 0, constants[i], held_ ? STRATA_HELD_BYTES / size : kBlock);
  }
  for (int64_t rows; begin < end; begin += rows) {
    rows = std::min({end - begin, shape_[last] - begin % shape_[last], kDown});
    for (int i = 0; i < count_; ++i) {
      const Operand& o = operands_[i];
      ptr[i] = o.constant ? constants[i] : o.base + offset_at(o, begin * shape_.back());
    }
    if (holds(step, next, rows, shape_.back())) {
      run_down(fn, ptr, step, next, params, rows, shape_.back(), status);
      continue;
    }
    for (int64_t block = 0; block < shape_.back() / kBlock; ++block) {
      for (int i = 0; i < count_; ++i) at[i] = ptr[i] + block * next[i];
      fn(at, step, params, rows, 0, status);
    }
  }
}

// Row after row. What is one value for a row is spread over a block, for some rows ahead: a kernel that reads what was
// stored just before, in other pieces, waits for it.
void PointwiseLoop::run_rows(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end,
                             int32_t* status) const {
  constexpr int64_t kAhead = 16;
  alignas(64) char blocks[kMaxOperands][kAhead * kBlock * 16];
  const int64_t inner = shape_.back(), outer = int64_t(shape_.size()) - 1;
  // By operand: where its row begins, the bytes to the next one, and those from a row to the next where a kernel reads.
  char *row[kMaxOperands], *ptr[kMaxOperands];
  int64_t apart[kMaxOperands], jump[kMaxOperands], size[kMaxOperands], step[kMaxOperands];
  int64_t column = begin % inner;
  DimVec at(size_t(outer), 0);
  for (int64_t d = outer, rest = begin / inner; d-- > 0; rest /= shape_[size_t(d)])
    at[size_t(d)] = rest % shape_[size_t(d)];
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    const bool is_spread = o.strides.back() == 0;
    size[i] = itemsize(o.kernel);
    step[i] = is_spread ? 0 : size[i] * kBlock;
    row[i] = o.base + offset_at(o, begin - column);
    apart[i] = outer ? o.strides[size_t(outer - 1)] : 0;
    jump[i] = o.constant ? 0 : is_spread ? size[i] * kBlock : apart[i];
    if (o.constant) take(o, o.base, 0, blocks[i], held_ ? STRATA_HELD_BYTES / size[i] : kBlock);
  }
  while (begin < end) {
    const bool whole = column == 0 && end - begin >= inner && outer;
    const int64_t n = whole ? inner : std::min(end - begin, inner - column);
    const int64_t rows =
        whole ? std::min({kAhead, shape_[size_t(outer - 1)] - at[size_t(outer - 1)], (end - begin) / inner}) : 1;
    for (int i = 0; i < count_; ++i) {
      const Operand& o = operands_[i];
      ptr[i] = step[i] ? row[i] + column * size[i] : blocks[i];
      if (step[i] || o.constant) continue;
      if (o.dtype == o.kernel)
        spread(row[i], apart[i], size[i], blocks[i], rows, kBlock);
      else
        for (int64_t r = 0; r < rows; ++r) take(o, row[i] + r * apart[i], 0, blocks[i] + r * jump[i], kBlock);
    }
    if (holds(jump, step, rows, inner))
      run_down(fn, ptr, jump, step, params, rows, inner, status);
    else if (n % kBlock == 0)  // as run_span, for less than it takes to ask for a rest that is not there
      for (int64_t r = 0; r < rows; ++r) {
        fn(ptr, step, params, n / kBlock, 0, status);
        for (int i = 0; i < count_; ++i) ptr[i] += jump[i];
      }
    else
      for (int64_t r = 0; r < rows; ++r) {
        run_span(fn, ptr, size, step, outputs_, count_, params, n, 0, again_, status);
        for (int i = 0; i < count_; ++i) ptr[i] += jump[i];
      }
    begin += rows * n;
    column += n;
    if (column < inner) return;
    column = 0;
    for (int i = 0; i < count_; ++i) row[i] += rows * apart[i];
    if (outer) at[size_t(outer - 1)] += rows;
    for (int64_t d = outer; d-- > 1 && at[size_t(d)] == shape_[size_t(d)];) {
      at[size_t(d)] = 0;
      ++at[size_t(d - 1)];
      for (int i = 0; i < count_; ++i)
        row[i] += operands_[i].strides[size_t(d - 1)] - shape_[size_t(d)] * operands_[i].strides[size_t(d)];
    }
  }
}

}  // namespace strata::eager
