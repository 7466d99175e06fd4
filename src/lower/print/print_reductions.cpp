// Reductions in a printed nest: each is a loop of its own where its result is known.
#include <algorithm>
#include <bit>

#include "lower/print/fill.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {

int NestPrinter::node_of(int reduction, uint8_t part) const {
  for (size_t v = 0; v < nest_.nodes.size(); ++v)
    if (nest_.nodes[v].op == Op::Reduced && nest_.nodes[v].imm == uint64_t(reduction) && nest_.nodes[v].part == part)
      return int(v);
  return -1;
}

void NestPrinter::range_loops(uint64_t over) {
  for (size_t k = 0; k < nest_.ranges.size(); ++k)
    if (over >> k & 1) {
      const std::string& name = nest_.ranges[k].name;
      open("for (i64 " + name + " = 0; " + name + " < " + parameter(NestParameter::Extent, int(k), 0) + "; " + name +
           "++) {");
    }
}

// The loops over a reduction's ranges, with what its values need inside them.
void NestPrinter::reduced_loops(const Reduction& r, uint64_t ranges, const Done& done) {
  range_loops(r.over);
  Done inner = done;
  const auto read = r.reads();
  statements({read.begin(), read.end()}, ranges | r.over, inner);
}

void NestPrinter::close_loops(uint64_t over) {
  for (size_t k = 0; k < nest_.ranges.size(); ++k)
    if (over >> k & 1) close();
}

void NestPrinter::reduction(int number, uint64_t ranges, Done& done) {
  const Reduction& r = nest_.reductions[number];
  const int nodes[2] = {node_of(number, 0), node_of(number, 1)};
  for (int v : nodes)
    if (v >= 0) done[v] = 1;
  if (grouped_) return group_reduction(number, nodes, ranges, done);
  if (r.multiplies()) return contraction(r, nodes, ranges, done);
  if (r.sequence && !is_complex(r.accumulator)) return sequence(number, nodes, ranges, done);
  if (r.combine == Combine::ArgMax || r.combine == Combine::ArgMin) return arg_reduction(r, nodes, ranges, done);
  if (r.combine == Combine::Mul && is_complex(r.accumulator)) return product(r, nodes, ranges, done);
  for (int part = 0; part < 2; ++part) {
    if (nodes[part] < 0) continue;
    const int value = r.value[part];
    const DType t = nest_.nodes[value].type;
    const std::string e = values_.type(t), result = value_names_[nodes[part]];
    Reduction one = r;
    one.value = {value, -1};
    const bool is_real = is_float(t), sums = r.combine == Combine::Add || r.combine == Combine::Mul;
    if (is_real && sums && !r.sequence)
      tree(one, e, result, ranges, done);
    else if (is_real && !sums)
      extremum(one, e, result, ranges, done);
    else
      plain(one, e, result, ranges, done);
  }
}

// ---- sequences: element after element

std::vector<std::string> NestPrinter::state_of(int number, const std::string& where) const {
  const Reduction& r = nest_.reductions[size_t(number)];
  const std::string& name = strip_names_.at(number);
  if (r.combine == Combine::ArgMax || r.combine == Combine::ArgMin) return {name + where, name + "_at" + where};
  return {name + where};
}

std::vector<std::string> NestPrinter::state_types(int number) const {
  const Reduction& r = nest_.reductions[size_t(number)];
  const std::string e = values_.type(nest_.nodes[size_t(r.value[0])].type);
  if (r.combine == Combine::ArgMax || r.combine == Combine::ArgMin) return {e, "i64"};
  return {e};
}

std::vector<std::string> NestPrinter::starts(int number) const {
  const Reduction& r = nest_.reductions[size_t(number)];
  const DType t = nest_.nodes[size_t(r.value[0])].type;
  const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
  const bool least = r.combine == Combine::Min || r.combine == Combine::ArgMin;
  if (r.combine == Combine::Add || r.combine == Combine::Or) return {"0"};
  if (r.combine == Combine::Mul || r.combine == Combine::And) return {"1"};
  std::string start;
  if (is_float(t)) {
    start = std::string(least ? "" : "-") + values_.dialect().infinity[t == DType::F64];
  } else {
    const int bits = traits(t).bits;
    const uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    const bool is_signed = traits(t).kind == DKind::Signed;
    start = values_.constant(t, least ? (is_signed ? all >> 1 : all) : (is_signed ? all ^ (all >> 1) : 0));
  }
  return arg ? std::vector<std::string>{start, "-1"} : std::vector<std::string>{start};
}

// NaN wins; of equals the first. `v1`: an argument's place.
void NestPrinter::step(int number, const std::string& where, const std::string& v, const std::string& v1,
                       const std::string& guard) {
  const Reduction& r = nest_.reductions[size_t(number)];
  const DType t = nest_.nodes[size_t(r.value[0])].type;
  const std::vector<std::string> s = state_of(number, where);
  const bool arg = r.combine == Combine::ArgMax || r.combine == Combine::ArgMin;
  std::string better = v + (r.combine == Combine::Max || r.combine == Combine::ArgMax ? " > " : " < ") + s[0];
  if (is_float(t)) better = "(" + better + ") | (" + v + " != " + v + ")";
  switch (r.combine) {
    case Combine::Add:
    case Combine::Mul:
      return line(s[0] + " = " + values_.arithmetic(r.combine == Combine::Add ? "+" : "*", t, s[0], v) + ";");
    case Combine::Or:
    case Combine::And:
      return line(s[0] + (r.combine == Combine::Or ? " |= " : " &= ") + v + ";");
    default:
      break;
  }
  if (arg && !guard.empty()) better = guard + " & (" + better + ")";
  // One window after the other: a larger one is seldom found, and a branch that is foretold costs less than the chain.
  if (where.empty() && values_.dialect().seldom) {
    open("if (" + std::string(values_.dialect().seldom) + "(" + better + ")) {");
    line(s[0] + " = " + v + ";");
    if (arg) line(s[1] + " = " + v1 + ";");
    return close();
  }
  line("const bit " + better_ + " = " + better + ";");
  line(s[0] + " = " + better_ + " ? " + v + " : " + s[0] + ";");
  if (arg) line(s[1] + " = " + better_ + " ? " + v1 + " : " + s[1] + ";");
}

void NestPrinter::sequence(int number, const int nodes[2], uint64_t ranges, const Done& done) {
  const Reduction& r = nest_.reductions[size_t(number)];
  if (!strip_names_.count(number)) strip_names_[number] = names_.unique(combine_name(r.combine));
  const std::vector<std::string> names = state_of(number, ""), types = state_types(number), first = starts(number);
  for (size_t k = 0; k < names.size(); ++k) line(types[k] + " " + names[k] + " = " + first[k] + ";");
  if (auto row = rows_.find(number); row != rows_.end() && !piece_) {
    const int last = 63 - std::countl_zero(r.over);
    const uint64_t outer = r.over & ~(uint64_t(1) << last);
    range_loops(outer);
    const Span span{last, "0", parameter(NestParameter::Extent, last, 0), false, ""};
    for (const InnerPiece& piece : row->second.pieces())
      if (!row->second.never(piece, r.guard)) piece_loop(row->second, piece, span, ranges | outer, done, number);
    close_loops(outer);
  } else {
    reduced_loops(r, ranges, done);
    step(number, "", ref(r.value[0]), r.value[1] >= 0 ? ref(r.value[1]) : "", r.guard >= 0 ? ref(r.guard) : "");
    close_loops(r.over);
  }
  for (int part = 0; part < 2; ++part)
    if (nodes[part] >= 0)
      line("const " + values_.type(nest_.nodes[size_t(nodes[part])].type) + " " + value_names_[size_t(nodes[part])] +
           " = " + names[size_t(part)] + ";");
}

// The same for a strip of the innermost loop.
void NestPrinter::strip_of(int number, const InnerLoop& loop, uint64_t ranges, Done done) {
  const Reduction& r = nest_.reductions[size_t(number)];
  const std::vector<std::string> names = state_of(number, "[l]"), first = starts(number);
  std::vector<std::string> types = state_types(number);
  if (r.below) types[1] = "i32";  // the version is for places below 2^31 alone
  for (size_t k = 0; k < names.size(); ++k)
    line(types[k] + " " + state_of(number, "[" + std::to_string(kStrip) + "]")[k] + values_.dialect().on_line + ";");
  open("for (i64 l = 0; l < " + std::to_string(kStrip) + "; l++) {");
  for (size_t k = 0; k < names.size(); ++k) line(names[k] + " = " + first[k] + ";");
  close();
  // Reductions that this one only reads are done before its loops are open.
  std::vector<int> before;
  const Done in = needed(loop.roots());
  for (size_t v = 0; v < in.size(); ++v)
    if (in[v] && !done[v] && nest_.nodes[v].op == Op::Reduced && !(nest_.depends[v] & ~ranges))
      before.push_back(int(v));
  if (!before.empty()) open("{");
  statements(before, ranges, done);
  range_loops(r.over);
  const Span span{inner_range_, "strip", "stop", true, "[" + nest_.ranges[size_t(inner_range_)].name + " - strip]"};
  for (const InnerPiece& piece : loop.pieces())
    if (!loop.never(piece, r.guard)) piece_loop(loop, piece, span, ranges | r.over, done, number);
  close_loops(r.over);
  if (!before.empty()) close();
}

// ---- the other reductions

// Element after element: what has no rounding.
void NestPrinter::plain(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
                        const Done& done) {
  const DType t = nest_.nodes[r.value[0]].type;
  const bool first_starts = r.combine == Combine::Max || r.combine == Combine::Min;
  const int start = r.combine == Combine::Mul || r.combine == Combine::And ? 1 : 0;
  line(e + " " + result + " = " + std::to_string(start) + ";");
  if (first_starts) line("bit any_" + result + " = 0;");
  reduced_loops(r, ranges, done);
  const std::string v = ref(r.value[0]);
  switch (r.combine) {
    case Combine::Add:
      line(result + " = " + values_.arithmetic("+", t, result, v) + ";");
      break;
    case Combine::Mul:
      line(result + " = " + values_.arithmetic("*", t, result, v) + ";");
      break;
    case Combine::Or:
      line(result + " |= " + v + ";");
      break;
    case Combine::And:
      line(result + " &= " + v + ";");
      break;
    default:
      line("if (!any_" + result + " || " + v + (r.combine == Combine::Max ? " > " : " < ") + result + ") " + result +
           " = " + v + ";");
      line("any_" + result + " = 1;");
  }
  close_loops(r.over);
}

void NestPrinter::tree(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
                       const Done& done) {
  const bool add = r.combine == Combine::Add;
  const Holes holes = {{"e", e},
                       {"r", result},
                       {"v", ref(r.value[0])},
                       {"c", add ? "add" : "mul"},
                       {"o", add ? "+" : "*"},
                       {"none", add ? "0" : "1"}};
  helpers_.add(add ? "tree_add" : "tree_mul", nest_.nodes[r.value[0]].type);
  line(e + " " + result + ";");
  open("{");
  if (r.of_chunks) {
    line(fill("$e waiting[48];", holes));
    line("i64 used = 0, depth = 0;");
    reduced_loops(r, ranges, done);
    line(fill("depth = push_${c}_$e(waiting, depth, used++, $v);", holes));
    close_loops(r.over);
    line(fill("$r = last_${c}_$e(waiting, depth, $none);", holes));
    return close();
  }
  line(fill("$e part[1024], waiting[48];", holes));
  line("i64 used = 0, chunk = 0, depth = 0;");
  reduced_loops(r, ranges, done);
  line(fill("part[used & 1023] = used < 1024 ? $v : part[used & 1023] $o $v;", holes));
  open("if (++used == 65536) {");
  line(fill("depth = push_${c}_$e(waiting, depth, chunk++, fold_${c}_$e(part, 1024));", holes));
  line("used = 0;");
  close();
  close_loops(r.over);
  line(fill("if (used > 0) depth = push_${c}_$e(waiting, depth, chunk, fold_${c}_$e(part, used < 1024 ? used : 1024));",
            holes));
  line(fill("$r = last_${c}_$e(waiting, depth, $none);", holes));
  close();
}

void NestPrinter::extremum(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges,
                           const Done& done) {
  const bool max = r.combine == Combine::Max, wide = nest_.nodes[r.value[0]].type == DType::F64;
  const Holes holes = {{"e", e},
                       {"r", result},
                       {"v", ref(r.value[0])},
                       {"c", max ? "max" : "min"},
                       {"o", max ? ">" : "<"},
                       {"start", std::string(max ? "-" : "") + values_.dialect().infinity[wide]},
                       {"nan", values_.dialect().nan[wide]}};
  line(e + " " + result + " = 0;");
  open("{");
  if (r.of_chunks) {
    line("i64 used = 0;");
    line("bit none = 0;");
    reduced_loops(r, ranges, done);
    line(fill("if (used++ == 0 || $v $o $r) $r = $v;", holes));
    line(fill("none |= $v != $v;", holes));
    close_loops(r.over);
    line(fill("if (none) $r = $nan;", holes));
    return close();
  }
  helpers_.add(max ? "lanes_max" : "lanes_min", nest_.nodes[r.value[0]].type);
  line(fill("$e lane[16];", holes));
  line("i64 used = 0, chunk = 0;");
  line("bit none = 0;");
  reduced_loops(r, ranges, done);
  line(fill("if (used == 0)", holes));
  line(fill("  for (int l = 0; l < 16; l++) lane[l] = $start;", holes));
  line(fill("if ($v $o lane[used & 15]) lane[used & 15] = $v;", holes));
  line(fill("none |= $v != $v;", holes));
  open("if (++used == 65536) {");
  const std::string join = fill("const $e x = lanes_${c}_$e(lane);\nif (chunk++ == 0 || x $o $r) $r = x;\n", holes);
  lines(join);
  line("used = 0;");
  close();
  close_loops(r.over);
  open("if (used > 0) {");
  lines(join);
  close();
  line(fill("if (none) $r = $nan;", holes));
  close();
}

// The first of equals; the first NaN before all.
void NestPrinter::arg_reduction(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done) {
  const DType t = nest_.nodes[r.value[0]].type;
  const std::string best = names_.unique("best"), v = ref(r.value[0]);
  const std::string at = nodes[1] >= 0 ? value_names_[nodes[1]] : names_.unique("at");
  line(values_.type(t) + " " + best + " = 0;");
  line("i64 " + at + " = 0;");
  open("{");
  line("i64 used = 0;");
  reduced_loops(r, ranges, done);
  std::string better = v + (r.combine == Combine::ArgMax ? " > " : " < ") + best;
  if (is_float(t)) better = "(" + best + " == " + best + " && (" + better + " || " + v + " != " + v + "))";
  const std::string place = r.of_chunks ? ref(r.value[1]) : "used";
  line("if (used == 0 || " + better + ") " + best + " = " + v + ", " + at + " = " + place + ";");
  line("used++;");
  close_loops(r.over);
  close();
  if (nodes[0] >= 0) line("const " + values_.type(t) + " " + value_names_[nodes[0]] + " = " + best + ";");
}

void NestPrinter::product(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done) {
  const DType t = nest_.nodes[r.value[0]].type;
  helpers_.add("tree_product", t);
  std::string result[2];
  for (int p = 0; p < 2; ++p) {
    result[p] = nodes[p] >= 0 ? value_names_[nodes[p]] : names_.unique("product");
    line(values_.type(t) + " " + result[p] + " = " + (p ? "0" : "1") + ";");
  }
  const Holes holes = {
      {"e", values_.type(t)}, {"re", ref(r.value[0])}, {"im", ref(r.value[1])}, {"p", result[0]}, {"q", result[1]}};
  open("{");
  line(fill("$e part[2][1024], waiting[2][48];", holes));
  line("i64 used = 0, chunk = 0, depth = 0;");
  reduced_loops(r, ranges, done);
  line("const i64 at = used & 1023;");
  open("if (used < 1024) {");
  line(fill("part[0][at] = $re;", holes));
  line(fill("part[1][at] = $im;", holes));
  --depth_;
  open("} else {");
  line(fill("const $e x = part[0][at], y = part[1][at];", holes));
  line(fill("part[0][at] = x * $re - y * $im;", holes));
  line(fill("part[1][at] = x * $im + y * $re;", holes));
  close();
  const std::string push = "depth = push_product_$e(waiting[0], waiting[1], depth, chunk++, part[0][0], part[1][0]);\n";
  open("if (++used == 65536) {");
  lines(fill("fold_product_$e(part[0], part[1], 1024);\n" + push + "used = 0;\n", holes));
  close();
  close_loops(r.over);
  open("if (used > 0) {");
  lines(fill("fold_product_$e(part[0], part[1], used < 1024 ? used : 1024);\n" + push, holes));
  close();
  lines(
      fill("last_product_$e(waiting[0], waiting[1], depth);\nif (depth > 0) $p = waiting[0][0], $q = waiting[1][0];\n",
           holes));
  close();
}

}  // namespace strata::lower
