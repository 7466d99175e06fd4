#include "run/loop/rows_interleaved.h"

#include "run/loop/transpose.h"

namespace strata::eager {

bool rows_interleaved(const RowsLoop& loop, const std::vector<bool>& direct) {
  if (loop.reduced_sizes.size() < 2 || loop.kept_sizes.empty()) return false;
  const int64_t width = itemsize(loop.compute);
  bool any = false;
  for (size_t i = 0; i < loop.operands.size(); ++i) {
    if (direct[i]) continue;
    const RowOperand& o = loop.operands[i];
    if (o.maker || o.dtype != o.kernel || itemsize(o.kernel) != width || o.reduced[0] != width ||
        o.kept.back() != width * loop.reduced_sizes[0])
      return false;
    any = true;
  }
  return any;
}

void stage_interleaved(const RowOperand& o, const DimVec& sizes, char* base, char* buffer, int64_t count, bool in) {
  const size_t last = sizes.size() - 1;
  int64_t block = 1;  // elements of a row for each place along its first dim
  for (size_t d = 1; d <= last; ++d) block *= sizes[d];
  const int64_t width = o.reduced[0], run = sizes[last], apart = o.reduced[last], together = count * sizes[0];
  for (int64_t i = 0; i < block; i += run) {
    char *p = base, *staged = buffer + i * width;
    int64_t rest = i / run;
    for (size_t d = last; d-- > 1; rest /= sizes[d]) p += rest % sizes[d] * o.reduced[d];
    if (in)
      transpose(width, p, apart, staged, block * width, run, together);
    else
      transpose(width, staged, block * width, p, apart, together, run);
  }
}

}  // namespace strata::eager
