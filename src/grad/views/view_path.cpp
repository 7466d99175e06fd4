#include "grad/views/view_path.h"

#include <algorithm>

#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter_view.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {

int64_t count(const DimVec& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

bool is_dense(const DimVec& sizes, const DimVec& strides) {
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != step) return false;
    step *= sizes[d];
  }
  return true;
}

}  // namespace

Geometry::Geometry(const Tensor& t)
    : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()), complex(is_complex(t.dtype())) {}

Geometry Geometry::parts() const {
  if (!complex) return *this;
  Geometry g = *this;
  for (int64_t& stride : g.strides) stride *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  g.offset *= 2;
  g.complex = false;
  return g;
}

void ViewPath::add(Step step, DimVec& sizes) {
  step.before = sizes;
  switch (step.kind) {
    case Step::View:
    case Step::Expand:
      sizes = step.list;
      break;
    case Step::Select:
      sizes.erase(size_t(step.dim));
      break;
    case Step::Slice:
      sizes[size_t(step.dim)] = (step.end - step.start + step.step - 1) / step.step;
      break;
    case Step::Permute:
      for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = step.before[size_t(step.list[d])];
      break;
    case Step::Unsqueeze:
      sizes.insert(size_t(step.dim), 1);
      break;
  }
  steps_.push_back(std::move(step));
}

std::optional<ViewPath> ViewPath::between(const Geometry& base, const Geometry& view) {
  const int64_t from = view.offset - base.offset, n = count(base.sizes);
  if (from < 0 || n == 0 || count(view.sizes) == 0 || base.complex != view.complex) return std::nullopt;
  if (std::optional<ViewPath> path = of_dims(base.sizes, base.strides, view, from)) return path;
  if (!is_dense(base.sizes, base.strides)) return std::nullopt;
  ViewPath path;
  DimVec sizes = base.sizes;
  if (from == 0 && count(view.sizes) == n && is_dense(view.sizes, view.strides)) {
    path.add({.kind = Step::View, .list = view.sizes}, sizes);
    return path;
  }
  path.add({.kind = Step::View, .list = {n}}, sizes);
  std::optional<ViewPath> flat = of_dims({n}, {1}, view, from);
  if (!flat) return std::nullopt;
  path.steps_.insert(path.steps_.end(), flat->steps_.begin(), flat->steps_.end());
  return path;
}

// Where each dim of the view steps along one dim of the base.
std::optional<ViewPath> ViewPath::of_dims(const DimVec& base, const DimVec& strides, const Geometry& view,
                                          int64_t from) {
  const size_t rank = base.size();
  std::vector<size_t> order;  // the base's dims of several elements, from the outermost in memory
  for (size_t d = 0; d < rank; ++d)
    if (base[d] > 1) order.push_back(d);
  for (size_t k = 1; k < order.size(); ++k)
    for (size_t i = k; i > 0 && strides[order[i - 1]] < strides[order[i]]; --i) std::swap(order[i - 1], order[i]);
  int64_t reach = 0;
  for (size_t k = order.size(); k-- > 0;) {
    if (strides[order[k]] <= reach) return std::nullopt;  // dims that are not nested
    reach += (base[order[k]] - 1) * strides[order[k]];
  }
  std::vector<int64_t> start(rank, 0);
  for (size_t d : order) {
    start[d] = std::min(from / strides[d], base[d] - 1);
    from -= start[d] * strides[d];
  }
  if (from != 0) return std::nullopt;
  std::vector<int64_t> shown(rank, -1);  // the view's dim that steps along it
  for (size_t j = 0; j < view.sizes.size(); ++j) {
    const int64_t size = view.sizes[j], stride = view.strides[j];
    if (size == 1 || stride == 0) continue;
    const auto at = std::ranges::find_if(order, [&](size_t d) {
      return shown[d] < 0 && stride % strides[d] == 0 && start[d] + (size - 1) * (stride / strides[d]) < base[d];
    });
    if (at == order.end()) return std::nullopt;
    shown[*at] = int64_t(j);
  }
  ViewPath path;
  DimVec sizes = base;
  for (size_t d = rank; d-- > 0;) {
    if (shown[d] < 0) {
      path.add({.kind = Step::Select, .dim = int64_t(d), .start = start[d]}, sizes);
      continue;
    }
    const int64_t step = view.strides[size_t(shown[d])] / strides[d];
    const int64_t end = start[d] + (view.sizes[size_t(shown[d])] - 1) * step + 1;
    if (start[d] != 0 || end != base[d] || step != 1)
      path.add({.kind = Step::Slice, .dim = int64_t(d), .start = start[d], .end = end, .step = step}, sizes);
  }
  std::erase(shown, -1);
  if (!std::ranges::is_sorted(shown)) {
    DimVec dims(shown.size());
    for (size_t d = 0; d < shown.size(); ++d)
      dims[size_t(std::ranges::count_if(shown, [&](int64_t j) { return j < shown[d]; }))] = int64_t(d);
    path.add({.kind = Step::Permute, .list = dims}, sizes);
  }
  for (size_t j = 0; j < view.sizes.size(); ++j)
    if (view.sizes[j] == 1 || view.strides[j] == 0) path.add({.kind = Step::Unsqueeze, .dim = int64_t(j)}, sizes);
  if (IntArrayRef(sizes) != IntArrayRef(view.sizes)) path.add({.kind = Step::Expand, .list = view.sizes}, sizes);
  return path;
}

Tensor ViewPath::of(Tensor t) const {
  for (const Step& s : steps_) {
    switch (s.kind) {
      case Step::View:
        t = ops::view(t, s.list);
        break;
      case Step::Select:
        t = ops::select(t, s.dim, s.start);
        break;
      case Step::Slice:
        t = ops::slice(t, s.dim, s.start, s.end, s.step);
        break;
      case Step::Permute:
        t = ops::permute(t, s.list);
        break;
      case Step::Unsqueeze:
        t = ops::unsqueeze(t, s.dim);
        break;
      case Step::Expand:
        t = ops::expand(t, s.list);
        break;
    }
  }
  return t;
}

Tensor ViewPath::gradient(Tensor grad) const {
  for (size_t k = steps_.size(); k-- > 0;) {
    const Step& s = steps_[k];
    switch (s.kind) {
      case Step::View:
        grad = ops::reshape(grad, s.before);
        break;
      case Step::Select:
        grad = ops::select_backward(grad, s.before, s.dim, s.start);
        break;
      case Step::Slice:
        grad = ops::slice_backward(grad, s.before, s.dim, s.start, s.end, s.step);
        break;
      case Step::Permute: {
        DimVec back(s.list.size());
        for (size_t d = 0; d < s.list.size(); ++d) back[size_t(s.list[d])] = int64_t(d);
        grad = ops::permute(grad, back);
        break;
      }
      case Step::Unsqueeze:
        grad = ops::squeeze(grad, s.dim);
        break;
      case Step::Expand:
        grad = ops::sum_to_size(grad, s.before);
        break;
    }
  }
  return grad;
}

}  // namespace strata
