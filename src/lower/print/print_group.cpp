// Rows that belong to groups of items (print_entry.h): the items of a group share the elements of a row, keep what they
// reduce apart, and join it in the group's memory. The orders are those of one item (Note [Tree T]): of the 1,024
// positions of a chunk an item keeps those that fold together first, and the folds across items follow.
//
// An element goes through one item in all loops, so that a kernel may write where it reads; every reduction ends with
// a barrier, behind which nobody reads what it read.
#include <bit>

#include "lower/print/nest_printer.h"

namespace strata::lower {

namespace {
bool is_arg(const Reduction& r) { return r.combine == Combine::ArgMax || r.combine == Combine::ArgMin; }
}  // namespace

// The group's memory is for a value and a place by item.
void NestPrinter::group_parameters() { text_ += str_cat(", i32 lane, ", values_.dialect().local, "u64* scratch"); }

void NestPrinter::group_length() {
  std::string length;
  for (size_t k = 0; k < nest_.ranges.size(); ++k)
    if (grouped_ >> k & 1) length += (length.empty() ? "" : " * ") + parameter(NestParameter::Extent, int(k), 0);
  line("const i64 length = " + length + ";");
}

// The indices of an element, the last one the fastest.
void NestPrinter::group_indices() {
  std::string rest = "at";
  const int first = std::countr_zero(grouped_);
  for (int k = 63 - std::countl_zero(grouped_); k >= first; --k) {
    if (!(grouped_ >> k & 1)) continue;
    const std::string &name = nest_.ranges[size_t(k)].name, extent = parameter(NestParameter::Extent, k, 0);
    line("const i64 " + name + " = " + (k > first ? rest + " % " + extent : rest) + ";");
    if (k > first) line("const i64 rest_" + name + " = " + rest + " / " + extent + ";");
    rest = "rest_" + name;
  }
}

// The loop of the stores that run over elements.
void NestPrinter::group_elements(uint64_t ranges, Done done) {
  open(fill("for (i64 at = lane; at < length; at += $g) {", group_holes()));
  group_indices();
  statements(roots(), ranges | grouped_, done);
  stores(ranges | grouped_);
  close();
}

Holes NestPrinter::group_holes() const {
  const Dialect& d = values_.dialect();
  return {{"g", std::to_string(d.group)}, {"p", std::to_string(1024 / d.group)}, {"l", d.local}, {"wait", d.barrier}};
}

// What an element gives: `text` follows its values.
void NestPrinter::group_values(const Reduction& r, uint64_t ranges, const Done& done, const std::string& text) {
  Done inner = done;
  const auto read = r.reads();
  group_indices();
  statements({read.begin(), read.end()}, ranges | grouped_, inner);
  lines(text);
}

void NestPrinter::group_reduction(int number, const int nodes[2], uint64_t ranges, const Done& done) {
  const Reduction& r = nest_.reductions[size_t(number)];
  if (is_arg(r)) return group_arg(r, nodes, ranges, done);
  for (int part = 0; part < 2; ++part) {
    if (nodes[part] < 0) continue;
    const int value = r.value[size_t(part)];
    const DType t = nest_.nodes[size_t(value)].type;
    const bool sums = r.combine == Combine::Add || r.combine == Combine::Mul;
    Reduction one = r;
    one.value = {value, -1};
    Holes holes = group_holes();
    holes["e"] = values_.type(t);
    holes["r"] = value_names_[size_t(nodes[part])];
    holes["v"] = ref(value);
    holes["o"] = r.combine == Combine::Max   ? ">"
                 : r.combine == Combine::Min ? "<"
                 : r.combine == Combine::Add ? "+"
                                             : "*";
    if (is_float(t) && sums)
      group_tree(one, t, holes, ranges, done);
    else if (is_float(t))
      group_extremum(one, t, holes, ranges, done);
    else
      group_plain(number, one, holes, ranges, done);
  }
}

// Chunks of a row, one after the other; or the one that the range says.
void NestPrinter::group_blocks(const Reduction& r) {
  if (r.chunk < 0) {
    open("for (i64 block = 0; block < length; block += 65536) {");
  } else {
    open("{");
    line("const i64 block = " + nest_.ranges[size_t(r.chunk)].name + " * 65536;");
  }
  line("const i64 stop = block + 65536 < length ? block + 65536 : length;");
}

// The loop over an item's elements where chunks make no difference.
void NestPrinter::group_all(const Reduction& r) {
  const std::string block = r.chunk < 0 ? "" : nest_.ranges[size_t(r.chunk)].name + " * 65536";
  const std::string first = r.chunk < 0 ? "lane" : block + " + lane";
  const std::string stop = r.chunk < 0 ? "at < length" : "at < length && at < " + block + " + 65536";
  open("for (i64 at = " + first + "; " + stop + "; at += " + std::to_string(values_.dialect().group) + ") {");
}

// An item keeps the positions 16 j + its number mod 16, where j are as many neighbours as it has positions.
void NestPrinter::group_tree(const Reduction& r, DType t, Holes holes, uint64_t ranges, const Done& done) {
  const bool add = r.combine == Combine::Add;
  holes["c"] = add ? "add" : "mul";
  holes["none"] = add ? "0" : "1";
  holes["take"] =
      r.chunk < 0 ? fill("depth = push_${c}_$e(waiting, depth, chunk++, all[0]);", holes) : fill("$r = all[0];", holes);
  helpers_.add(add ? "tree_add" : "tree_mul", t);
  line(fill("$e $r;", holes));
  if (r.of_chunks) return group_fold(r, holes, ranges, done);
  open("{");
  line(fill("$e part[$p];", holes));
  if (r.chunk < 0) lines(fill("$e waiting[48];\ni64 chunk = 0, depth = 0;\n", holes));
  group_blocks(r);
  lines(
      fill("const i64 most = stop - block < 1024 ? stop - block : 1024;\n"
           "const i64 first = lane / 16 * (16 * $p) + lane % 16;\n",
           holes));
  open("for (i64 from = block + first; from < stop; from += 1024) {");
  lines(values_.dialect().each_lane);
  open(fill("for (int k = 0; k < $p; k++) {", holes));
  line("const i64 at = from + 16 * k;");
  open("if (at < stop) {");
  group_values(r, ranges, done, fill("part[k] = from < block + 1024 ? $v : part[k] $o $v;\n", holes));
  close();
  close();
  close();
  lines(values_.dialect().each_lane);
  lines(
      fill("for (int w = 1; w < $p; w *= 2)\n"
           "  for (int k = 0; k + w < $p; k += 2 * w)\n"
           "    if (first + 16 * (k + w) < most) part[k] = part[k] $o part[k + w];\n"
           "$l$e* const all = ($l$e*)scratch;\n"
           "if (first < most) all[lane] = part[0];\n"
           "$wait\n"
           "for (int w = 16; w < $g && w * $p < most; w *= 2) {\n"
           "  if (!(lane & (2 * w - 16)) && first + w * $p < most) all[lane] = all[lane] $o all[lane + w];\n"
           "  $wait\n"
           "}\n"
           "for (int w = 8; w; w /= 2) {\n"
           "  if (lane < w && lane + w < most) all[lane] = all[lane] $o all[lane + w];\n"
           "  $wait\n"
           "}\n"
           "$take\n"
           "$wait\n",
           holes));
  close();
  if (r.chunk < 0) line(fill("$r = last_${c}_$e(waiting, depth, $none);", holes));
  close();
}

// What chunks gave, as many at a time as there are items: they fold pairwise, and wait as one of their number would.
void NestPrinter::group_fold(const Reduction& r, const Holes& holes, uint64_t ranges, const Done& done) {
  open("{");
  lines(
      fill("$e waiting[48];\n"
           "i64 depth = 0;\n"
           "$l$e* const all = ($l$e*)scratch;\n",
           holes));
  open(fill("for (i64 block = 0; block < length; block += $g) {", holes));
  line(fill("const i64 stop = block + $g < length ? block + $g : length;", holes));
  open(fill("for (i64 at = block + lane; at < stop; at += $g) {", holes));
  group_values(r, ranges, done, fill("all[lane] = $v;\n", holes));
  close();
  lines(
      fill("$wait\n"
           "if (stop - block == $g) {\n"
           "  for (int w = 1; w < $g; w *= 2) {\n"
           "    if (!(lane & (2 * w - 1))) all[lane] = all[lane] $o all[lane + w];\n"
           "    $wait\n"
           "  }\n"
           "  depth = push_${c}_$e(waiting, depth, block / $g, all[0]);\n"
           "} else {\n"
           "  for (i64 k = 0; k < stop - block; k++) depth = push_${c}_$e(waiting, depth, k, all[k]);\n"
           "}\n"
           "$wait\n",
           holes));
  close();
  line(fill("$r = last_${c}_$e(waiting, depth, $none);", holes));
  close();
}

// Of equals (-0 and +0) the first of its position modulo 16, then by lanes, then by chunks, as one item does. A place
// below zero says NaN.
void NestPrinter::group_extremum(const Reduction& r, DType t, Holes holes, uint64_t ranges, const Done& done) {
  const bool wide = t == DType::F64;
  holes["start"] = std::string(r.combine == Combine::Max ? "-" : "") + values_.dialect().infinity[wide];
  holes["nan"] = values_.dialect().nan[wide];
  holes["take"] = fill(r.chunk < 0 ? "if (block == 0 || x $o $r) $r = x;" : "$r = x;", holes);
  line(fill("$e $r = 0;", holes));
  open("{");
  line("bit none = 0;");
  group_blocks(r);
  lines(
      fill("$e x = $start;\n"
           "i32 where = 65536;\n",
           holes));
  open(fill("for (i64 at = block + lane; at < stop; at += $g) {", holes));
  group_values(r, ranges, done,
               fill("if ($v $o x) x = $v, where = (i32)(at - block);\n"
                    "none |= $v != $v;\n",
                    holes));
  close();
  lines(
      fill("$l$e* const all = ($l$e*)scratch;\n"
           "$l i32* const places = ($l i32*)(scratch + $g);\n"
           "all[lane] = x;\n"
           "places[lane] = none ? -1 : where;\n"
           "$wait\n"
           "for (int w = $g / 2; w; w /= 2) {\n"
           "  if (lane < w) {\n"
           "    const $e y = all[lane + w];\n"
           "    const i32 here = places[lane], there = places[lane + w];\n"
           "    const bit better = y $o all[lane] || (w >= 16 && y == all[lane] && there < here);\n"
           "    if (better) all[lane] = y;\n"
           "    places[lane] = here < 0 || there < 0 ? -1 : better ? there : here;\n"
           "  }\n"
           "  $wait\n"
           "}\n"
           "x = all[0];\n"
           "none = places[0] < 0;\n"
           "$take\n"
           "$wait\n",
           holes));
  close();
  line(fill("if (none) $r = $nan;", holes));
  close();
}

// The first of equals; the first NaN before all.
void NestPrinter::group_arg(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done) {
  const DType t = nest_.nodes[size_t(r.value[0])].type;
  const bool real = is_float(t);
  Holes holes = group_holes();
  holes["e"] = values_.type(t);
  holes["v"] = ref(r.value[0]);
  holes["o"] = r.combine == Combine::ArgMax ? ">" : "<";
  holes["b"] = nodes[0] >= 0 ? value_names_[size_t(nodes[0])] : names_.unique("best");
  holes["a"] = nodes[1] >= 0 ? value_names_[size_t(nodes[1])] : names_.unique("place");
  holes["better"] = fill(real ? "(x == x && ($v $o x || $v != $v))" : "$v $o x", holes);
  holes["later"] = real ? "(y != y) != (x != x) ? y != y : " : "";
  lines(fill("$e $b = 0;\ni64 $a = 0;\n", holes));
  open("{");
  lines(fill("$e x = 0;\ni64 where = length;\n", holes));
  group_all(r);
  group_values(r, ranges, done, fill("if (where == length || $better) x = $v, where = at;\n", holes));
  close();
  lines(
      fill("$l$e* const all = ($l$e*)scratch;\n"
           "$l i64* const places = ($l i64*)(scratch + $g);\n"
           "all[lane] = x;\n"
           "places[lane] = where;\n"
           "$wait\n"
           "for (int w = $g / 2; w; w /= 2) {\n"
           "  if (lane < w && places[lane + w] < length) {\n"
           "    const $e y = all[lane + w];\n"
           "    const i64 there = places[lane + w];\n"
           "    x = all[lane], where = places[lane];\n"
           "    const bit better = where == length || ($later(y $o x || (!(x $o y) && there < where)));\n"
           "    if (better) all[lane] = y, places[lane] = there;\n"
           "  }\n"
           "  $wait\n"
           "}\n"
           "if (length > 0) $b = all[0], $a = places[0];\n"
           "$wait\n",
           holes));
  close();
}

// What has no rounding, in any order.
void NestPrinter::group_plain(int number, const Reduction& r, Holes holes, uint64_t ranges, const Done& done) {
  const DType t = nest_.nodes[size_t(r.value[0])].type;
  const bool extremum = r.combine == Combine::Max || r.combine == Combine::Min;
  auto joined = [&](const std::string& a, const std::string& b) {
    switch (r.combine) {
      case Combine::Add:
      case Combine::Mul:
        return values_.arithmetic(r.combine == Combine::Add ? "+" : "*", t, a, b);
      case Combine::Or:
      case Combine::And:
        return a + (r.combine == Combine::Or ? " | " : " & ") + b;
      default:
        return b + (r.combine == Combine::Max ? " > " : " < ") + a + " ? " + b + " : " + a;
    }
  };
  holes["start"] = starts(number)[0];
  holes["step"] = joined(holes.at("r"), holes.at("v"));
  holes["join"] = joined("all[lane]", "all[lane + w]");
  line(fill("$e $r = $start;", holes));
  open("{");
  group_all(r);
  group_values(r, ranges, done, fill("$r = $step;\n", holes));
  close();
  lines(
      fill("$l$e* const all = ($l$e*)scratch;\n"
           "all[lane] = $r;\n"
           "$wait\n"
           "for (int w = $g / 2; w; w /= 2) {\n"
           "  if (lane < w) all[lane] = $join;\n"
           "  $wait\n"
           "}\n"
           "$r = all[0];\n"
           "$wait\n",
           holes));
  if (extremum) line(fill("if (length == 0) $r = 0;", holes));
  close();
}

}  // namespace strata::lower
