// Runs generated row kernels: reductions, softmax, norms and whatever else is stated over rows. A row is the elements
// of the reduced dims for one index of the kept dims; kernels see it contiguous, whatever the strides are.
#pragma once
#include "run/pointwise.h"

namespace strata::eager {

struct RowsOp {
  const char* name;
  const char* kernel;
  Promote promote = Promote::Common;
  uint8_t inputs = 0, scalars = 0, outputs = 1;
  uint32_t fixed = 0;
  DType fixed_dtype = DType::Bool;
  ResultStrides strides = ResultStrides::Contiguous;  // of results of in[0]'s shape
  bool exact_out = false;                             // out= takes the result's dtype alone
};

// The dims that an argument names, wrapped, sorted and checked for repeats; none or an empty list: all of them.
DimVec row_dims(int64_t ndim, OptIntArrayRef dims);
inline DimVec row_dims(const Tensor& self, OptIntArrayRef dims) { return row_dims(self.dim(), dims); }
DimVec row_dims(const Tensor& self, IntArrayRef dims);
DimVec row_dims(const Tensor& self, int64_t dim);
// The same where an empty list names no dim: every element is a row of its own.
struct Listed {
  OptIntArrayRef dims;
};
DimVec row_dims(const Tensor& self, Listed list);
// `count` trailing dims.
DimVec last_dims(const Tensor& self, int64_t count);

// in[0] gives the shape; other operands broadcast to it, per-row ones along the reduced dims. Scalars take no part in
// the result type. With `dtype` the operands are converted to it; with `stored`, results of in[0]'s shape are rounded
// to that.
std::vector<Tensor> rows(const RowsOp& op, Inputs in, Scalars scalars, const DimVec& dims, bool keepdim,
                         std::optional<DType> dtype = std::nullopt, std::optional<DType> stored = std::nullopt);
// A launch as LaunchObserver::rows tells it: everything is prepared.
void launch(const RowsOp& op, DType dtype, ArrayRef<Tensor> outs, Inputs in, Scalars scalars, const DimVec& dims);
void rows_out(const RowsOp& op, Inputs in, Scalars scalars, const DimVec& dims, bool keepdim,
              std::optional<DType> dtype, ArrayRef<Tensor> outs, bool resize);

}  // namespace strata::eager
