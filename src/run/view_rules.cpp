#include "run/view_rules.h"

#include <algorithm>

#include "base/checked.h"

namespace strata::eager {

std::pair<DimVec, DimVec> expanded(IntArrayRef sizes, IntArrayRef strides, IntArrayRef wanted) {
  size_t n = wanted.size();
  STRATA_CHECK(n >= sizes.size(), "expand(", sizes, ", size=", wanted, "): the number of sizes provided (", n,
               ") must be greater or equal to the number of dimensions in the tensor (", sizes.size(), ")");
  DimVec out(n), step(n);
  size_t lead = n - sizes.size();
  for (size_t d = n; d-- > 0;) {
    int64_t have = d < lead ? 1 : sizes[d - lead], want = wanted[d];
    if (want == -1) {
      STRATA_CHECK(d >= lead,
                   "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ", d);
      want = have;
    }
    STRATA_CHECK(want >= 0, "expand: expected sizes of -1, 0 or more, got ", wanted);
    STRATA_CHECK(have == want || have == 1, "The expanded size of the tensor (", want,
                 ") must match the existing size (", have, ") at non-singleton dimension ", d,
                 ".  Target sizes: ", wanted, ".  Tensor sizes: ", sizes);
    out[d] = want;
    const int64_t own = d >= lead   ? strides[d - lead]
                        : d + 1 < n ? int64_t(uint64_t(out[d + 1]) * uint64_t(step[d + 1]))
                                    : 1;
    step[d] = have == want && !sizes.empty() ? own : 0;
  }
  return {out, step};
}

DimVec inferred_sizes(IntArrayRef wanted, int64_t numel) {
  DimVec sizes(wanted);
  int64_t known = 1, hole = -1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      STRATA_CHECK(hole < 0, "only one dimension can be inferred");
      hole = int64_t(d);
    } else {
      STRATA_CHECK(sizes[d] >= 0, "invalid shape dimension ", sizes[d]);
      known = checked_mul(known, sizes[d], "shape");
    }
  }
  if (hole >= 0) {
    STRATA_CHECK(known != 0, "cannot reshape tensor of ", numel, " elements into shape ", wanted,
                 " because the unspecified dimension size -1 can be any value and is ambiguous");
    STRATA_CHECK(numel % known == 0, "shape '", wanted, "' is invalid for input of size ", numel);
    sizes[hole] = numel / known;
  } else {
    STRATA_CHECK(known == numel, "shape '", wanted, "' is invalid for input of size ", numel);
  }
  return sizes;
}

std::optional<DimVec> view_strides(const Tensor& self, IntArrayRef wanted) {
  if (!self.is_contiguous() || self.numel() == 0) return view_strides(self.sizes(), self.strides(), wanted);
  std::optional<DimVec> out(std::in_place, wanted.size());
  int64_t* strides = out->data();
  int64_t step = 1;
  for (size_t d = wanted.size(); d-- > 0;) {
    strides[d] = step;
    step *= wanted[d];
  }
  return out;
}

std::optional<DimVec> view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef wanted) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())  // the other sizes may be any
    return sizes == wanted ? DimVec(strides) : contiguous_strides(wanted);
  DimVec out(wanted.size());
  int64_t w = int64_t(wanted.size()) - 1;
  if (sizes.empty()) {
    for (int64_t& s : out) s = 1;
    return out;
  }
  // Walks groups of dims of the old shape that are contiguous among themselves, from the right.
  int64_t step = strides.back(), have = 1, want = 1;
  for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    have *= sizes[d];
    bool group_ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != have * step);
    if (!group_ends) continue;
    while (w >= 0 && (want < have || wanted[w] == 1)) {
      out[w] = want * step;
      want *= wanted[w];
      --w;
    }
    if (want != have) return std::nullopt;
    if (d > 0) {
      step = strides[d - 1];
      have = want = 1;
    }
  }
  return w == -1 ? std::optional<DimVec>(out) : std::nullopt;
}

namespace {
template <class T, class Add>
void add_run(const Tensor& dst, const Tensor& src, Add add) {
  int64_t n = src.numel();
  SmallVec<int64_t, 8> at(src.dim());
  T* d = dst.data<T>();
  const T* s = src.data<T>();
  for (int64_t i = 0; i < n; ++i) {
    add(*d, *s);
    for (int64_t k = src.dim(); k-- > 0;) {
      d += dst.strides()[k];
      s += src.strides()[k];
      if (++at[k] < src.sizes()[k]) break;
      d -= dst.strides()[k] * src.sizes()[k];
      s -= src.strides()[k] * src.sizes()[k];
      at[k] = 0;
    }
  }
}
}  // namespace

void add_in_order(const Tensor& dst, const Tensor& src) {
  switch (dst.dtype()) {
    case DType::F32:
      return add_run<float>(dst, src, [](float& a, float b) { a += b; });
    case DType::F64:
      return add_run<double>(dst, src, [](double& a, double b) { a += b; });
    case DType::C64:
      return add_run<std::complex<float>>(dst, src, [](auto& a, auto b) { a += b; });
    case DType::C128:
      return add_run<std::complex<double>>(dst, src, [](auto& a, auto b) { a += b; });
    case DType::BF16:
      return add_run<BFloat16>(dst, src, [](BFloat16& a, BFloat16 b) { a = to_bfloat16(to_float(a) + to_float(b)); });
    case DType::F16:
      return add_run<Half>(dst, src, [](Half& a, Half b) { a = to_half(to_float(a) + to_float(b)); });
    default:
      throw_error(ErrorKind::NotImplemented, str_cat("add_in_order: expected a floating dtype, got ", dst.dtype()));
  }
}

}  // namespace strata::eager
