// Windows of the innermost loop whose bounds are dear, as those of adaptive pooling are: a few of them go side by side,
// one chain each, and their bounds are computed once. Note [Innermost loop].
#include <algorithm>
#include <bit>

#include "lower/print/fill.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {
namespace {

const std::string kLaneCount = std::to_string(kWindows);

std::vector<int> limits_of(const InnerPiece& piece) {
  std::vector<int> out;
  for (const InnerPiece::Limit& l : piece.limits) {
    out.push_back(l.node);
    if (l.divisor >= 0) out.push_back(l.divisor);
  }
  return out;
}

}  // namespace

// In place of strips: where the values by which these are guarded are dear, and where the last loop of each reduction
// is one piece with limits.
void NestPrinter::plan_lanes() {
  const uint64_t own = uint64_t(1) << inner_range_;
  uint64_t over = 0;
  for (const auto& [k, strip] : strips_) {
    const auto row = rows_.find(k);
    if (row == rows_.end()) return;
    for (const InnerPiece& piece : row->second.pieces())
      if (!row->second.never(piece, nest_.reductions[size_t(k)].guard) && piece.limits.empty()) return;
    over |= nest_.reductions[size_t(k)].over;
  }
  const size_t count = nest_.nodes.size();
  std::vector<char> is_dear(count, 0), used(count, 0);
  bool any = false;
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    if (n.op == Op::Check || (n.op == Op::Call && n.takes_status()) || n.op == Op::Carried) return;
    if (!(nest_.depends[v] & own) || (nest_.depends[v] & over) || n.op == Op::Reduced || n.op == Op::At) continue;
    is_dear[v] = dear(n);
    for (int a : n.arg) is_dear[v] |= a >= 0 && is_dear[size_t(a)];
  }
  auto use = [&](int v) {
    if (v >= 0 && is_dear[size_t(v)]) any = used[size_t(v)] = 1;
  };
  for (size_t v = 0; v < count; ++v)
    for (int a : nest_.nodes[v].arg)
      if (nest_.depends[v] & over) use(a);
  if (!any) return;
  for (const auto& [k, row] : rows_)
    for (const InnerPiece& piece : row.pieces()) {
      for (const InnerPiece::Limit& l : piece.limits) use(l.node), use(l.divisor);
      for (const auto& [read, step] : piece.reads) use(step.start), use(step.factor);
    }
  for (size_t v = 0; v < count; ++v)
    if (used[v]) lane_kept_[int(v)] = names_.unique(value_names_[v] + "_lane");
  for (const auto& [k, strip] : strips_) lanes_.push_back(k);
  strips_.clear();
  last_.reset();
}

// A loop over lanes: those that are not there do what the last one does.
void NestPrinter::open_lanes() {
  lines(
      fill("$each\nfor (int lane = 0; lane < $n; lane++) {\n  const i64 $i = block + (lane < most ? lane : most);",
           {{"each", values_.dialect().each_lane}, {"n", kLaneCount}, {"i", nest_.ranges[size_t(inner_range_)].name}}));
  ++depth_;
}

void NestPrinter::lanes(uint64_t ranges, const Done& done) {
  const uint64_t inside = ranges | uint64_t(1) << inner_range_;
  Holes holes = {{"begin", begin_of(inner_range_)},
                 {"end", end_of(inner_range_)},
                 {"n", kLaneCount},
                 {"i", nest_.ranges[size_t(inner_range_)].name}};
  lines(
      fill("for (i64 block = $begin; block < $end; block += $n) {\n"
           "  const i64 most = ($end - block < $n ? $end - block : $n) - 1;",
           holes));
  ++depth_;
  std::vector<int> kept;
  auto each_kept = [&](const char* text) {
    for (const auto& [v, name] : lane_kept_) {
      holes["e"] = values_.type(nest_.nodes[size_t(v)].type);
      holes["v"] = ref(v);
      holes["a"] = name;
      line(fill(text, holes));
    }
  };
  each_kept("$e $a[$n];");
  for (const auto& [v, name] : lane_kept_) kept.push_back(v);
  open_lanes();
  Done mine = done;
  statements(kept, inside, mine);
  each_kept("$a[lane] = $v;");
  close();
  in_lanes_ = true;
  for (int k : lanes_) lanes_of(k, ranges, done);
  // Each lane that there is: what is stored.
  lines(fill("for (i64 lane = 0; lane <= most; lane++) {\n  const i64 $i = block + lane;", holes));
  ++depth_;
  mine = done;
  statements(roots(), inside, mine);
  stores(inside);
  close();
  in_lanes_ = false;
  close();
}

void NestPrinter::lanes_of(int number, uint64_t ranges, const Done& done) {
  const Reduction& r = nest_.reductions[size_t(number)];
  const int last = 63 - std::countl_zero(r.over);
  const uint64_t outer = r.over & ~(uint64_t(1) << last);
  const std::vector<std::string> names = state_of(number, "[lane]"), sizes = state_of(number, "[" + kLaneCount + "]"),
                                 types = state_types(number), first = starts(number);
  for (size_t k = 0; k < names.size(); ++k) line(types[k] + " " + sizes[k] + ";");
  open_lanes();
  for (size_t k = 0; k < names.size(); ++k) line(names[k] + " = " + first[k] + ";");
  close();
  const Span span{last, "", "", false, "[lane]"};
  span_ = &span;
  // Where one piece is left, whose limits the loops around it leave alone, each lane's are found before these.
  std::vector<const InnerPiece*> pieces;
  for (const InnerPiece& piece : rows_.at(number).pieces())
    if (!rows_.at(number).never(piece, r.guard)) pieces.push_back(&piece);
  const bool ahead = pieces.size() == 1 && !limits_follow(*pieces[0], number, outer);
  open("{");
  if (ahead) lanes_limits(*pieces[0], limits_of(*pieces[0]), ranges, done, "");
  range_loops(outer);
  for (const InnerPiece* piece : pieces) lanes_piece(number, *piece, ranges | outer, done, ahead);
  span_ = nullptr;
  close_loops(outer);
  close();
}

// Whether the loop's ends depend on `outer`, or a guard before it on the lane.
bool NestPrinter::limits_follow(const InnerPiece& piece, int number, uint64_t outer) const {
  const int guard = nest_.reductions[size_t(number)].guard;
  if (guard >= 0 && nest_.depends[size_t(piece.same[size_t(guard)])] >> inner_range_ & 1) return true;
  const std::vector<int> limits = limits_of(piece);
  return std::any_of(limits.begin(), limits.end(), [&](int v) { return nest_.depends[size_t(v)] & outer; });
}

// Where the loop begins and ends in each lane, and how far all go together from the first one's begin, and
// any at all.
void NestPrinter::lanes_limits(const InnerPiece& piece, const std::vector<int>& wanted, uint64_t ranges, Done done,
                               const std::string& guard) {
  const Holes holes = {{"n", kLaneCount}, {"end", parameter(NestParameter::Extent, span_->range, 0)}};
  piece_ = &piece;
  line(fill("i64 from[$n], to[$n], all = INT64_MAX;", holes));
  if (!finds_places()) line("i64 last = INT64_MIN;");
  open_lanes();
  statements(wanted, ranges | uint64_t(1) << inner_range_, done);
  line(fill("i64 first = 0, past = $end;", holes));
  limits(piece);
  if (!guard.empty()) line("if (!" + guard + ") past = first;");
  lines(std::string("from[lane] = first, to[lane] = past;\n") +
        (finds_places() ? "" : "last = greater(last, past);\n") +
        "all = first == from[0] ? lesser(all, past) : INT64_MIN;");
  close();
}

// The last loop of a reduction, for all lanes: together as far as all go, then each to its end.
void NestPrinter::lanes_piece(int number, const InnerPiece& piece, uint64_t ranges, Done done, bool ahead) {
  const Reduction& r = nest_.reductions[size_t(number)];
  const uint64_t in_lane = ranges | uint64_t(1) << inner_range_;
  piece_ = &piece;
  std::vector<int> wanted;
  for (int v : rows_.at(number).roots()) wanted.push_back(same(v));
  const int guard = r.guard < 0 ? -1 : same(r.guard);
  const bool guarded = guard >= 0 && nest_.nodes[size_t(guard)].op != Op::Const;
  const bool before = guarded && !(nest_.depends[size_t(guard)] >> span_->range & 1);
  const Holes holes = {{"k", nest_.ranges[size_t(span_->range)].name}};
  open("{");
  statements(wanted, ranges, done);
  Done mine;
  if (ahead)
    open(before ? "if (" + ref(guard) + ") {" : "{");
  else
    lanes_limits(piece, wanted, ranges, done, before ? ref(guard) : "");
  auto element = [&] {
    mine = done;
    guarded_ = before;
    statements(wanted, in_lane, mine);  // where a step starts is no argument of what is read there
    statements(wanted, in_lane | uint64_t(1) << span_->range, mine);
    step(number, span_->where, ref(r.value[0]), r.value[1] >= 0 ? ref(r.value[1]) : "",
         guarded && !before ? ref(guard) : "");
    guarded_ = false;
    close();
    close();
  };
  open(fill("for (i64 $k = from[0]; $k < all; $k++) {", holes));
  open_lanes();
  element();
  open(finds_places() ? "{" : "if (all < last) {");
  open_lanes();
  open(fill("for (i64 $k = greater(from[lane], all); $k < to[lane]; $k++) {", holes));
  element();
  close();
  if (ahead) close();
  close();
  piece_ = nullptr;
}

}  // namespace strata::lower
