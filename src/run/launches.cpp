#include "run/launches.h"

#include <algorithm>

#include "core/parallel.h"
#include "dispatch/seen.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/pointwise_loop.h"

namespace strata::eager {

namespace {
constexpr int64_t kChunk = 16384;  // elements of one piece of work
constexpr size_t kMaxScalars = 12;
}  // namespace

void Launches::append(const PointwiseOp& op, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
                      std::vector<Scalar> scalars) {
  const Tensor& first = outputs[0];
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(first.dtype()), name_, ": expected tensors of a floating dtype, got ",
                               first.dtype());
  Item item{&op, {}, {}, {}};
  item.plain = kernel_for(op, first.dtype()).dtype == uint8_t(first.dtype());
  for (const std::vector<Tensor>* list : {&outputs, &inputs})
    for (const Tensor& t : *list) {
      STRATA_CHECK(t.defined() && t.sizes() == first.sizes(), name_, ": expected tensors of one shape, got ",
                   first.sizes(), " and ", t.defined() ? t.sizes() : IntArrayRef());
      item.plain &= t.dtype() == first.dtype() && t.is_contiguous();
    }
  item.outputs = std::move(outputs);
  item.inputs = std::move(inputs);
  item.scalars = std::move(scalars);
  items_.push_back(std::move(item));
}

// Whether an item writes what another one reads or writes: one tensor twice in a list.
bool Launches::depend() const {
  struct Span {
    const char *begin, *end;
    size_t item;
    bool written;
  };
  std::vector<Span> spans;
  spans.reserve(4 * items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    auto written = [&](const Tensor& t) {  // in place
      return std::any_of(item.outputs.begin(), item.outputs.end(), [&](const Tensor& o) { return o.is_same(t); });
    };
    for (const std::vector<Tensor>* list : {&item.outputs, &item.inputs})
      for (const Tensor& t : *list) {
        const bool out = list == &item.outputs;
        if (!eager::has_elements_in_memory(t) || (!out && written(t))) continue;
        const char* begin = t.bytes();
        spans.push_back({begin, begin + strided_span(t.sizes(), t.strides()) * t.itemsize(), i, out});
      }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Span any{}, written{};  // those that reach farthest
  for (const Span& s : spans) {
    if (s.item != written.item && s.begin < written.end) return true;
    if (s.written && s.item != any.item && s.begin < any.end) return true;
    if (s.end > any.end) any = s;
    if (s.written && s.end > written.end) written = s;
  }
  return false;
}

void Launches::run() const {
  check_seen(name_.c_str());
  const bool in_order = items_.size() > 1 && depend();
  struct Piece {
    size_t item;
    int64_t begin;
  };
  std::vector<Piece> pieces;
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.outputs[0].numel() == 0) continue;
    if (item.plain && !in_order && eager::has_elements_in_memory(item.outputs[0])) {
      for (int64_t at = 0; at < item.outputs[0].numel(); at += kChunk) pieces.push_back({i, at});
      continue;
    }
    std::vector<const Tensor*> outs, in;
    for (const Tensor& t : item.outputs) outs.push_back(&t);
    for (const Tensor& t : item.inputs) in.push_back(&t);
    pointwise_into(*item.op, outs, in, item.scalars);
  }
  if (pieces.empty()) return;
  parallel_for(0, int64_t(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    size_t last = items_.size();
    const StrataKernelEntry* entry = nullptr;
    alignas(16) char params[16 * kMaxScalars];
    for (int64_t k = begin; k < end; ++k) {
      const Item& item = items_[pieces[k].item];
      DType t = item.outputs[0].dtype();
      if (pieces[k].item != last) {
        last = pieces[k].item;
        entry = &kernel_for(*item.op, t);
        for (size_t s = 0; s < item.scalars.size(); ++s)
          store_scalar(item.scalars[s], traits(t).compute, params + 16 * s);
      }
      char* ptr[kMaxOperands];
      int64_t size[kMaxOperands];
      int count = 0;
      for (const std::vector<Tensor>* list : {&item.outputs, &item.inputs})
        for (const Tensor& x : *list) {
          ptr[count] = x.bytes() + pieces[k].begin * x.itemsize();
          size[count++] = x.itemsize();
        }
      int64_t n = std::min(kChunk, item.outputs[0].numel() - pieces[k].begin);
      run_contiguous(entry->pointwise, ptr, size, int(item.outputs.size()), int(item.inputs.size()), params, n);
    }
  });
}

}  // namespace strata::eager
