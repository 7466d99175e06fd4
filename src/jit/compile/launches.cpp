#include "jit/compile/launches.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "ir/effect.h"
#include "ir/rewrite.h"
#include "jit/compile/elsewhere.h"
#include "jit/compile/piece.h"

namespace strata::jit {

bool Operand::in_short_pieces(int64_t most) const {
  int64_t piece = 1, all = 1;
  for (size_t d = sizes.size(); d-- > 0; all *= sizes[d])
    if (piece == all && (strides[d] == piece || sizes[d] == 1)) piece *= sizes[d];
  return piece < most && piece < all;
}

bool Operand::covers_block(int64_t bytes) const {
  int64_t n = itemsize(dtype);
  for (int64_t s : sizes) n *= s;
  if (n != bytes || offset != 0) return false;
  // Dense: in some order of the dims each stride is the product of the smaller ones.
  int64_t step = 1;
  std::vector<bool> done(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    bool found = false;
    for (size_t d = 0; d < sizes.size() && !found; ++d)
      if (!done[d] && (sizes[d] == 1 || strides[d] == step)) {
        done[d] = found = true;
        step *= sizes[d];
      }
    if (!found) return false;
  }
  return true;
}

namespace {

const lower::KernelDesc* described(const char* kernel) {
  const auto all = descriptions(kernel);
  return all.empty() ? nullptr : all[0];
}

// Whether a space kernel may find an index outside, so that its operator raises with words of its own.
bool checks(const lower::KernelDesc& desc) {
  return std::strstr(desc.text, "checked(") || std::strstr(desc.text, "wrapped(");
}

// Whether the operator is this kernel and nothing else, and only reads what it is given.
bool is_reader(const ir::Node& node, const lower::KernelDesc& desc) {
  const std::optional<OpInfo> i = info(*node.op);
  return i && i->kind == "space" && !node.op->schema().writes() && !std::strstr(desc.text, "_into(");
}

// Whether it only moves its operand: "result = self" of "self[p..]".
bool moves(const char* kernel) {
  const lower::KernelDesc* desc = described(kernel);
  if (!desc) return false;
  const std::string inputs = desc->inputs;
  std::string text = desc->text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (const size_t at = text.find(" = "); at != text.npos) text.erase(0, at + 3);
  return inputs.starts_with(text + "[p..]") && inputs.find(' ') == std::string::npos;
}

// Whether the bytes between the first and the last element of two places of a block are apart.
bool apart(const Operand& a, const Operand& b) {
  auto range = [](const Operand& o) {
    int64_t low = o.offset, high = o.offset;
    for (size_t d = 0; d < o.sizes.size(); ++d) (o.strides[d] < 0 ? low : high) += (o.sizes[d] - 1) * o.strides[d];
    return std::pair(low * itemsize(o.dtype), (high + 1) * itemsize(o.dtype));
  };
  const auto [a0, a1] = range(a);
  const auto [b0, b1] = range(b);
  return a1 <= b0 || b1 <= a0;
}

class Lowering final : public ir::Interpreter, public eager::LaunchObserver {
 public:
  Lowering(const ir::Graph& graph, Device device) : Interpreter(graph), graph_(graph) { list_.device = device; }

  LaunchList lower() {
    for (size_t i = 0; i < graph_.body.params.size(); ++i) {
      params_.push_back(shape_of(graph_.values[size_t(graph_.body.params[i])].type));
      const int block = block_of(params_.back());
      list_.blocks[size_t(block)].param = int(i);
      list_.params.push_back(operand(params_.back()));
    }
    eager::LaunchObserver::Scope observed(*this);
    MetaGuard shapes;
    const ir::BelowAutograd below;
    for (const Tensor& t : run(params_)) {
      list_.results.push_back(operand(t));
      int same = -1;
      for (size_t i = 0; i < params_.size(); ++i)
        if (t.defined() && t.is_same(params_[i])) same = int(i);
      list_.same_as_param.push_back(same);
    }
    return std::move(list_);
  }

  void pointwise(const eager::PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> in,
                 ArrayRef<Scalar> scalars) override {
    Launch& l = add(Launch::Pointwise, outs, in);
    l.pointwise = &op;
    l.name = op.name;
    l.dtype = dtype;
    l.scalars.assign(scalars.begin(), scalars.end());
  }
  void rows(const eager::RowsOp& op, DType dtype, ArrayRef<Tensor> outs, ArrayRef<const Tensor*> in,
            ArrayRef<Scalar> scalars, const DimVec& dims) override {
    std::vector<const Tensor*> list;
    for (const Tensor& t : outs) list.push_back(&t);
    Launch& l = add(Launch::Rows, {list.data(), list.size()}, in);
    l.rows = &op;
    l.name = op.name;
    l.dtype = dtype;
    l.scalars.assign(scalars.begin(), scalars.end());
    l.dims = dims;
  }
  void space(const eager::SpaceCall& c) override {
    if (moves(c.op.name) && c.outs[0]->sizes() == c.ins[0]->sizes()) return copy(*c.outs[0], *c.ins[0]);
    const lower::KernelDesc* desc = described(c.op.name);
    // A device tells afterwards which operator found an index outside; here it is called for its error.
    const bool elsewhere = list_.elsewhere();
    if (!desc || (!elsewhere && (desc->by_hand || (checks(*desc) && !is_reader(*node_, *desc))))) return other();
    if (elsewhere && c.index >= 0 && c.ins[size_t(c.index)]->numel() > 0 && c.outs[0]->numel() == 0) return other();
    Launch& l = add(Launch::Space, c.outs, c.ins);
    l.name = c.name;
    l.dtype = c.dtype;
    l.space = std::make_shared<SpaceData>();
    l.space->op = &c.op;
    l.space->places.assign(c.places.begin(), c.places.end());
    l.space->scalars.assign(c.scalars.begin(), c.scalars.end());
    l.space->lists.assign(c.lists.begin(), c.lists.end());
    l.space->extents.assign(c.extents.begin(), c.extents.end());
    l.space->index = c.index;
    l.space->checks = checks(*desc);
    l.space->outside = c.outside;
    l.space->guards = std::strstr(desc->text, "inside(");
    l.space->hosted = desc->hosted;
  }
  void draw(const eager::DrawOp& op, DType dtype, const Tensor& out, TensorList operands,
            ArrayRef<eager::DrawNumber> numbers, const Generator& generator) override {
    // A generator of one's own has a state of its own.
    if (generator.defined() || (list_.elsewhere() && out.device().is_cpu())) return other();
    const Tensor* outs = &out;
    std::vector<const Tensor*> in;
    for (const Tensor& t : operands) in.push_back(&t);
    Launch& l = add(Launch::Draw, {&outs, 1}, {in.data(), in.size()});
    l.name = op.kernel.name;
    l.dtype = dtype;
    l.draw = std::make_shared<DrawData>(
        DrawData{&op, {numbers.begin(), numbers.end()}, list_.stretches.size() - 1, list_.stretches.back()});
    for (const eager::DrawNumber& n : numbers) l.scalars.push_back(n.value);
    list_.stretches.back() += (out.numel() * eager::words_each(op, dtype) + 3) / 4;
  }
  void copy(const Tensor& to, const Tensor& from) override {
    // Part after part of a result in short runs: the operator has them all at a time.
    constexpr int64_t kShortRun = 16, kMany = 1024;
    if (!list_.elsewhere() && to.numel() >= kMany && !to.is_contiguous() && to.dim() > 1 && to.strides().back() == 1 &&
        to.sizes().back() < kShortRun)
      return other();
    const Tensor *outs = &to, *ins = &from;
    add(Launch::Copy, {&outs, 1}, {&ins, 1}).name = "copy";
  }
  void fill(const Tensor& to, const Scalar& value) override {
    const Tensor* outs = &to;
    Launch& l = add(Launch::Fill, {&outs, 1}, {});
    l.name = "fill";
    l.scalars = {value};
  }
  void other() override { whole_ = true; }

 private:
  // Runs the operator over shapes. Where its launches are not the whole of it, it is called at each run.
  void call(const ir::Node& node, Stack& stack) override {
    node_ = &node;
    whole_ = list_.elsewhere() && !device_backend().offers(list_.device, node.op->name);
    const size_t before = list_.launches.size(), blocks = list_.blocks.size();
    const int64_t drawn = list_.stretches.back();
    const Stack args = stack;
    try {
      STRATA_CHECK(!ir::has_slots(node), "it asks for values");
      call_boxed(*node.op, stack);
    } catch (const Error&) {
      // It asks for values.
      stack = results_by_type(node, args);
      whole_ = true;
    }
    check_geometry(node, args);
    check_types(node, stack);
    whole_ = whole_ || ir::checks_alone(*node.op, args, stack) ||
             (list_.elsewhere() && device_backend().by_library(list_.device, *node.op, args, stack));
    if (!whole_ && told(node, args, stack, before, blocks) && can_raise(node, args, before)) return;
    list_.launches.resize(before);
    list_.stretches.back() = drawn;
    call_whole(node, args, stack, blocks);
  }

  void branch(const ir::Node& node) override { flow(node, "if"); }
  void loop(const ir::Node& node) override { flow(node, "loop"); }
  void flow(const ir::Node& node, const char* name) {
    Launch l;
    l.kind = Launch::Call;
    l.node = &node;
    l.name = name;
    l.flow = std::make_shared<Flow>(graph_, node);
    l.draws = l.flow->draws;
    for (ir::Id v : l.flow->reads) {
      l.ins.push_back(operand(read(v).get<Tensor>()));
      l.written.push_back(l.flow->writes);
    }
    std::vector<IValue> results;
    for (ir::Id v : node.results) {
      const Tensor t = shape_of(graph_.values[size_t(v)].type);
      l.outs.push_back(operand(t));
      l.fresh.push_back(true);
      results.push_back(IValue(t));
    }
    give(node.results, results);
    if (l.draws) list_.stretches.push_back(0);
    list_.launches.push_back(std::move(l));
  }

  // Whether launches account for all memory that the operator makes or writes. Blocks from `made` on are its own.
  bool told(const ir::Node& node, const Stack& args, const Stack& results, size_t before, size_t made) {
    bool all = true;
    std::vector<char> filled(list_.blocks.size() - made);
    for (size_t i = before; i < list_.launches.size(); ++i) {
      const Launch& l = list_.launches[i];
      for (const Operand& o : l.ins)
        if (o.block >= int(made))
          all &= filled[size_t(o.block) - made] || list_.blocks[size_t(o.block)].constant.defined();
      for (const Operand& o : l.outs)
        if (o.block >= int(made)) filled[size_t(o.block) - made] = true;
    }
    auto is_written = [&](const Tensor& t) {
      if (!t.defined() || t.numel() == 0) return;
      const Storage* s = t.storage().get();
      const auto known = blocks_.find(s);
      for (size_t i = before; known != blocks_.end() && i < list_.launches.size(); ++i)
        for (const Operand& o : list_.launches[i].outs)
          if (o.block == known->second) return;
      all = false;
    };
    ir::each_tensor(results, [&](const Tensor& t) {
      if (!t.defined()) return;
      bool given = false;  // or it is a view of what was there
      ir::each_tensor(args, [&](const Tensor& a) { given |= a.defined() && a.storage().get() == t.storage().get(); });
      if (!given) is_written(t);
    });
    const Schema& schema = node.op->schema();
    for (size_t i = 0; i < args.size(); ++i)
      if (schema.args[i].type.written) ir::each_tensor({args[i]}, is_written);
    return all;
  }

  // Results of an operator that asks for values: its operands where it gives these back, else new memory of the type
  // that was recorded.
  Stack results_by_type(const ir::Node& node, const Stack& args) {
    Stack stack;
    const Schema& schema = node.op->schema();
    const bool twin = is_made_twin(*node.op);
    size_t at = 0;  // among the node's results, which have lists taken apart
    auto next = [&] {
      const ir::Id v = node.results[at++];
      return v == ir::kNone ? Tensor() : shape_of(graph_.values[size_t(v)].type);
    };
    for (size_t k = 0; k < schema.returns.size(); ++k) {
      const TypeSpec& r = schema.returns[k].type;
      STRATA_CHECK_NOT_IMPLEMENTED((!r.list || twin) && (r.alias.empty() || r.written), node.op->name,
                                   ": cannot be compiled: which memory it gives hangs on values");
      if (r.list) {
        IValue::TensorVec list(args[written_argument(*node.op, k)].get<IValue::TensorVec>().size());
        for (Tensor& t : list) t = next();
        stack.push_back(IValue(std::move(list)));
        continue;
      }
      Tensor made = next();
      for (size_t i = 0; i < args.size() && r.written; ++i)
        if (schema.args[i].type.alias == r.alias) made = args[i].get<Tensor>();
      stack.push_back(IValue(made));
    }
    return stack;
  }

  // The argument that the k-th result of a functional twin is a changed copy of.
  static size_t written_argument(const Operator& twin, size_t k) {
    const std::vector<Argument>& args = twin_writes(twin).schema().args;
    size_t i = 0;
    while (!args[i].type.written || k-- > 0) ++i;
    return i;
  }

  static Tensor shape_of(const ir::Type& type) {
    return make_tensor_strided(ir::numbers(type.sizes), ir::numbers(type.strides), type.dtype, type.device, true);
  }

  void check_types(const ir::Node& node, const Stack& results) {
    size_t i = 0;
    ir::each_tensor(results, [&](const Tensor& t) {
      const ir::Id v = node.results[i++];
      if (v == ir::kNone || !t.defined()) return;
      const ir::Type& type = graph_.values[size_t(v)].type;
      STRATA_INTERNAL(ir::fits(t, type), node.op->name, ": over shapes it gives ", ir::to_string(ir::type_of(t)),
                      " with strides ", t.strides(), ", when it was captured ", ir::to_string(type));
    });
  }

  // A resize or another geometry of what the caller holds is no launch.
  void check_geometry(const ir::Node& node, const Stack& args) {
    ir::each_tensor(args, [&](const Tensor& t) {
      if (!t.defined() || !t.is_meta()) return;
      STRATA_CHECK_NOT_IMPLEMENTED(int64_t(t.storage()->bytes()) == list_.blocks[size_t(block_of(t))].bytes,
                                   node.op->name, ": cannot be compiled: it changes how much memory a tensor has");
      for (size_t i = 0; i < params_.size(); ++i)
        STRATA_CHECK_NOT_IMPLEMENTED(!t.is_same(params_[i]) || operand(t) == list_.params[i], node.op->name,
                                     ": cannot be compiled: it gives an argument of the graph other sizes or memory");
    });
  }

  // Whether launches that may find an index outside read just what the operator is given, so that it can be called for
  // its error: a converted index is not that.
  bool can_raise(const ir::Node& node, const Stack& args, size_t before) {
    if (list_.elsewhere()) return true;
    bool all = true;
    for (size_t i = before; i < list_.launches.size(); ++i) {
      const Launch& l = list_.launches[i];
      if (!l.space || !l.space->checks) continue;
      each_tensor_argument(node, args, [&](const Tensor& t, bool) {
        const auto at = std::find(l.ins.begin(), l.ins.end(), operand(t));
        all &= at != l.ins.end();
        l.space->args.push_back(size_t(at - l.ins.begin()));
      });
    }
    return all;
  }

  // f(tensor, whether it is written) of each that is a value of the graph.
  template <class F>
  static void each_tensor_argument(const ir::Node& node, const Stack& args, F&& f) {
    const Schema& schema = node.op->schema();
    for (size_t i = 0; i < args.size(); ++i)
      if (node.args[i].kind != ir::Arg::Constant)
        ir::each_tensor({args[i]}, [&](const Tensor& t) { f(t, bool(schema.args[i].type.written)); });
  }

  // Blocks from `before` on are of this operator.
  void call_whole(const ir::Node& node, const Stack& args, const Stack& results, size_t before) {
    Launch l;
    l.kind = Launch::Call;
    l.node = &node;
    l.name = node.op->name.c_str();
    each_tensor_argument(node, args, [&](const Tensor& t, bool writes) {
      l.ins.push_back(operand(t));
      l.written.push_back(writes);
    });
    ir::each_tensor(results, [&](const Tensor& t) {
      l.fresh.push_back(t.defined() && size_t(block_of(t)) >= before);
      l.outs.push_back(operand(t));
    });
    l.draws = ir::may_draw(*node.op);
    if (l.draws) list_.stretches.push_back(0);
    list_.launches.push_back(std::move(l));
  }

  Launch& add(Launch::Kind kind, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> in) {
    Launch l;
    l.kind = kind;
    l.node = node_;
    for (const Tensor* t : outs) l.outs.push_back(operand(*t));
    for (const Tensor* t : in) l.ins.push_back(operand(*t));
    // What reads otherwise than it writes is copied before, where there is memory to ask.
    for (const Operand& o : l.outs)
      for (const Operand& i : l.ins)
        if (o.block == i.block && !(o == i) && !apart(o, i)) whole_ = true;
    list_.launches.push_back(std::move(l));
    return list_.launches.back();
  }

  int block_of(const Tensor& t) {
    auto [at, fresh] = blocks_.emplace(t.storage().get(), int(list_.blocks.size()));
    if (fresh) {
      Block b;
      b.bytes = int64_t(t.storage()->bytes());
      if (!t.is_meta()) b.constant = t;
      b.on_host = list_.elsewhere() && t.device().is_cpu() && t.is_meta();
      list_.blocks.push_back(std::move(b));
      kept_.push_back(t);
    }
    return at->second;
  }

  Operand operand(const Tensor& t) {
    if (!t.defined()) return {};
    return {block_of(t), t.storage_offset(), DimVec(t.sizes()), DimVec(t.strides()), t.dtype()};
  }

  const ir::Graph& graph_;
  LaunchList list_;
  const ir::Node* node_ = nullptr;
  bool whole_ = false;
  std::unordered_map<const Storage*, int> blocks_;
  std::vector<Tensor> params_;
  std::vector<Tensor> kept_;  // an address stays one storage's
};

}  // namespace

void call_host(LaunchList& list, size_t launch) {
  Launch& l = list.launches[launch];
  if (l.kind != Launch::Space || list.elsewhere() || l.ins.size() != 1 || !l.space->hosted) return;
  const Operand& o = l.outs[0];
  const Block& block = list.blocks[size_t(o.block)];
  if (block.param >= 0 || o.offset != 0) return;
  for (size_t i = 0; i < list.launches.size(); ++i) {
    const Launch& other = list.launches[i];
    if (i != launch && other.node == l.node) return;  // one of several of the operator
    for (const Operand& out : other.outs)
      if (i < launch && out.block == o.block) return;  // of which it writes a part
  }
  l.kind = Launch::Call;
  l.written = {false};
  l.fresh = {true};
}

std::unique_ptr<eager::SpacePieces> pieces_of(const Launch& l, const std::vector<Tensor>& given) {
  // Tensors of these sizes, for what is not there.
  auto nowhere = [](const Operand& o) {
    return make_tensor({1}, o.dtype).alias(o.sizes, DimVec(o.sizes.size(), 0), 0);
  };
  const SpaceData& s = *l.space;
  const Tensor result = nowhere(l.outs[0]);
  std::vector<Tensor> ins = given;
  for (size_t i = given.size(); i < l.ins.size(); ++i) ins.push_back(nowhere(l.ins[i]));
  std::vector<const Tensor*> outs(l.outs.size(), &result), in_list;
  for (const Tensor& t : ins) in_list.push_back(&t);
  return eager::SpacePieces::of({*s.op,
                                 l.dtype,
                                 {outs.data(), outs.size()},
                                 {in_list.data(), in_list.size()},
                                 {s.places.data(), s.places.size()},
                                 s.scalars.data(),
                                 {s.extents.data(), s.extents.size()},
                                 s.index});
}

LaunchList lower(const ir::Graph& graph, Device device) {
  LaunchList list = Lowering(graph, device).lower();
  for (Launch& l : list.launches)
    if (l.space && !list.elsewhere()) l.space->in_pieces = pieces_of(l, {}) != nullptr;
  return list;
}

std::vector<int> written_params(const LaunchList& list) {
  std::vector<char> written(list.blocks.size());
  for (const Launch& l : list.launches) {
    for (const Operand& o : l.outs)
      if (o.block >= 0) written[size_t(o.block)] = true;
    for (size_t k = 0; k < l.written.size(); ++k)
      if (l.written[k] && l.ins[k].block >= 0) written[size_t(l.ins[k].block)] = true;
  }
  std::vector<int> params;
  for (size_t b = 0; b < written.size(); ++b)
    if (written[b] && list.blocks[b].param >= 0) params.push_back(list.blocks[b].param);
  return params;
}

std::string print(const LaunchList& list) {
  auto text = [](const Operand& o) {
    if (o.block < 0) return std::string("None");
    return str_cat("b", o.block, "+", o.offset, " ", traits(o.dtype).cname, o.sizes, ":", o.strides);
  };
  std::string out;
  for (size_t i = 0; i < list.params.size(); ++i) out += str_cat("param ", i, " = ", text(list.params[i]), "\n");
  static constexpr const char* kinds[] = {"pointwise", "rows", "space", "draw", "copy", "fill", "call"};
  for (const Launch& l : list.launches) {
    for (size_t i = 0; i < l.outs.size(); ++i) out += (i ? ", " : "") + text(l.outs[i]);
    out += str_cat(l.outs.empty() ? "" : " = ", kinds[l.kind], " ", l.kind == Launch::Call ? l.name : l.kernel(), "(");
    for (size_t i = 0; i < l.ins.size(); ++i) out += (i ? ", " : "") + text(l.ins[i]);
    for (const Scalar& s : l.scalars) out += str_cat("; ", s);
    out += str_cat(")", l.kind == Launch::Rows ? str_cat(" over ", l.dims) : "", "\n");
  }
  for (const Operand& o : list.results) out += "result " + text(o) + "\n";
  return out;
}

}  // namespace strata::jit
