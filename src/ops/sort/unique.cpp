// The different elements of a tensor, or its different slices along a dim.
#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "run/index_args.h"
#include "run/visit.h"
#include "strata/generated/by_hand/sort.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/sort.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

using Found = std::tuple<Tensor, Tensor, Tensor>;  // elements, inverse, counts

Tensor none_of(const Tensor& like) { return new_tensor(like, IntArrayRef(int64_t(0)), DType::I64); }

// `starts` (bool, 1-d) marks the first position of each group of equals; `order` names the places of the positions, or
// is not defined where they are their own.
struct Groups {
  Tensor starts, order;

  Tensor inverse() const {
    const Tensor out = new_tensor(starts, starts.sizes(), DType::I64);
    const bool* begins = starts.data<bool>();
    const int64_t* places = order.defined() ? order.data<int64_t>() : nullptr;
    int64_t group = -1, *to = out.data<int64_t>();
    for (int64_t i = 0; i < starts.numel(); ++i) to[places ? places[i] : i] = group += begins[i];
    return out;
  }
  Tensor counts(int64_t groups) const {
    const Tensor out = new_tensor(starts, IntArrayRef(groups), DType::I64);
    const bool* begins = starts.data<bool>();
    int64_t n = starts.numel(), *to = out.data<int64_t>();
    for (int64_t first = 0, i = 0; i++ < n;)
      if (i == n || begins[i]) *to++ = i - std::exchange(first, i);
    return out;
  }
  Found found(Tensor elements, int64_t groups, bool inverse_too, bool counts_too, IntArrayRef inverse_sizes) const {
    return {elements, inverse_too ? ops::reshape(inverse(), inverse_sizes) : none_of(starts),
            counts_too ? counts(groups) : none_of(starts)};
  }
};

// Where an element differs from the one before; NaN differs from NaN.
Tensor starts_of(const Tensor& line) {
  int64_t n = line.numel();
  Tensor starts = ops::ones(IntArrayRef(n), DType::Bool, line.device());
  if (n > 1) {
    Tensor later = ops::slice(line, 0, 1, n, 1), earlier = ops::slice(line, 0, 0, n - 1, 1);
    copy_values(ops::slice(starts, 0, 1, n, 1), ops::ne(later, earlier));
  }
  return starts;
}

Found unique_of_line(const Tensor& self, bool sorts, bool inverse, bool counts) {
  Tensor line = ops::reshape(self, {-1}), order;
  if (sorts) std::tie(line, order) = ops::sort(line, 0, false);
  Groups groups{starts_of(line), order};
  const Tensor elements = ops::masked_select(line, groups.starts);
  return groups.found(elements, elements.numel(), inverse, counts, self.sizes());
}

// Orders and compares the rows of a contiguous matrix; NaN is the greatest and differs from itself.
template <class T>
void group_rows(const T* rows, int64_t n, int64_t m, bool sorts, int64_t* order, bool* starts) {
  std::iota(order, order + n, int64_t(0));
  auto less = [](T a, T b) { return is_nan(b) ? !is_nan(a) : a < b; };
  if (sorts)
    std::stable_sort(order, order + n, [&](int64_t i, int64_t j) {
      return std::lexicographical_compare(rows + i * m, rows + (i + 1) * m, rows + j * m, rows + (j + 1) * m, less);
    });
  for (int64_t i = 0; i < n; ++i)
    starts[i] = i == 0 || !std::equal(rows + order[i] * m, rows + (order[i] + 1) * m, rows + order[i - 1] * m);
}

// As in PyTorch the inverse and the counts come whether they are asked for or not.
Found unique_of_slices(const char* op, const Tensor& self, int64_t dim, bool sorts) {
  STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  int64_t n = self.sizes()[dim];
  bool others_empty = false;
  for (int64_t d = 0; d < self.dim(); ++d) others_empty |= d != dim && self.sizes()[d] == 0;
  STRATA_CHECK(!others_empty || n == 0,
               "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied (", op, ")");
  STRATA_CHECK(n != 0 || !others_empty, op, ": expected a dim with elements, got shape ", self.sizes());
  if (self.numel() == 0) return {contiguous_copy(self), none_of(self), none_of(self)};
  Tensor rows = as_contiguous(truths(widened(ops::movedim(self, dim, 0))));
  Tensor order = new_tensor(self, IntArrayRef(n), DType::I64), starts = new_tensor(self, IntArrayRef(n), DType::Bool);
  visit_reals(rows.dtype(), op, [&](auto tag) {
    using T = typename decltype(tag)::type;
    group_rows(rows.data<T>(), n, rows.numel() / n, sorts, order.data<int64_t>(), starts.data<bool>());
  });
  Groups groups{starts, order};
  Tensor chosen = ops::masked_select(order, starts);
  Tensor elements = ops::index_select(self, dim, chosen);
  return groups.found(elements, chosen.numel(), true, true, IntArrayRef(n));
}

}  // namespace

Found unique2(const Tensor& self, bool, bool inverse, bool counts) {
  STRATA_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"unique\" not implemented for '", scalar_type_name(self.dtype()),
                               "'; view it as real first");
  return unique_of_line(self, true, inverse, counts);
}

Found unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return unique_of_slices("unique_dim", self, dim, true);
}

Found unique_dim_consecutive(const Tensor& self, int64_t dim, bool, bool) {
  return unique_of_slices("unique_dim_consecutive", self, dim, false);
}

Found unique_consecutive(const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (dim) return ops::unique_dim_consecutive(self, *dim, inverse, counts);
  return unique_of_line(self, false, inverse, counts);
}

}  // namespace strata::eager
