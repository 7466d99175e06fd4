// The indices of triangles.
#include <algorithm>

#include "base/checked.h"
#include "core/default_device.h"
#include "core/shape/arrange.h"
#include "run/copy.h"
#include "run/formulas.h"
#include "strata/generated/by_hand/arrange.h"

namespace strata::eager {

namespace {

// The elements on and below a diagonal.
int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset, const char* op) {
  offset = std::clamp(offset, -rows, columns);
  int64_t first = std::min(rows, std::max<int64_t>(0, -offset));                           // rows before it have none
  int64_t full = std::clamp<int64_t>(checked_add(columns - 1, -offset, op), first, rows);  // rows from it on have all
  int64_t part = full - first, pairs = part % 2 ? checked_mul(part, part / 2, op) : checked_mul(part / 2, part - 1, op);
  int64_t rising = checked_add(checked_mul(part, first + 1 + offset, op), part ? pairs : 0, op);
  return checked_add(rising, checked_mul(rows - full, columns, op), op);
}

// Those of the triangle, with its diagonal.
int64_t triangle_size(int64_t row, int64_t col, int64_t offset, bool lower) {
  const char* op = lower ? "tril_indices" : "triu_indices";
  const int64_t below = triangle_count(row, col, lower ? offset : offset - 1, op);
  return lower ? below : checked_mul(row, col, op) - below;
}

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                        std::optional<Device> device, bool lower) {
  STRATA_CHECK(row >= 0, "row must be non-negative, got", row);
  STRATA_CHECK(col >= 0, "col must be non-negative, got", col);
  DType t = dtype.value_or(DType::I64);
  STRATA_CHECK_NOT_IMPLEMENTED(t == DType::I64 || t == DType::I32, lower ? "tril" : "triu",
                               "_indices: expected dtype int32 or int64, got ", t);
  offset = std::clamp(offset, -row, col);
  auto range = [&](int64_t r) {
    int64_t w = shape::triangle_width(r, col, lower ? offset : offset - 1);
    return lower ? std::pair<int64_t, int64_t>(0, w) : std::pair<int64_t, int64_t>(w, col);
  };
  const int64_t n = triangle_size(row, col, offset, lower);
  Tensor out = make_tensor({2, n}, DType::I64, device.value_or(default_device()));
  int64_t *rows = out.data<int64_t>(), *columns = rows + n, at = 0;
  for (int64_t r = lower ? std::max<int64_t>(0, -offset) : 0; at < n; ++r)
    for (int64_t c = range(r).first; c < range(r).second; ++c, ++at) {
      rows[at] = r;
      columns[at] = c;
    }
  return as_dtype(out, t);
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices(row, col, offset, dtype, device, true);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices(row, col, offset, dtype, device, false);
}

}  // namespace strata::eager

namespace strata::formulas {

int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset, bool lower) {
  return eager::triangle_size(rows, columns, std::clamp(offset, -rows, columns), lower);
}

}  // namespace strata::formulas
