#include "lower/pass/split_rows.h"

#include "lower/pass/grouped.h"
#include "lower/pass/live.h"

namespace strata::lower {

namespace {

class Splitter {
 public:
  explicit Splitter(const Nest& nest) : nest_(nest), over_(grouped_ranges(nest)) {
    for (size_t k = 0; k < nest.ranges.size(); ++k)
      if (nest.loops() >> k & 1) rows_.push_back(int(k));
    for (const NestOperand& o : nest.operands) outputs_ += o.output;
  }

  bool can() const {
    if (!over_ || (nest_.loops() & over_)) return false;
    std::vector<char> reduced(nest_.nodes.size(), 0);  // needs a reduction
    for (size_t v = 0; v < nest_.nodes.size(); ++v) {
      const Node& n = nest_.nodes[v];
      for (int a : n.arg)
        if (a >= 0) reduced[v] |= reduced[size_t(a)];
      if (n.op != Op::Reduced) continue;
      reduced[v] = 1;
      for (int a : nest_.reductions[n.imm].value)
        if (a >= 0 && (reduced[size_t(a)] || nest_.nodes[size_t(a)].type == DType::Bool)) return false;
    }
    return true;
  }

  SplitRows run() {
    for (size_t k = 0; k < nest_.reductions.size(); ++k) {
      const Reduction& r = nest_.reductions[k];
      const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
      first_part_.push_back(int(parts_.size()));
      for (uint8_t part = 0; part < 2; ++part)
        if (r.value[part] >= 0)
          parts_.push_back({int(k), part, nest_.nodes[size_t(r.value[part])].type});
        else if (part == 1 && arg)
          parts_.push_back({int(k), part, DType::I64});
    }
    return {made(true), made(false)};
  }

 private:
  struct Part {
    int reduction;
    uint8_t part;
    DType type;
  };

  // The first launch or the second one.
  Nest made(bool first) {
    Nest out;
    out.name = nest_.name + (first ? "_parts" : "_fold");
    out.source = nest_.source;
    out.text = nest_.text;
    out.dtype = nest_.dtype;
    out.scalars = nest_.scalars;
    out.ranges = nest_.ranges;
    out.ranges.push_back({"chunk"});
    const int chunk = int(nest_.ranges.size());
    std::vector<int> dims = rows_;
    dims.push_back(chunk);
    std::vector<NestOperand> parts;
    for (size_t k = 0; k < parts_.size(); ++k)
      parts.push_back({"part" + std::to_string(k), parts_[k].type, first, dims});
    const auto inputs = nest_.operands.begin() + outputs_;
    if (first) {
      out.operands = parts;
      out.operands.insert(out.operands.end(), inputs, nest_.operands.end());
    } else {
      out.operands = nest_.operands;
      out.operands.insert(out.operands.end(), parts.begin(), parts.end());
    }
    Graph g;
    auto offset = [&](int operand) {
      int sum = -1;
      for (size_t d = 0; d < dims.size(); ++d) {
        const int range = g.add({Op::Range, DType::I64, {-1, -1, -1}, uint64_t(dims[d])});
        const int stride = g.add({Op::Stride, DType::I64, {-1, -1, -1}, uint64_t(operand), uint8_t(d)});
        const int term = g.bin(Op::Mul, range, stride);
        sum = sum < 0 ? term : g.bin(Op::Add, sum, term);
      }
      return sum;
    };
    auto reduce = [&](int number, const std::vector<int>& at) {
      Reduction r = nest_.reductions[size_t(number)];
      if (first) {
        for (int& v : r.value)
          if (v >= 0) v = at[size_t(v)];
        r.chunk = chunk;
        return g.reduce(std::move(r));
      }
      r.over = uint64_t(1) << chunk;
      r.of_chunks = true;
      r.value = {-1, -1};
      for (int k = first_part_[size_t(number)]; k < int(parts_.size()) && parts_[size_t(k)].reduction == number; ++k) {
        const int operand = int(nest_.operands.size()) + k;
        r.value[parts_[size_t(k)].part] =
            g.add({Op::At, parts_[size_t(k)].type, {offset(operand), -1, -1}, uint64_t(operand)});
      }
      return g.reduce(std::move(r));
    };
    std::vector<int> at(nest_.nodes.size(), -1);
    std::vector<int> reductions(nest_.reductions.size(), -1);
    const int shift = first ? int(parts_.size()) - outputs_ : 0;
    for (size_t v = 0; v < nest_.nodes.size(); ++v) {
      Node n = nest_.nodes[v];
      bool known = true;
      for (int& a : n.arg) {
        if (a >= 0) known = known && at[size_t(a)] >= 0;
        if (a >= 0) a = at[size_t(a)];
      }
      // Strides of what only the second launch writes.
      if (!known || (first && n.op == Op::Stride && int(n.imm) < outputs_)) continue;
      if (n.op == Op::Stride || n.op == Op::At) n.imm = uint64_t(int(n.imm) + shift);
      if (n.op == Op::Reduced) {
        int& r = reductions[n.imm];
        if (r < 0) r = int(reduce(int(n.imm), at));
        n.imm = uint64_t(r);
      }
      at[v] = g.add(std::move(n));
    }
    if (first) {
      for (size_t k = 0; k < parts_.size(); ++k) {
        const int r = reductions[size_t(parts_[k].reduction)];
        const int value = g.add({Op::Reduced, parts_[k].type, {-1, -1, -1}, uint64_t(r), parts_[k].part});
        out.stores.push_back({int(k), offset(int(k)), value});
      }
    } else {
      for (NestStore s : nest_.stores) {
        s.offset = at[size_t(s.offset)];
        s.value = at[size_t(s.value)];
        out.stores.push_back(s);
      }
    }
    keep_live(g, out);
    find_dependences(out);
    verify(out);
    return out;
  }

  const Nest& nest_;
  const uint64_t over_;
  std::vector<int> rows_, first_part_;
  int outputs_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

std::optional<SplitRows> split_rows(const Nest& nest) {
  Splitter s(nest);
  if (!s.can()) return std::nullopt;
  return s.run();
}

}  // namespace strata::lower
