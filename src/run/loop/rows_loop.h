// The iteration below a row kernel: finds or makes contiguous rows, runs the passes over parts of 65,536 elements,
// folds partial results pairwise in order (tree T above one part), and divides the work among threads.
#pragma once
#include <optional>

#include "core/tensor.h"
#include "lower/kernel_abi.h"

namespace strata::eager {

class Maker;

constexpr int kMaxRowOperands = 12;
constexpr int64_t kFewRows = 8;  // so many and more are shared out; of fewer that are longer than a part, the parts

struct RowOperand {
  char* base;
  DimVec kept, reduced;  // strides in bytes
  DType dtype, kernel;
  bool output, per_row;
  const Maker* maker = nullptr;  // makes an input that lies nowhere
};

int64_t product(const DimVec& sizes);
// Whether elements lie in row-major order, `step` bytes apart.
bool follow_each_other(const DimVec& sizes, const DimVec& strides, int64_t step);
// Elements after which an operand's come again along a row, since it lacks the outer dims; 0 where they do not, or all
// are one.
int64_t period_of(const DimVec& sizes, const DimVec& strides);
// From one row's reductions to the next one's, as a pass over several rows has them.
int64_t reduced_bytes(const StrataKernelEntry& entry);

struct RowsLoop {
  const StrataKernelEntry* entry;
  DimVec kept_sizes, reduced_sizes;
  std::vector<RowOperand> operands;  // outputs, then inputs
  const void* params;
  DType compute;
  // Rows side by side are columns, along one kept dim, which becomes the last one; the others are lines of them.
  void columns_along(size_t dim);
  char* column_at(const RowOperand& o, int64_t line, int64_t column) const;  // its first element
  void kept_as(size_t operand);      // sorts the kept dims as the operand's lie in memory
  void merge_dims();                 // neighbouring dims that every operand walks in one step become one
  size_t kept_dims_of_rows() const;  // that would be left but for inputs with one value per row
  // An extremum with the reduced dims in the order of memory, where that is another: the same, but for the sign of a
  // zero, of which the first in order counts.
  std::optional<RowsLoop> extremum_as_it_lies() const;
  bool gives_zero() const;  // whether a result is a floating zero
  int32_t run();            // the status that the kernel set
};

// A loop in one of its forms. False, with nothing done, where that does not fit.
template <class Form>
bool runs_as(RowsLoop& loop) {
  Form form(loop);
  if (!form.fit()) return false;
  form.run();
  return true;
}

}  // namespace strata::eager
