// tril, triu and the indices of triangles.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "core/default_device.h"
#include "core/parallel.h"
#include "core/shape/arrange.h"
#include "eager/index_args.h"
#include "eager/visit.h"
#include "strata/generated/eager_arrange.h"

namespace strata::eager {

namespace {

// Copies the part of each matrix that is kept, and writes zeros elsewhere. `out` may be self.
void triangle(const Tensor& self, const Tensor& out, int64_t diagonal, bool lower) {
  if (out.is_meta() || out.numel() == 0) return;
  int64_t nd = self.dim(), rows = self.sizes()[nd - 2], columns = self.sizes()[nd - 1];
  diagonal = std::clamp(diagonal, -rows, columns);
  bool inplace = out.is_same(self);
  int64_t all = self.numel() / columns;
  visit_width(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, all, std::max<int64_t>(1, 16384 / columns), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t rest = i, from = 0, to = 0;
        for (int64_t d = nd - 1; d-- > 0; rest /= self.sizes()[d]) {
          from += rest % self.sizes()[d] * self.strides()[d];
          to += rest % self.sizes()[d] * out.strides()[d];
        }
        const T* s = self.data<T>() + from;
        T* o = out.data<T>() + to;
        int64_t ss = self.strides()[nd - 1], os = out.strides()[nd - 1];
        int64_t width = shape::triangle_width(i % rows, columns, lower ? diagonal : diagonal - 1);
        int64_t first = lower ? 0 : width, last = lower ? width : columns;
        if (!inplace)
          for (int64_t c = first; c < last; ++c) o[c * os] = s[c * ss];
        for (int64_t c = 0; c < first; ++c) o[c * os] = T{};
        for (int64_t c = last; c < columns; ++c) o[c * os] = T{};
      }
    });
  });
}

void check_matrix(const char* name, const Tensor& self) {
  STRATA_CHECK(self.dim() >= 2, name, ": input tensor must have at least 2 dimensions");
}

Tensor made(const char* name, const Tensor& self, int64_t diagonal, bool lower) {
  check_matrix(name, self);
  Tensor out = new_tensor(self, self.sizes());
  triangle(self, out, diagonal, lower);
  return out;
}

void in_place(const char* name, const Tensor& self, int64_t diagonal, bool lower) {
  check_matrix(name, self);
  check_apart(name, self, {});
  triangle(self, self, diagonal, lower);
}

// The elements on and below a diagonal.
int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset, const char* op) {
  offset = std::clamp(offset, -rows, columns);
  int64_t first = std::min(rows, std::max<int64_t>(0, -offset));                           // rows before it have none
  int64_t full = std::clamp<int64_t>(checked_add(columns - 1, -offset, op), first, rows);  // rows from it on have all
  int64_t part = full - first, pairs = part % 2 ? checked_mul(part, part / 2, op) : checked_mul(part / 2, part - 1, op);
  int64_t rising = checked_add(checked_mul(part, first + 1 + offset, op), part ? pairs : 0, op);
  return checked_add(rising, checked_mul(rows - full, columns, op), op);
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
  const char* op = lower ? "tril_indices" : "triu_indices";
  int64_t below = triangle_count(row, col, lower ? offset : offset - 1, op);
  int64_t n = lower ? below : checked_mul(row, col, op) - below;
  Tensor out = make_tensor({2, n}, DType::I64, device.value_or(default_device()));
  if (!out.is_meta()) {
    int64_t *rows = out.data<int64_t>(), *columns = rows + n, at = 0;
    for (int64_t r = lower ? std::max<int64_t>(0, -offset) : 0; at < n; ++r)
      for (int64_t c = range(r).first; c < range(r).second; ++c, ++at) {
        rows[at] = r;
        columns[at] = c;
      }
  }
  return as_dtype(out, t);
}

}  // namespace

Tensor tril(const Tensor& self, int64_t diagonal) { return made("tril", self, diagonal, true); }
Tensor triu(const Tensor& self, int64_t diagonal) { return made("triu", self, diagonal, false); }
void tril_inplace(const Tensor& self, int64_t diagonal) { in_place("tril_", self, diagonal, true); }
void triu_inplace(const Tensor& self, int64_t diagonal) { in_place("triu_", self, diagonal, false); }

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices(row, col, offset, dtype, device, true);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices(row, col, offset, dtype, device, false);
}

}  // namespace strata::eager
