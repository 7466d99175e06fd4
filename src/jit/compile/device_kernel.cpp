// Fused kernels as nests: ranges over the dims of their space, those that are reduced last.
#include <algorithm>

#include "jit/compile/elsewhere.h"
#include "jit/compile/fused.h"
#include "jit/compile/piece.h"
#include "lower/pass/live.h"
#include "lower/pass/split_rows.h"

namespace strata::jit {

using lower::Graph;
using lower::Nest;
using lower::Node;
using lower::Op;

namespace {

// A dim of the space, or several that every operand walks in one step.
struct Walked {
  int64_t size;
  bool reduced;
  std::vector<int64_t> strides;  // by operand
  int64_t place;                 // of the row-major number of an element: its stride
};

// `numbered`: elements are asked for their number.
std::vector<Walked> walked_dims(const Fused& f, const std::vector<const FusedOperand*>& operands, bool numbered) {
  const size_t dims = f.shape.size();
  std::vector<bool> reduced(dims);
  for (int64_t d : f.reduced) reduced[size_t(d)] = true;
  std::vector<Walked> all;
  int64_t place = 1;
  for (size_t d = dims; d-- > 0; place *= f.shape[d]) {
    if (f.shape[d] == 1) continue;
    Walked w{f.shape[d], reduced[d], {}, place};
    for (const FusedOperand* o : operands) w.strides.push_back(o->strides[d]);
    all.insert(all.begin(), std::move(w));
  }
  // Rows in any order: as the first result lies. Elements of rows have theirs.
  std::stable_sort(all.begin(), all.end(), [&](const Walked& a, const Walked& b) {
    if (a.reduced != b.reduced) return b.reduced;
    return !a.reduced && a.strides[0] > b.strides[0];
  });
  std::vector<Walked> joined;
  for (Walked& w : all) {
    bool joins =
        !joined.empty() && joined.back().reduced == w.reduced && (!numbered || joined.back().place == w.place * w.size);
    for (size_t k = 0; joins && k < operands.size(); ++k) joins = joined.back().strides[k] == w.strides[k] * w.size;
    if (joins) w.size *= joined.back().size, joined.pop_back();
    joined.push_back(std::move(w));
  }
  // At least one of each kind that there shall be; results run over it, too.
  for (bool kind : {false, true}) {
    if (kind && f.reduced.empty()) continue;
    if (std::any_of(joined.begin(), joined.end(), [&](const Walked& w) { return w.reduced == kind; })) continue;
    Walked w{1, kind, std::vector<int64_t>(operands.size(), 0), 1};
    for (size_t k = 0; k < f.outs.size(); ++k) w.strides[k] = !(kind && f.outs[k].per_row);
    joined.insert(kind ? joined.end() : joined.begin(), std::move(w));
  }
  return joined;
}

class Making {
 public:
  Making(const Graph& from, const std::vector<std::array<int, 2>>& outputs, const Fused& f)
      : from_(from), outputs_(outputs), f_(f) {
    for (const auto* list : {&f.outs, &f.ins})
      for (const FusedOperand& o : *list) operands_.push_back(&o);
    live_ = needed(from, outputs);
    bool numbered = false;
    for (size_t v = 0; v < live_.size(); ++v)
      numbered |= live_[v] && from.nodes[v].op == Op::Index && from.nodes[v].part;
    dims_ = walked_dims(f, operands_, numbered);
    for (const Walked& w : dims_) rows_ += !w.reduced;
  }

  DeviceKernel run() {
    Nest& n = made_.nest;
    n.name = n.source = "fused";
    n.text = f_.kernel.text;
    n.dtype = f_.kernel.dtype;
    n.scalars = f_.kernel.scalars;
    const bool rows = !f_.reduced.empty();
    for (size_t d = 0; d < dims_.size(); ++d) {
      const bool element = !rows || dims_[d].reduced;
      const size_t number = element && rows ? d - rows_ : d,
                   count = rows && !element ? rows_ : dims_.size() - (rows ? rows_ : 0);
      n.ranges.push_back({str_cat(element ? "i" : "row", count > 1 ? std::to_string(number) : "")});
      made_.extent.push_back(dims_[d].size);
    }
    if (rows) {
      made_.rows = made_.row_length = 1;
      for (const Walked& w : dims_) (w.reduced ? made_.row_length : made_.rows) *= w.size;
    }
    // A row's size decides how it is walked, and items are divided by all sizes but the first.
    made_.in_chunks = rows && made_.rows < kBusyRows && made_.row_length > lower::kChunk;
    for (size_t d = 0; d < dims_.size(); ++d)
      if (!made_.in_chunks && (dims_[d].reduced || d > 0)) n.ranges[d].known = dims_[d].size;
    for (size_t k = 0; k < operands_.size(); ++k) add_operand(k);
    std::vector<int>& at = at_;
    at.assign(from_.nodes.size(), -1);
    for (size_t v = 0; v < at.size(); ++v)
      if (live_[v]) at[v] = put(from_.nodes[v]);
    for (size_t k = 0; k < outputs_.size(); ++k)
      for (uint8_t part = 0; part < 2; ++part)
        if (outputs_[k][part] >= 0) n.stores.push_back({int(k), offset(k), at[size_t(outputs_[k][part])], part});
    lower::keep_live(g_, n);
    lower::find_dependences(n);
    lower::verify(n);
    if (made_.in_chunks) made_.in_chunks = lower::split_rows(n).has_value();
    return std::move(made_);
  }

 private:
  bool is_constant(int64_t stride) const { return !made_.in_chunks && (stride == 0 || stride == 1); }

  void add_operand(size_t k) {
    const FusedOperand& o = *operands_[k];
    const bool output = k < f_.outs.size();
    lower::NestOperand made{str_cat(output ? "y" : "x", output ? k : k - f_.outs.size()), o.memory.dtype, output, {}};
    for (size_t d = 0; d < dims_.size(); ++d) {
      if ((o.per_row && dims_[d].reduced) || is_constant(dims_[d].strides[k])) continue;
      made.dims.push_back(int(d));
      made_.stride.push_back(dims_[d].strides[k]);
    }
    made_.nest.operands.push_back(std::move(made));
  }

  int range(size_t d) { return g_.add({Op::Range, DType::I64, {-1, -1, -1}, d}); }
  int extent(size_t d) { return g_.add({Op::Extent, DType::I64, {-1, -1, -1}, d}); }

  int offset(size_t k) {
    int sum = -1;
    uint8_t parameter = 0;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t stride = dims_[d].strides[k];
      if (operands_[k]->per_row && dims_[d].reduced) continue;
      int term = -1;
      if (!is_constant(stride))
        term = g_.bin(Op::Mul, range(d), g_.add({Op::Stride, DType::I64, {-1, -1, -1}, k, parameter++}));
      else if (stride)
        term = range(d);
      if (term >= 0) sum = sum < 0 ? term : g_.bin(Op::Add, sum, term);
    }
    return sum < 0 ? g_.integer(DType::I64, 0) : sum;
  }

  // The row-major number of an element among those of the dims `use` says, slowest first.
  template <class Use>
  int number(Use use) {
    std::vector<size_t> order;
    for (size_t d = 0; d < dims_.size(); ++d)
      if (use(dims_[d]) && dims_[d].size != 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return dims_[a].place > dims_[b].place; });
    int index = -1;
    for (size_t d : order) index = index < 0 ? range(d) : g_.bin(Op::Add, g_.bin(Op::Mul, index, extent(d)), range(d));
    return index < 0 ? g_.integer(DType::I64, 0) : index;
  }

  int put(Node n) {
    for (int& a : n.arg)
      if (a >= 0) a = at_[size_t(a)];
    switch (n.op) {
      case Op::Load: {
        const size_t operand = f_.outs.size() + n.imm;
        n.arg[0] = offset(operand);
        n.op = Op::At;
        n.imm = operand;
        break;
      }
      case Op::Index:
        return n.part ? number([](const Walked&) { return true; }) : number([](const Walked& w) { return w.reduced; });
      case Op::Length: {
        int length = -1;
        for (size_t d = 0; d < dims_.size(); ++d)
          if (dims_[d].reduced) length = length < 0 ? extent(d) : g_.bin(Op::Mul, length, extent(d));
        return length;
      }
      case Op::Reduced: {
        lower::Reduction r = from_.reductions[n.imm];
        for (int* v : r.nodes())
          if (*v >= 0) *v = at_[size_t(*v)];
        r.over = 0;
        for (size_t d = 0; d < dims_.size(); ++d)
          if (dims_[d].reduced) r.over |= uint64_t(1) << d;
        n.imm = uint64_t(g_.reduce(std::move(r)));
        break;
      }
      default:
        break;
    }
    n.uniform = false;
    return g_.add(std::move(n));
  }

  const Graph& from_;
  const std::vector<std::array<int, 2>>& outputs_;
  const Fused& f_;
  std::vector<const FusedOperand*> operands_;
  std::vector<Walked> dims_;
  size_t rows_ = 0;
  DeviceKernel made_;
  Graph g_;
  std::vector<int> at_;
  std::vector<char> live_;
};

DeviceBackend backend{};

}  // namespace

DeviceKernel device_kernel(const Graph& graph, const std::vector<std::array<int, 2>>& outputs, const Fused& f) {
  return Making(graph, outputs, f).run();
}

void set_device_backend(const DeviceBackend& b) { backend = b; }
const DeviceBackend& device_backend() { return backend; }

}  // namespace strata::jit
