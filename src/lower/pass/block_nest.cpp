// Pointwise and row kernels as nests: ranges over their elements, or over the rows and, bound by the reductions, over
// the elements of a row.
#include "lower/expr/build.h"

#include <algorithm>
#include "lower/ir/nest.h"
#include "lower/pass/live.h"
#include "lower/pass/space_nest.h"

namespace strata::lower {
namespace {

class BlockNest {
 public:
  BlockNest(const KernelDesc& desc, DType dtype, bool streams, BlockForm form) : builder_(desc, dtype) {
    builder_.g.portable = true;
    builder_.streams = streams;
    outputs_ = builder_.build();
    const Kernel& k = builder_.kernel();
    nest_.name = k.name;
    nest_.source = k.source;
    nest_.text = k.text;
    nest_.dtype = dtype;
    nest_.scalars = k.scalars;
    rows_ = k.kind == KernelKind::Rows;
    rows_dims_ = rows_ ? form.kept : 0;
    for (int d = 0; d < rows_dims_; ++d) nest_.ranges.push_back({form.kept > 1 ? str_cat("row", d) : "row"});
    for (int d = 0; d < form.elements; ++d) nest_.ranges.push_back({form.elements > 1 ? str_cat("i", d) : "i"});
    element_end_ = int(nest_.ranges.size());
    for (const Operand& o : k.outputs) add_operand(o, true);
    for (const Operand& o : k.inputs) add_operand(o, false);
  }

  Nest run() {
    const Graph& from = builder_.g;
    at_.assign(from.nodes.size(), -1);
    for (size_t v = 0; v < from.nodes.size(); ++v) at_[v] = put(from.nodes[v]);
    for (size_t k = 0; k < outputs_.size(); ++k)
      for (uint8_t part = 0; part < 2; ++part)
        if (outputs_[k][part] >= 0) nest_.stores.push_back({int(k), offset(int(k)), at_[outputs_[k][part]], part});
    for (Carry c : from.carries) {
      for (std::vector<int>* all : {&c.start, &c.next})
        for (int& v : *all) v = at_[size_t(v)];
      c.going = at_[size_t(c.going)];
      c.range = int(nest_.ranges.size());
      nest_.ranges.push_back({Nest::kTurns + std::to_string(c.range)});
      g_.carries.push_back(std::move(c));
    }
    keep_live(g_, nest_);
    find_dependences(nest_);
    verify(nest_);
    return std::move(nest_);
  }

 private:
  void add_operand(const Operand& o, bool output) {
    std::vector<int> dims;
    for (int d = 0; d < (rows_ && o.per_row ? rows_dims_ : int(nest_.ranges.size())); ++d) dims.push_back(d);
    nest_.operands.push_back({o.name, o.storage, output, dims});
  }

  int range(int k) { return g_.add({Op::Range, DType::I64, {-1, -1, -1}, uint64_t(k)}); }
  int extent(int k) { return g_.add({Op::Extent, DType::I64, {-1, -1, -1}, uint64_t(k)}); }
  // The ranges over elements: those of carries follow.
  std::pair<int, int> elements() const { return {rows_dims_, element_end_}; }

  int offset(int operand) {
    int sum = -1;
    for (size_t d = 0; d < nest_.operands[operand].dims.size(); ++d) {
      int stride = g_.add({Op::Stride, DType::I64, {-1, -1, -1}, uint64_t(operand), uint8_t(d)});
      int term = g_.bin(Op::Mul, range(nest_.operands[operand].dims[d]), stride);
      sum = sum < 0 ? term : g_.bin(Op::Add, sum, term);
    }
    return sum;
  }

  int put(Node n) {
    for (int& a : n.arg)
      if (a >= 0) a = at_[a];
    switch (n.op) {
      case Op::Load: {
        int operand = int(builder_.kernel().outputs.size() + n.imm);
        n.arg[0] = offset(operand);
        n.op = Op::At;
        n.imm = uint64_t(operand);
        break;
      }
      case Op::Index: {  // row-major
        int index = range(elements().first);
        for (int d = elements().first + 1; d < elements().second; ++d)
          index = g_.bin(Op::Add, g_.bin(Op::Mul, index, extent(d)), range(d));
        return index;
      }
      case Op::Length: {
        int length = extent(elements().first);
        for (int d = elements().first + 1; d < elements().second; ++d) length = g_.bin(Op::Mul, length, extent(d));
        return length;
      }
      case Op::Reduced: {
        Reduction r = builder_.g.reductions[n.imm];
        for (int& v : r.value)
          if (v >= 0) v = at_[v];
        r.over = 0;
        for (int d = elements().first; d < elements().second; ++d) r.over |= uint64_t(1) << d;
        n.imm = uint64_t(g_.reduce(std::move(r)));
        break;
      }
      default:
        break;
    }
    n.uniform = false;
    return g_.add(std::move(n));
  }

  Builder builder_;
  std::vector<std::array<int, 2>> outputs_;
  Nest nest_;
  Graph g_;
  std::vector<int> at_;
  bool rows_ = false;
  int rows_dims_ = 0, element_end_ = 0;
};

}  // namespace

Nest build_nest(const KernelDesc& desc, DType dtype, bool streams, BlockForm form) {
  if (desc.kind == KernelKind::Space) {
    // The first form says all that the others say of more dims or loops; of scatters, the one for any number of chains.
    const std::vector<SpaceForm> forms = space_forms(desc, dtype);
    const auto chained = std::find_if(forms.begin(), forms.end(), [](const SpaceForm& f) { return f.chained; });
    return build_space(desc, dtype, chained == forms.end() ? forms[0] : *chained);
  }
  return BlockNest(desc, dtype, streams, form).run();
}

}  // namespace strata::lower
