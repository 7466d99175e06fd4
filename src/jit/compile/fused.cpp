#include "jit/compile/fused.h"

#include <algorithm>
#include <unordered_map>

#include "jit/compile/piece.h"
#include "jit/compile/rows.h"
#include "lower/pass/signs.h"
#include "lower/pass/split_rows.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/loop/pointwise_loop.h"
#include "strata/generated/ops/copy.h"

namespace strata::jit {

using lower::Graph;
using lower::Node;
using lower::Op;

namespace {

constexpr int64_t kLoneRows = 64;  // of one element, that are gathered without a thought
// Pieces are worth a call each (their elements, those of a kernel with guards, those of all).
constexpr int64_t kShortest = 64, kShortestGuarded = 512, kFewest = 8192;
constexpr size_t kMaxNodes = 800, kMaxParams = 256, kMaxReductions = 8;

struct Refused {
  std::string why;
};

using Pair = std::array<int, 2>;

class Fuser {
 public:
  Fuser(const LaunchList& list, const std::vector<int>& launches, const std::vector<char>& stores, bool trial)
      : list_(list), launches_(launches), stores_(stores), trial_(trial), on_device_(list.elsewhere()) {
    g_.portable = on_device_;
  }

  // Why the launches have no space in common, where they have none. Most trials end here, and an exception takes longer
  // than they do.
  const char* find_space() {
    const Launch* rows = nullptr;
    for (int i : launches_) {
      const Launch& l = list_.launches[size_t(i)];
      if (l.kind == Launch::Call) return "it is no expression over elements";
      if (l.kind != Launch::Rows) continue;
      if (l.dims.empty()) return "it reduces no dim";
      if (rows && (!(rows->ins[0].sizes == l.ins[0].sizes) || !(rows->dims == l.dims))) return "they reduce other dims";
      rows = &l;
    }
    if (rows) {
      made_.shape = rows->ins[0].sizes;
      made_.reduced = rows->dims;
    } else {
      made_.shape = list_.launches[size_t(launches_[0])].outs[0].sizes;
    }
    is_reduced_.assign(made_.shape.size(), false);
    for (int64_t d : made_.reduced) is_reduced_[size_t(d)] = true;
    for (size_t d = 0; d < made_.shape.size(); ++d) {
      kept_with_ones_.push_back(is_reduced_[d] ? 1 : made_.shape[d]);
      if (!is_reduced_[d]) kept_.push_back(made_.shape[d]);
      if (made_.shape[d] == 0) return "it has no elements";
    }
    for (int i : launches_)
      if (level_of(list_.launches[size_t(i)]) == Other) return "it runs over another shape";
    return nullptr;
  }

  // Of launches over one space.
  Fused run() {
    for (int i : launches_) g_.origin = i, add(list_.launches[size_t(i)]);
    return finish();
  }

 private:
  enum Level { Full, Ones, Kept, Other };

  Level level_of(const Launch& l) const {
    if (l.kind == Launch::Rows) return Full;
    const DimVec& shape = l.outs[0].sizes;
    if (shape == made_.shape) return Full;
    if (made_.reduced.empty()) return Other;
    return shape == kept_with_ones_ ? Ones : shape == kept_ ? Kept : Other;
  }

  // The operand's strides over the space, from a tensor that broadcasts to a shape of the level.
  FusedOperand place(const Operand& o, Level level) const {
    FusedOperand f{o, DimVec(made_.shape.size(), 0), false};
    size_t from = o.sizes.size();
    for (size_t d = made_.shape.size(); d-- > 0 && from > 0;) {
      if (level == Kept && is_reduced_[d]) continue;
      --from;
      if (o.sizes[from] != 1) f.strides[d] = o.strides[from];
    }
    f.per_row = !made_.reduced.empty();
    for (int64_t d : made_.reduced) f.per_row &= f.strides[size_t(d)] == 0;
    // One element is one place, however it is written.
    for (size_t d = 0; d < made_.shape.size(); ++d)
      if (made_.shape[d] == 1) f.strides[d] = 0;
    return f;
  }

  // What a block holds, as far as this kernel knows.
  struct Known {
    FusedOperand at;
    Pair value;
    bool loaded, written;
  };

  static DType part_type(DType t) { return lower::storage_node_type(t); }

  // An operand's elements, as nodes of its memory's type.
  Pair read(const Operand& o, Level level) {
    const Block& block = list_.blocks[size_t(o.block)];
    if (block.constant.defined()) return number(block.constant);
    if (block.on_host) throw Refused{"it reads memory of the CPU"};
    const FusedOperand f = place(o, level);
    for (Known& k : known_)
      if (k.at.same_place(f)) return k.value;
    for (const Known& k : known_)
      if (k.at.memory.block == o.block && k.written) throw Refused{"it reads otherwise what was written"};
    Pair value{load(f, 0), is_complex(o.dtype) ? load(f, 1) : -1};
    made_.ins.push_back(f);
    known_.push_back({f, value, true, false});
    return value;
  }

  // What a launch makes for the loops, in row-major order of what it fills.
  int made(const Launch& l, DType type, Level level) {
    if (level != Full) throw Refused{"it makes for rows what others do for elements"};
    Operand o{-1, 0, l.outs[0].sizes, {}, type};
    int64_t step = 1;
    o.strides.resize(o.sizes.size());
    for (size_t d = o.sizes.size(); d-- > 0; step *= o.sizes[d]) o.strides[d] = step;
    FusedOperand f = place(o, level);
    f.made_by = &l;
    const int v = load(f, 0);
    made_.ins.push_back(std::move(f));
    return v;
  }

  // Elements of a space kernel, in pieces along the last dim.
  void pieces(const Launch& l, Level level) {
    if (on_device_) throw Refused{"it reads or writes at computed places, which kernels of devices do alone"};
    if (!l.space->in_pieces) throw Refused{"its elements are not made one by one"};
    if (l.space->hosted && l.ins[0].strides.back() != 1) throw Refused{"it reads across memory"};
    if (is_complex(l.outs[0].dtype)) throw Refused{"it is complex"};
    // Rows are made before their passes, one by one, where a launch would make them all.
    if (!made_.reduced.empty()) throw Refused{"rows would be made one by one"};
    int64_t elements = 1;
    for (int64_t n : l.outs[0].sizes) elements *= n;
    if (l.outs[0].sizes.empty() || elements < kFewest ||
        l.outs[0].sizes.back() < (l.space->guards ? kShortestGuarded : kShortest))
      throw Refused{"its pieces would be short"};
    for (const Operand& i : l.ins) {
      for (const Known& k : known_)
        if (k.written && k.at.memory.block == i.block) throw Refused{"it reads elsewhere what was written"};
      elsewhere_.push_back(i.block);
    }
    checks_ |= l.space->checks;
    write(l.outs[0], level, l.outs[0].dtype, {made(l, part_type(l.outs[0].dtype), level), -1});
  }

  int load(const FusedOperand& f, uint8_t part) {
    Node n{Op::Load, part_type(f.memory.dtype), {-1, -1, -1}, made_.ins.size(), part};
    n.uniform = f.per_row;
    return g_.add(n);
  }

  int param(const Scalar& value, DType type, uint8_t part) {
    if (part == 0) {
      if (made_.params.size() == kMaxParams) throw Refused{"it would have too many numbers"};
      made_.params.push_back({value, type});
    }
    return g_.add({Op::Param, part_type(type), {-1, -1, -1}, made_.params.size() - 1, part});
  }

  // A Python number that stands as a tensor: converted to the dtype at hand when it is read there.
  Pair number(const Tensor& t) {
    pending_ = &t;
    return {-1, -1};
  }

  // `value` of memory of dtype `from` as a launch that wants `to` reads it.
  Pair converted(Pair value, DType from, DType to) {
    if (pending_) {
      const Tensor at = eager::as_dtype(*pending_, to);
      pending_ = nullptr;
      const DType compute = traits(to).compute;
      const Scalar s = ops::item(at);
      Pair p{param(s, compute, 0), is_complex(to) ? param(s, compute, 1) : -1};
      if (is_complex(to)) return p;
      const int computed = compute == DType::Bool ? lower::convert(g_, p[0], DType::Bool) : p[0];
      return {lower::to_storage(g_, computed, to), -1};
    }
    if (from == to) return value;
    const bool complex = is_complex(from);
    int re = complex ? value[0] : lower::from_storage(g_, value[0], from);
    if (is_float(to)) re = handed(re);
    if (!is_complex(to)) {
      if (complex) throw Refused{"it drops imaginary parts"};
      const int rounded = lower::to_storage(g_, re, to);
      if (is_float(from)) note(rounded, re, to);
      return {rounded, -1};
    }
    const DType part = traits(to).component;
    return {lower::convert(g_, re, part), complex ? lower::convert(g_, value[1], part) : g_.real(part, 0)};
  }

  // numerics="fast": `rounded`, as memory of a half type holds it, was `value`.
  void note(int rounded, int value, DType type) {
    if (!list_.fast || (type != DType::BF16 && type != DType::F16)) return;
    const int wide = lower::from_storage(g_, rounded, type);
    if (g_.type(value) == DType::F64) value = lower::convert(g_, value, DType::F32);
    if (wide != value) unrounded_.emplace(wide, Unrounded{value, type == DType::F16, false});
  }

  // A value as a launch reads it: what was noted for it, or itself.
  int handed(int v) {
    const auto at = unrounded_.find(v);
    if (at == unrounded_.end()) return v;
    if (!at->second.used) ++made_.dropped[at->second.is_f16];
    at->second.used = true;
    return at->second.value;
  }

  void write(const Operand& o, Level level, DType kernel, Pair value) {
    if (list_.blocks[size_t(o.block)].on_host) throw Refused{"it writes memory of the CPU"};
    const FusedOperand f = place(o, level);
    for (size_t d = 0; d < made_.shape.size(); ++d)
      if (made_.shape[d] > 1 && f.strides[d] == 0 && !(is_reduced_[d] && f.per_row))
        throw Refused{"it writes an element several times"};
    if (!f.per_row && level != Full) throw Refused{"it writes rows in places of elements"};
    if (std::find(elsewhere_.begin(), elsewhere_.end(), o.block) != elsewhere_.end())
      throw Refused{"it writes what is read elsewhere"};
    value = converted(value, kernel, o.dtype);
    bool placed = false;
    for (Known& k : known_) {
      if (k.at.memory.block != o.block) continue;
      if (apart(k.at, f, made_.shape)) continue;
      if (!k.at.same_place(f)) throw Refused{"it writes otherwise what was read or written"};
      if (f.per_row && k.loaded) throw Refused{"it writes a value of the row that was read"};
      k.value = value;
      k.written = placed = true;
    }
    if (!placed) known_.push_back({f, value, false, true});
  }

  void add(const Launch& l) {
    const Level level = level_of(l);
    if (l.kind == Launch::Copy) {
      if (!on_device_ && l.outs[0].in_short_pieces(kShortest)) throw Refused{"it writes short pieces"};
      const Operand& from = l.ins[0];
      const Pair v = converted(read(from, level), from.dtype, l.outs[0].dtype);
      return write(l.outs[0], level, l.outs[0].dtype, v);
    }
    if (l.kind == Launch::Fill) {
      const DType t = l.outs[0].dtype;
      const Tensor value = eager::as_dtype(wrapped_number(l.scalars[0]), t);
      pending_ = &value;
      return write(l.outs[0], level, t, converted({-1, -1}, t, t));
    }
    if (l.kind == Launch::Space) return pieces(l, level);
    // Clang 19 gives wrong code for some long texts of complex arithmetic (AVX-512): those stay as they were built and
    // tested.
    if (is_complex(l.dtype)) throw Refused{"it is complex"};
    const Piece* known = piece(l.kernel(), l.dtype, on_device_);
    if (!known) throw Refused{"its kernel has loops or checks of its own"};
    const lower::Kernel& k = known->kernel;
    std::vector<Pair> in;
    if (l.draw && on_device_ && level != Full) throw Refused{"it draws for rows what others do for elements"};
    if (l.draw && !on_device_) in.push_back({made(l, k.inputs[0].storage, level), -1});
    for (size_t i = 0; i < l.ins.size(); ++i) {
      const lower::Operand& o = k.inputs[in.size()];
      const Pair v = read(l.ins[i], row_level(o, l, l.ins[i], level));
      in.push_back(converted(v, l.ins[i].dtype, o.storage));
    }
    std::vector<int> first_param;
    for (size_t i = 0; i < l.scalars.size(); ++i) {
      param(l.scalars[i], k.scalars[i].type, 0);
      first_param.push_back(int(made_.params.size()) - 1);
    }
    for (bool seed : {true, false}) {
      if (!l.draw || !on_device_) break;
      param(Scalar(0), DType::U64, 0);
      made_.params.back().drawn_by = &l;
      made_.params.back().seed = seed;
      first_param.push_back(int(made_.params.size()) - 1);
    }
    draws_ = l.draw != nullptr;
    std::vector<int> at(known->graph.nodes.size(), -1), reduction(known->graph.reductions.size(), -1);
    for (size_t v = 0; v < at.size(); ++v) {
      at[v] = copy(known->graph, int(v), at, reduction, in, first_param);
      if (!known->jumps && !unrounded_.empty()) at[v] = handed(at[v]);
    }
    for (size_t i = 0; i < l.outs.size(); ++i) {
      Pair value = known->outputs[i];
      for (int& v : value)
        if (v >= 0) v = at[size_t(v)];
      if (known->unrounded[i] >= 0) note(value[0], at[size_t(known->unrounded[i])], k.outputs[i].storage);
      write(l.outs[i], row_level(k.outputs[i], l, l.outs[i], level), k.outputs[i].storage, value);
    }
    if (g_.nodes.size() > kMaxNodes) throw Refused{"it would be too long"};
  }

  // Operands with a value per row lie as the kept dims do, or broadcast.
  Level row_level(const lower::Operand& o, const Launch& l, const Operand& memory, Level level) const {
    if (l.kind != Launch::Rows || !o.per_row) return level;
    return memory.sizes == kept_ ? Kept : Full;
  }

  int copy(const Graph& from, int v, const std::vector<int>& at, std::vector<int>& reduction,
           const std::vector<Pair>& in, const std::vector<int>& first_param) {
    Node n = from.node(v);
    if (n.op == Op::Load) return in[n.imm][n.part];
    for (int& a : n.arg)
      if (a >= 0) a = at[size_t(a)];
    if (n.op == Op::Param) n.imm = uint64_t(first_param[n.imm]);
    if (n.op == Op::Index) n.part = draws_;  // of the word, not of the element in its row
    if (n.op == Op::Reduced) {
      if (reduction[n.imm] < 0) {
        lower::Reduction r = from.reductions[n.imm];
        for (int* value : r.nodes())
          if (*value >= 0) *value = at[size_t(*value)];
        reduction[n.imm] = g_.reduce(std::move(r));
      }
      n.imm = uint64_t(reduction[n.imm]);
    }
    if (n.op == Op::Mul && (is_one(n.arg[0]) || is_one(n.arg[1]))) return n.arg[is_one(n.arg[0])];
    n.own = false;
    return g_.add(std::move(n));
  }

  bool is_one(int v) const { return g_.node(v).op == Op::Param && made_.params[g_.node(v).imm].value.equals(1); }

  Fused finish() {
    lower::Kernel& k = made_.kernel;
    std::vector<Pair> outputs;
    for (const Known& known : known_) {
      if (!known.written || !stores_[size_t(known.at.memory.block)]) continue;
      made_.outs.push_back(known.at);
      outputs.push_back(known.value);
      k.outputs.push_back({"y" + std::to_string(k.outputs.size()), known.at.memory.dtype, known.at.per_row});
    }
    if (outputs.empty()) throw Refused{"nothing of it is needed"};
    lower::ignore_signs(g_, outputs);
    drop_unread(outputs);
    if (!on_device_ && made_.ins.size() + made_.outs.size() > size_t(eager::kMaxOperands))
      throw Refused{"it would have too many operands"};
    for (const FusedOperand& o : made_.ins)
      k.inputs.push_back({"x" + std::to_string(k.inputs.size()), o.memory.dtype, o.per_row});
    k.dtype = DType::Bool;
    for (const auto* list : {&made_.outs, &made_.ins})
      for (const FusedOperand& o : *list) widest(o.memory.dtype);
    for (int i : launches_) widest(list_.launches[size_t(i)].dtype);
    for (const FusedParam& p : made_.params) k.scalars.push_back({"s" + std::to_string(k.scalars.size()), p.type});
    k.kind = made_.reduced.empty() ? lower::KernelKind::Pointwise : lower::KernelKind::Rows;
    k.name = "fused";
    if (on_device_) return finish_elsewhere(outputs);
    // Of elements alone there is one pass, which refuses nothing.
    if (!trial_ || !made_.reduced.empty()) lower::split_passes(g_, outputs, k);
    size_t reductions = 0;
    for (const lower::Pass& p : k.passes) reductions += p.reductions.size();
    if (reductions > kMaxReductions || k.scratch.size() > kMaxScratch)
      throw Refused{"it would need too much beside a row"};
    check_rows();
    check_pieces();
    k.length = length();
    return std::move(made_);
  }

  Fused finish_elsewhere(const std::vector<Pair>& outputs) {
    constexpr size_t kOperand = 4;  // arguments that one takes: its memory, where in it, two strides
    if (kOperand * (made_.outs.size() + made_.ins.size()) + made_.params.size() > kMaxArguments)
      throw Refused{"it would have too many operands"};
    int64_t rows = 1, elements = length();
    for (int64_t n : kept_) rows *= n;
    const bool long_rows = rows < kBusyRows && elements > lower::kChunk;
    if (trial_ && !long_rows) return std::move(made_);
    made_.elsewhere = device_kernel(g_, outputs, made_);
    if (long_rows && !made_.elsewhere->in_chunks) throw Refused{"its rows are few and long, and one item group each"};
    return std::move(made_);
  }

  // Of a row.
  int64_t length() const {
    int64_t n = 1;
    for (int64_t d : made_.reduced) n *= made_.shape[size_t(d)];
    return made_.reduced.empty() ? 0 : n;
  }

  // Nodes that no launch over rows has itself, of one value a row or of one an element.
  int64_t added(bool uniform) const {
    int64_t n = 0;
    for (const lower::Pass& p : made_.kernel.passes)
      n += std::ranges::count_if(p.nodes, [&](const Node& node) {
        return node.uniform == uniform && !node.leaf() && node.origin >= 0 &&
               list_.launches[size_t(node.origin)].kind == Launch::Pointwise;
      });
    return n;
  }

  void check_rows() {
    if (made_.reduced.empty()) return;
    int64_t elements = 1;
    for (int64_t n : made_.shape) elements *= n;
    if (length() == 1 && elements > kLoneRows) throw Refused{"its rows have one element each"};
    const Rows rows = lay_rows(made_, length(), added(true), added(false));
    if (rows != Rows::Fit) throw Refused{reason(rows)};
  }

  // What is made is asked for in the order of its elements; what may be refused is refused before anybody's memory
  // changes.
  void check_pieces() const {
    if (std::ranges::none_of(made_.ins, &FusedOperand::made_by)) return;
    if (std::all_of(launches_.begin(), launches_.end(),
                    [&](int i) { return list_.launches[size_t(i)].kind == Launch::Space; }))
      throw Refused{"nothing is computed with it"};
    int64_t last = 0;
    for (size_t d = made_.shape.size(); d-- > 0;) {
      if (made_.shape[d] == 1) continue;
      const int64_t step = made_.outs[0].strides[d];
      if (step < last) throw Refused{"what it makes would be taken in another order"};
      last = step;
    }
    for (const FusedOperand& o : made_.outs)
      if (checks_ && list_.blocks[size_t(o.memory.block)].param >= 0)
        throw Refused{"it writes an argument, and an index may lie outside"};
  }

  // Rows of temporaries have elements of the kernel's compute type: the widest at hand.
  void widest(DType t) {
    if (itemsize(traits(t).compute) > itemsize(traits(made_.kernel.dtype).compute)) made_.kernel.dtype = t;
  }

  // Operands that only launches read whose values nobody needs.
  void drop_unread(const std::vector<Pair>& outputs) {
    const std::vector<char> used = needed(g_, outputs);
    std::vector<int> number(made_.ins.size(), -1);
    std::vector<FusedOperand> kept;
    for (size_t v = 0; v < used.size(); ++v) {
      Node& n = g_.nodes[v];
      if (!used[v] || n.op != Op::Load) continue;
      if (number[n.imm] < 0) {
        number[n.imm] = int(kept.size());
        kept.push_back(made_.ins[n.imm]);
      }
      n.imm = uint64_t(number[n.imm]);
    }
    made_.ins = std::move(kept);
  }

  const LaunchList& list_;
  const std::vector<int>& launches_;
  const std::vector<char>& stores_;
  const bool trial_, on_device_;
  Fused made_;
  Graph g_;
  std::vector<bool> is_reduced_;
  DimVec kept_, kept_with_ones_;
  std::vector<Known> known_;
  std::vector<int> elsewhere_;  // blocks that are read by what makes operands
  bool checks_ = false;         // an index may be found outside
  bool draws_ = false;          // the launch at hand
  const Tensor* pending_ = nullptr;
  struct Unrounded {
    int value;
    bool is_f16, used;
  };
  std::unordered_map<int, Unrounded> unrounded_;  // by what is read of the rounded value
};

std::optional<Fused> attempt(Fuser&& fuser, std::string& why_not) {
  try {
    const char* reason = fuser.find_space();
    if (!reason) return fuser.run();
    why_not = reason;
  } catch (const Refused& r) {
    why_not = r.why;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fused> fuse(const LaunchList& list, const std::vector<int>& launches, const std::vector<char>& stores,
                          std::string& why_not) {
  return attempt(Fuser(list, launches, stores, false), why_not);
}

bool can_fuse(const LaunchList& list, const std::vector<int>& launches, const std::vector<char>& stores,
              std::string& why_not) {
  return attempt(Fuser(list, launches, stores, true), why_not).has_value();
}

}  // namespace strata::jit
