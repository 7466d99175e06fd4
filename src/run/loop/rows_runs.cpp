#include "run/loop/rows_runs.h"

#include <algorithm>

#include "run/loop/cast.h"

namespace strata::eager {

namespace {
constexpr int64_t kShortest = 64;  // elements of a run that are worth a call
constexpr int64_t kChunk = 1024;   // of a value, which stay in the inner cache
constexpr int kMost = 4;           // operands

// The value `count` times; elements of 4 or 8 bytes.
void fill(char* to, const RowOperand& o, const char* value, int64_t count) {
  const int64_t width = itemsize(o.kernel);
  cast_fn(o.dtype, o.kernel)(value, 0, to, width, 1);
  if (width == 4)
    std::fill_n(reinterpret_cast<uint32_t*>(to), count, *reinterpret_cast<const uint32_t*>(to));
  else
    std::fill_n(reinterpret_cast<uint64_t*>(to), count, *reinterpret_cast<const uint64_t*>(to));
}
}  // namespace

RowRuns::RowRuns(const RowsLoop& l) : l_(l) {
  const StrataKernelEntry& e = *l.entry;
  const StrataRowPass& last = e.pass[e.passes - 1];
  if (!last.elementwise || last.reductions || l.reduced_sizes.size() < 2 || l.reduced_sizes.back() < kShortest) return;
  unsigned others = 0;
  for (int p = 0; p + 1 < e.passes; ++p) others |= e.pass[p].reads;
  int count = 0;
  for (size_t i = e.outputs; i < l.operands.size() && count < kMost; ++i) {
    const RowOperand& o = l.operands[i];
    const unsigned bit = 1u << (i - e.outputs);
    if (o.per_row || o.maker || o.reduced.back() != 0 || (itemsize(o.kernel) != 4 && itemsize(o.kernel) != 8) ||
        !(last.reads & bit) || others & bit)
      continue;
    spread_ |= uint32_t(1) << i;
    ++count;
  }
}

void RowRuns::call(const StrataRowArgs& args) const {
  const StrataKernelEntry& e = *l_.entry;
  const StrataRowPass& pass = e.pass[e.passes - 1];
  const DimVec& sizes = l_.reduced_sizes;
  const int64_t run = sizes.back(), width = itemsize(l_.compute);
  alignas(64) char values[kMost][kChunk * 8];
  const char* held[kMost] = {};
  int64_t filled[kMost] = {};
  char *ptr[kMaxRowOperands], *scratch[kMaxRowOperands];
  StrataRowArgs part = args;
  part.ptr = ptr;
  part.scratch = scratch;
  for (int64_t done = 0; done < args.count; done += part.count) {
    part.first = args.first + done;
    part.count = std::min({args.count - done, run - part.first % run, kChunk});
    int slot = 0;
    for (size_t i = 0; i < l_.operands.size(); ++i) {
      const RowOperand& o = l_.operands[i];
      ptr[i] = o.per_row ? args.ptr[i] : args.ptr[i] + done * itemsize(o.kernel);
      if (!spreads(i)) continue;
      const char* value = args.ptr[i];
      int64_t outer = part.first / run;
      for (size_t d = sizes.size() - 1; d-- > 0; outer /= sizes[d]) value += outer % sizes[d] * o.reduced[d];
      if (held[slot] != value || filled[slot] < part.count) fill(values[slot], o, value, filled[slot] = part.count);
      held[slot] = value;
      ptr[i] = values[slot++];
    }
    for (int s = 0; s < e.scratch_rows; ++s) scratch[s] = args.scratch[s] + done * width;
    pass.fn(&part);
  }
}

}  // namespace strata::eager
