#include "run/loop/index_walk.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "run/visit.h"

namespace strata::eager {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kFew = 8;  // elements that take less time than a call for them

int64_t step_of(const Tensor& t, int64_t d) { return t.sizes()[d] == 1 ? 0 : t.strides()[d] * t.itemsize(); }

// Neighbouring dims that every operand walks in one step become one.
void tidy(SmallVec<IndexWalk::Dim, 8>& dims) {
  SmallVec<IndexWalk::Dim, 8> kept;
  for (const auto& d : dims)
    if (d.size != 1) kept.push_back(d);
  std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return a.other != b.other ? a.other > b.other : a.target > b.target;
  });
  dims.clear();
  for (const auto& d : kept) {
    if (!dims.empty()) {
      auto& last = dims.back();
      if (last.other == d.other * d.size && last.target == d.target * d.size && last.index == d.index * d.size) {
        last = {last.size * d.size, d.target, d.index, d.other};
        continue;
      }
    }
    dims.push_back(d);
  }
}

struct Start {
  int64_t target = 0, index = 0, other = 0;
};

Start start_of(const SmallVec<IndexWalk::Dim, 8>& dims, size_t count, int64_t at) {
  Start s;
  for (size_t d = count; d-- > 0;) {
    int64_t i = at % dims[d].size;
    at /= dims[d].size;
    s.target += i * dims[d].target;
    s.index += i * dims[d].index;
    s.other += i * dims[d].other;
  }
  return s;
}

}  // namespace

IndexWalk IndexWalk::along_dim(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& other) {
  IndexWalk w;
  w.target = target.bytes();
  w.index = index.bytes();
  w.other = other.defined() ? other.bytes() : nullptr;
  for (int64_t d = 0; d < index.dim(); ++d) {
    int64_t o = other.defined() ? step_of(other, d) : 0;
    if (d == dim)
      w.along = {index.sizes()[d], target.strides()[d] * target.itemsize(), step_of(index, d), o};
    else
      w.dims.push_back({index.sizes()[d], step_of(target, d), step_of(index, d), o});
  }
  return w;
}

IndexWalk IndexWalk::along_rows(const Tensor& target, int64_t dim, const Tensor& index, const Tensor& other) {
  IndexWalk w;
  w.target = target.bytes();
  w.index = index.bytes();
  w.other = other.bytes();
  for (int64_t d = 0; d < other.dim(); ++d) {
    if (d == dim)
      w.along = {other.sizes()[d], target.strides()[d] * target.itemsize(), index.dim() ? step_of(index, 0) : 0,
                 step_of(other, d)};
    else
      w.dims.push_back({other.sizes()[d], step_of(target, d), 0, step_of(other, d)});
  }
  return w;
}

void IndexWalk::run(IndexRunFn fn, void* context) const {
  SmallVec<Dim, 8> lines = dims;
  if (along.size == 0) return;
  for (const Dim& d : lines)
    if (d.size == 0) return;
  tidy(lines);
  auto call = [&](const Start& s, const Dim& d, bool is_along, int64_t first, int64_t count) {
    int64_t target_step = is_along ? 0 : d.target;
    fn(context, {target + s.target + first * target_step, target_step, index + s.index + first * d.index, d.index,
                 other + s.other + first * d.other, d.other, count, along.target});
  };
  // The indexed dim is the inner loop where that walks memory best, and is worth a call each time.
  bool inner_along = lines.empty();
  if (!inner_along && along.size > 1) {
    const Dim& last = lines.back();
    const bool few = along.size < kFew && last.size >= kFew * along.size;
    inner_along = !few && (along.other < last.other || (last.size < kFew && along.size > last.size));
  }
  if (inner_along) {
    int64_t outer = 1;
    for (const Dim& d : lines) outer *= d.size;
    if (outer == 1 && reads) {
      parallel_for(0, along.size, kGrain, [&](int64_t b, int64_t e) { call({}, along, true, b, e - b); });
      return;
    }
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / along.size), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) call(start_of(lines, lines.size(), i), along, true, 0, along.size);
    });
    return;
  }
  const Dim row = lines.back();
  size_t count = lines.size() - 1;
  int64_t outer = 1;
  for (size_t d = 0; d < count; ++d) outer *= lines[d].size;
  if (reads) {
    parallel_for(0, outer * along.size, std::max<int64_t>(1, kGrain / row.size), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        Start s = start_of(lines, count, i / along.size);
        int64_t k = i % along.size;
        call({s.target, s.index + k * along.index, s.other + k * along.other}, row, false, 0, row.size);
      }
    });
    return;
  }
  // One thread visits all indices of its part of the rows, so that their order holds.
  int64_t parts = 1;
  if (outer < num_threads() && along.size * row.size > 2 * kGrain)
    parts = std::max<int64_t>(1, std::min<int64_t>(num_threads(), row.size / 16));
  int64_t width = (row.size + parts - 1) / parts;
  int64_t work = along.size * width;
  parallel_for(0, outer * parts, std::max<int64_t>(1, kGrain / work), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      Start s = start_of(lines, count, i / parts);
      int64_t first = i % parts * width, n = std::min(width, row.size - first);
      if (n <= 0) continue;
      for (int64_t k = 0; k < along.size; ++k)
        call({s.target, s.index + k * along.index, s.other + k * along.other}, row, false, first, n);
    }
  });
}

namespace {

template <class T>
void copy_run(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n) {
  constexpr int64_t w = sizeof(T);
  if (dst_step == w && src_step == w) {
    std::memcpy(dst, src, n * w);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(dst + i * dst_step) = *reinterpret_cast<const T*>(src + i * src_step);
}

inline int64_t index_at(const IndexRun& r, int64_t i) {
  return *reinterpret_cast<const int64_t*>(r.index + i * r.index_step);
}

}  // namespace

void read_indexed(const IndexWalk& walk, int64_t width) {
  visit_width(width, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk([](const IndexRun& r) {
      if (r.index_step == 0) {
        copy_run<T>(r.other, r.other_step, r.target + index_at(r, 0) * r.scale, r.target_step, r.count);
        return;
      }
      for (int64_t i = 0; i < r.count; ++i)
        *reinterpret_cast<T*>(r.other + i * r.other_step) =
            *reinterpret_cast<const T*>(r.target + i * r.target_step + index_at(r, i) * r.scale);
    });
  });
}

void write_indexed(const IndexWalk& walk, int64_t width) {
  visit_width(width, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk([](const IndexRun& r) {
      if (r.index_step == 0 && r.target_step != 0) {
        copy_run<T>(r.target + index_at(r, 0) * r.scale, r.target_step, r.other, r.other_step, r.count);
        return;
      }
      for (int64_t i = 0; i < r.count; ++i)
        *reinterpret_cast<T*>(r.target + i * r.target_step + index_at(r, i) * r.scale) =
            *reinterpret_cast<const T*>(r.other + i * r.other_step);
    });
  });
}

}  // namespace strata::eager
