#include "lower/pass/fuse.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "lower/pass/live.h"

namespace strata::lower {
namespace {

constexpr int kZero = -1, kOne = -2;  // indices that an offset does not name

// The index of each dim of an operand in an offset, which is a sum of index times stride. False where it is not.
bool indices(const Nest& nest, int operand, int offset, std::vector<int>& at) {
  at.assign(nest.operands[size_t(operand)].dims.size(), kZero);
  auto stride = [&](int v) {
    const Node& n = nest.nodes[size_t(v)];
    return n.op == Op::Stride && n.imm == uint64_t(operand) ? int(n.part) : -1;
  };
  auto set = [&](int dim, int index) {
    if (at[size_t(dim)] != kZero) return false;
    at[size_t(dim)] = index;
    return true;
  };
  std::vector<int> terms = {offset};
  while (!terms.empty()) {
    const int v = terms.back();
    terms.pop_back();
    const Node& n = nest.nodes[size_t(v)];
    if (n.op == Op::Add) {
      terms.insert(terms.end(), {n.arg[0], n.arg[1]});
    } else if (stride(v) >= 0) {
      if (!set(stride(v), kOne)) return false;
    } else if (n.op == Op::Mul && stride(n.arg[1]) >= 0) {
      if (!set(stride(n.arg[1]), n.arg[0])) return false;
    } else if (n.op == Op::Mul && stride(n.arg[0]) >= 0) {
      if (!set(stride(n.arg[0]), n.arg[1])) return false;
    } else if (n.op != Op::Const || n.imm != 0) {
      return false;
    }
  }
  return true;
}

int find(const Nest& nest, const std::string& name, bool output) {
  for (size_t k = 0; k < nest.operands.size(); ++k)
    if (nest.operands[k].output == output && nest.operands[k].name == name) return int(k);
  return -1;
}

bool may_set_status(const Node& n) { return n.op == Op::Check || (n.op == Op::Call && n.takes_status()); }
bool sets_status(const Nest& nest) { return std::ranges::any_of(nest.nodes, may_set_status); }

// The ranges whose indices are an element's place, where each dim of the operand has its own; else 0.
uint64_t own_place(const Nest& nest, int operand, int offset) {
  std::vector<int> at;
  uint64_t ranges = 0;
  if (!indices(nest, operand, offset, at)) return 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const int range = nest.operands[size_t(operand)].dims[d];
    if (at[d] < 0 || nest.nodes[size_t(at[d])].op != Op::Range || nest.nodes[size_t(at[d])].imm != uint64_t(range))
      return 0;
    ranges |= uint64_t(1) << range;
  }
  return ranges;
}

// The dims of an operand, a bit each, that all that sets the status hangs on.
uint64_t checked_dims(const Nest& nest, const NestOperand& o) {
  uint64_t all = ~uint64_t(0);
  for (size_t v = 0; v < nest.nodes.size(); ++v) {
    if (!may_set_status(nest.nodes[v])) continue;
    uint64_t dims = 0;
    for (size_t d = 0; d < o.dims.size(); ++d) dims |= uint64_t(nest.depends[v] >> o.dims[d] & 1) << d;
    all &= dims;
  }
  return all;
}

// Whether some read takes every element of an operand, if it has any: each turn of the loops another one. Loops that do
// not say which may have no turns, and a kernel whose loops have none does not run. What is checked of dims `checked`
// alone is checked outside of a reduction over the others, which may have none.
bool reads_all(const Nest& nest, int operand, uint64_t checked) {
  for (const Node& n : nest.nodes) {
    if (n.op != Op::At || n.imm != uint64_t(operand) || n.arg[1] >= 0) continue;
    const uint64_t place = own_place(nest, operand, n.arg[0]);
    if (std::popcount(place) != int(nest.operands[size_t(operand)].dims.size())) continue;
    uint64_t around = nest.loops();
    uint64_t bound = 0;
    for (const Reduction& r : nest.reductions) {
      if (r.over & place) around |= r.over;
      bound |= r.over;
    }
    const std::vector<int>& dims = nest.operands[size_t(operand)].dims;
    for (size_t d = 0; d < dims.size(); ++d)
      if ((bound >> dims[d] & 1) && !(checked >> d & 1)) around = ~uint64_t(0);
    if ((around & ~place) == 0) return true;
  }
  return false;
}

// The loop that an output's values are handed along; -1 where they are not.
int carried_along(const Nest& nest, int output) {
  std::vector<char> used(nest.nodes.size(), 0);
  for (const NestStore& s : nest.stores)
    if (s.operand == output) used[size_t(s.value)] = 1;
  int along = -1;
  for (size_t v = nest.nodes.size(); v-- > 0;) {
    const Node& n = nest.nodes[v];
    if (!used[v]) continue;
    for (int a : n.arg)
      if (a >= 0) used[size_t(a)] = 1;
    if (n.op == Op::Reduced)
      for (int a : nest.reductions[n.imm].reads())
        if (a >= 0) used[size_t(a)] = 1;
    if (n.op != Op::Carried) continue;
    const Carry& c = nest.carries[n.imm];
    for (int a : c.uses()) used[size_t(a)] = 1;
    if (c.kind != Carry::Repeat) along = c.range;
  }
  return along;
}

int dim_of(const NestOperand& o, int range) { return int(std::ranges::find(o.dims, range) - o.dims.begin()); }

// Whether an operand is read while the index of one of its dims goes up from 0, one by one, in the innermost of the
// loops that the place depends on.
bool in_order(const Nest& nest, const std::vector<int>& at, size_t dim) {
  const int index = at[dim];
  if (index < 0 || nest.nodes[size_t(index)].op != Op::Range) return false;
  const uint64_t own = uint64_t(1) << nest.nodes[size_t(index)].imm;
  uint64_t all = 0;
  for (int v : at)
    if (v >= 0) all |= nest.depends[size_t(v)];
  for (size_t d = 0; d < at.size(); ++d)
    if (d != dim && at[d] >= 0 && (nest.depends[size_t(at[d])] & own)) return false;
  // A row that is reduced is walked once more there.
  uint64_t bound = 0;
  for (const Reduction& r : nest.reductions) bound |= r.over;
  return (all & (~nest.loops() | bound)) == 0 && all < 2 * own;
}

// A nest as the graph of the fused one takes it: what its ranges, operands and scalars are there.
struct Source {
  const Nest& nest;
  std::vector<int> range, bound;  // bound: inside of the reductions that bind it
  std::vector<int> operand, scalar;
  uint64_t repeating = 0;  // ranges of carries that repeat, which a carry of the fused nest has
};

// A source's values at one place.
struct Instance {
  std::vector<int> at;  // by range the node that stands for its index; -1: the index itself
  int guard = -1;       // a node, where the place is outside if it is false
  std::map<std::pair<int, uint64_t>, int> done;
  std::map<std::pair<uint64_t, uint64_t>, int> carries;  // inside of the ranges that are bound
  std::map<uint64_t, int> states;                        // of the carries at hand
};

class Fusing {
 public:
  Fusing(const Nest& consumer, const Nest& producer)
      : consumer_{consumer, {}, {}, {}, {}}, producer_{producer, {}, {}, {}, {}} {
    for (const NestOperand& o : consumer.operands) result_.push_back(o.output ? -1 : find(producer, o.name, true));
  }

  std::string refusal() const {
    const Nest &consumer = consumer_.nest, &producer = producer_.nest;
    bool linked = false;
    size_t reads = 0;
    for (size_t k = 0; k < result_.size(); ++k) {
      if (result_[k] < 0) continue;
      linked = true;
      const NestOperand &read = consumer.operands[k], &made = producer.operands[size_t(result_[k])];
      if (read.dims.size() != made.dims.size())
        return str_cat(read.name, " has ", made.dims.size(), " dims, and is read with ", read.dims.size());
      if (read.storage != made.storage)
        return str_cat(read.name, " is written as ", made.storage, " and read as ", read.storage);
      for (const NestStore& s : producer.stores) {
        if (s.operand != result_[k]) continue;
        if (s.into != NestStore::None) return str_cat(read.name, " is scattered to");
        if (std::popcount(own_place(producer, s.operand, s.offset)) != int(made.dims.size()))
          return str_cat(read.name, " is written at computed places");
      }
      const int along = carried_along(producer, result_[k]);
      std::vector<int> at;
      for (const Node& n : consumer.nodes) {
        if (n.op != Op::At || n.imm != k) continue;
        ++reads;
        if (!indices(consumer, int(k), n.arg[0], at))
          return str_cat(read.name, " is read at an offset without indices");
        if (along >= 0 && (n.arg[1] >= 0 || !in_order(consumer, at, size_t(dim_of(made, along)))))
          return str_cat(read.name, " is handed along a dim, and not read in its order");
      }
    }
    if (!linked) return "the consumer reads nothing that the producer writes";
    const bool checks = sets_status(producer);
    for (const NestOperand& o : producer.operands) {
      if (o.output) {
        const int read = find(consumer, o.name, false);
        if (checks && (read < 0 || !reads_all(consumer, read, checked_dims(producer, o))))
          return str_cat(o.name, " is checked where it is made, and not read everywhere");
        continue;
      }
      if (find(consumer, o.name, true) >= 0)
        return str_cat("the producer reads ", o.name, ", which the consumer writes");
      const int same = find(consumer, o.name, false);
      if (same < 0) continue;
      const NestOperand& other = consumer.operands[size_t(same)];
      if (other.storage != o.storage || other.dims.size() != o.dims.size())
        return str_cat(o.name, " is another tensor in the consumer");
    }
    for (const Scalar& s : producer.scalars)
      for (const Scalar& t : consumer.scalars)
        if (s.name == t.name && s.type != t.type) return str_cat(s.name, " is another number in the consumer");
    const size_t repeats = producer.carries.size() * reads;
    if (consumer.ranges.size() + 2 * producer.ranges.size() + repeats > 64) return "together they have too many ranges";
    return "";
  }

  Fused run(const std::string& name) {
    const Nest& consumer = consumer_.nest;
    out_.nest.name = name;
    out_.nest.source = consumer.source;
    out_.nest.text = producer_.nest.text + "\n" + consumer.text;
    out_.nest.dtype = consumer.dtype;
    ranges();
    operands();
    scalars(consumer_);
    scalars(producer_);
    Instance whole{std::vector<int>(consumer.ranges.size(), -1), -1, {}, {}, {}};
    for (NestStore s : consumer.stores) {
      for (int* v : {&s.offset, &s.value, &s.imaginary, &s.guard})
        if (*v >= 0) *v = put(consumer_, whole, *v, 0);
      s.operand = consumer_.operand[size_t(s.operand)];
      out_.nest.stores.push_back(s);
    }
    keep_live(g_, out_.nest);
    find_dependences(out_.nest);
    verify(out_.nest);
    return std::move(out_);
  }

 private:
  // ---- ranges, operands, scalars

  int new_range(NestRange range, int of_consumer, int of_producer) {
    out_.nest.ranges.push_back(std::move(range));
    out_.of_consumer.push_back(of_consumer);
    out_.of_producer.push_back(of_producer);
    return int(out_.nest.ranges.size()) - 1;
  }

  std::string unused(const std::string& wish) const {
    for (int k = 1;; ++k) {
      const std::string name = k == 1 ? wish : wish + "_" + std::to_string(k);
      auto named = [&](const auto& list) {
        return std::ranges::any_of(list, [&](const auto& x) { return x.name == name; });
      };
      bool used = named(out_.nest.ranges);
      for (const Nest* n : {&consumer_.nest, &producer_.nest}) used |= named(n->operands) || named(n->scalars);
      if (!used) return name;
    }
  }

  void ranges() {
    const Nest &consumer = consumer_.nest, &producer = producer_.nest;
    for (size_t k = 0; k < consumer.ranges.size(); ++k) {
      consumer_.range.push_back(new_range(consumer.ranges[k], int(k), -1));
      consumer_.bound.push_back(int(k));
    }
    // Dims of one tensor have one size.
    std::vector<int>& range = producer_.range;
    range.assign(producer.ranges.size(), -1);
    auto join = [&](const NestOperand& theirs, const NestOperand& ours) {
      for (size_t d = 0; d < theirs.dims.size(); ++d) range[size_t(theirs.dims[d])] = ours.dims[d];
    };
    for (const NestOperand& o : producer.operands)
      if (const int same = o.output ? -1 : find(consumer, o.name, false); same >= 0)
        join(o, consumer.operands[size_t(same)]);
    for (size_t k = 0; k < result_.size(); ++k)
      if (result_[k] >= 0) join(producer.operands[size_t(result_[k])], consumer.operands[k]);
    // A reduction's order is that of the numbers of its ranges.
    uint64_t bound = 0;
    for (const Reduction& r : producer.reductions) bound |= r.over;
    producer_.bound = range;
    for (size_t k = 0; k < range.size(); ++k) {
      if (range[k] >= 0 && !(bound >> k & 1)) continue;
      NestRange own{unused(producer.ranges[k].name)};
      producer_.bound[k] = new_range(own, range[k], range[k] < 0 ? int(k) : -1);
      if (range[k] < 0) range[k] = producer_.bound[k];
    }
  }

  void operands() {
    std::vector<NestOperand>& all = out_.nest.operands;
    auto add = [&](const Source& s, const NestOperand& o) {
      all.push_back(o);
      for (int& d : all.back().dims) d = s.range[size_t(d)];
      return int(all.size()) - 1;
    };
    for (size_t k = 0; k < result_.size(); ++k)
      consumer_.operand.push_back(result_[k] >= 0 ? -1 : add(consumer_, consumer_.nest.operands[k]));
    for (const NestOperand& o : producer_.nest.operands) {
      const int same = o.output ? -1 : find(consumer_.nest, o.name, false);
      producer_.operand.push_back(o.output ? -1 : same >= 0 ? consumer_.operand[size_t(same)] : add(producer_, o));
    }
  }

  void scalars(Source& s) {
    std::vector<Scalar>& all = out_.nest.scalars;
    for (const Scalar& one : s.nest.scalars) {
      const auto known = std::ranges::find(all, one.name, &Scalar::name);
      s.scalar.push_back(int(known - all.begin()));
      if (known == all.end()) all.push_back(one);
    }
  }

  // ---- values

  int leaf(Op op, int what, uint8_t part = 0) { return g_.add({op, DType::I64, {-1, -1, -1}, uint64_t(what), part}); }
  int also(int guard, int condition) {
    return guard < 0 ? condition : condition < 0 ? guard : g_.op(Op::And, DType::Bool, guard, condition);
  }

  // A source's node at a place, inside of reductions that bind the ranges `bound`.
  int put(Source& s, Instance& here, int v, uint64_t bound) {
    bound &= s.nest.depends[size_t(v)];
    const auto known = here.done.find({v, bound});
    if (known != here.done.end()) return known->second;
    const int made = put_anew(s, here, v, bound);
    here.done[{v, bound}] = made;
    return made;
  }

  int put_anew(Source& s, Instance& here, int v, uint64_t bound) {
    Node n = s.nest.nodes[size_t(v)];
    n.uniform = false;
    switch (n.op) {
      case Op::Range:
        if (bound >> n.imm & 1) return leaf(n.op, s.bound[n.imm]);
        return here.at[n.imm] >= 0 ? here.at[n.imm] : leaf(n.op, s.range[n.imm]);
      case Op::Extent:
        return leaf(n.op, s.range[n.imm]);
      case Op::Stride:
        return leaf(n.op, s.operand[n.imm], n.part);
      case Op::Param:
        n.imm = uint64_t(s.scalar[n.imm]);
        return g_.add(std::move(n));
      case Op::Reduced: {
        Reduction r = s.nest.reductions[n.imm];
        const uint64_t inside = bound | r.over;
        for (int* a : r.nodes())
          if (*a >= 0) *a = put(s, here, *a, inside);
        uint64_t over = 0;
        for (size_t k = 0; k < s.bound.size(); ++k)
          if (r.over >> k & 1) over |= uint64_t(1) << s.bound[k];
        r.over = over;
        uint64_t below = 0;
        for (size_t k = 0; k < s.range.size(); ++k)
          if (r.below >> k & 1) below |= uint64_t(1) << s.range[k];
        r.below = below;
        n.imm = uint64_t(g_.reduce(std::move(r)));
        return g_.add(std::move(n));
      }
      case Op::State:
        n.imm = uint64_t(here.states.at(n.imm));
        return g_.add(std::move(n));
      case Op::Carried:
        n.imm = uint64_t(carry(s, here, n.imm, bound));
        return g_.add(std::move(n));
      case Op::At:
        if (s.operand[n.imm] < 0) return produced(n, here, bound);
        n.arg[0] = put(s, here, n.arg[0], bound);
        n.arg[1] = also(here.guard, n.arg[1] < 0 ? -1 : put(s, here, n.arg[1], bound));
        n.imm = uint64_t(s.operand[n.imm]);
        return g_.add(std::move(n));
      default:
        break;
    }
    for (int& a : n.arg)
      if (a >= 0) a = put(s, here, a, bound);
    // What is outside sets no status.
    if (n.op == Op::Check && here.guard >= 0)
      n.arg[0] = g_.op(Op::Or, DType::Bool, g_.op(Op::Not, DType::Bool, here.guard), n.arg[0]);
    if (n.op == Op::Call && n.takes_status() && here.guard >= 0)
      n.arg[1] = g_.select(here.guard, n.arg[1], g_.integer(n.type, 1));
    return g_.add(std::move(n));
  }

  // A source's carry, once for each place: what it repeats has a range of its own, what goes along a loop that loop.
  int carry(Source& s, Instance& here, uint64_t which, uint64_t bound) {
    if (const auto known = here.carries.find({which, bound}); known != here.carries.end()) return known->second;
    Carry c = s.nest.carries[which];
    const int number = int(g_.carries.size()), range = c.range;
    const uint64_t own = uint64_t(1) << range, inside = c.kind == Carry::Repeat ? bound | own : bound;
    g_.carries.emplace_back();
    here.carries[{which, bound}] = here.states[which] = number;
    if (c.kind != Carry::Repeat) {
      c.range = here.at[size_t(range)] >= 0 ? int(g_.node(here.at[size_t(range)]).imm) : s.range[size_t(range)];
      out_.nest.ranges[size_t(c.range)].whole = true;
    } else {
      c.range = s.range[size_t(range)];
      if (s.repeating & own) {
        const NestRange turns{unused(Nest::kTurns)};
        c.range = new_range(turns, out_.of_consumer[size_t(c.range)], out_.of_producer[size_t(c.range)]);
      }
      s.repeating |= own;
    }
    for (int& v : c.start) v = put(s, here, v, bound);
    if (c.going >= 0) c.going = put(s, here, c.going, inside);
    for (int& v : c.next) v = put(s, here, v, inside);
    // Another one's states are others.
    std::erase_if(here.done, [&](const auto& one) { return one.first.second & own & ~bound; });
    g_.carries[size_t(number)] = std::move(c);
    return number;
  }

  // A read of the producer's result: what it stores there.
  int produced(const Node& read, Instance& here, uint64_t bound) {
    Source& s = consumer_;
    std::vector<int> at;
    STRATA_INTERNAL(indices(s.nest, int(read.imm), read.arg[0], at), s.nest.name, ": an offset without indices");
    for (int& v : at)
      v = v == kZero ? g_.integer(DType::I64, 0) : v == kOne ? g_.integer(DType::I64, 1) : put(s, here, v, bound);
    const int guard = read.arg[1] < 0 ? -1 : put(s, here, read.arg[1], bound);
    const Nest& producer = producer_.nest;
    const int result = result_[read.imm];
    const NestStore& store = *std::ranges::find_if(
        producer.stores, [&](const NestStore& one) { return one.operand == result && one.part == read.part; });
    Instance& there = instances_[{result, at, guard}];
    there.guard = guard;
    there.at.assign(producer.ranges.size(), -1);
    for (size_t d = 0; d < at.size(); ++d) there.at[size_t(producer.operands[size_t(result)].dims[d])] = at[d];
    const int value = put(producer_, there, store.value, 0);
    if (g_.node(value).op != Op::At)
      g_.name(value, producer.operands[size_t(result)].name + (read.part ? "_im" : ""), true);
    return guard < 0 ? value : g_.select(guard, value, g_.integer(g_.type(value), 0));
  }

  Source consumer_, producer_;
  std::vector<int> result_;  // by operand of the consumer: which output of the producer it is
  std::map<std::tuple<int, std::vector<int>, int>, Instance> instances_;
  Graph g_;
  Fused out_;
};

}  // namespace

std::string why_not(const Nest& consumer, const Nest& producer) { return Fusing(consumer, producer).refusal(); }

Fused fuse(const Nest& consumer, const Nest& producer, const std::string& name) {
  Fusing fusing(consumer, producer);
  const std::string reason = fusing.refusal();
  STRATA_INTERNAL(reason.empty(), name, ": not to be fused: ", reason);
  return fusing.run(name);
}

}  // namespace strata::lower
