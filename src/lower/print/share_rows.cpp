// Rows that several turns of the loops outside share: what a resampled row reads, and what it makes of that along the
// row, hangs on the source's row alone, which is the same for the next row of the result or is its other neighbour.
// Such values are kept by the offset of the row they come from. Note [Innermost loop].
#include <algorithm>

#include "lower/print/fill.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {
namespace {

constexpr size_t kMostRows = 4;  // of one kind
constexpr int kNone = -2, kSeveral = -1;

}  // namespace

void NestPrinter::plan_shared() {
  if (kept_.empty() || !last_ || inner_range_ != kept_range_) return;
  const uint64_t own = uint64_t(1) << inner_range_;
  const size_t count = nest_.nodes.size();
  // By node: the one value from outside of the loop that it hangs on; whether it reads at places of no known step; of
  // values outside, whether a position was rounded for it, so that it comes again.
  std::vector<int> key(count, kNone);
  std::vector<char> reads(count, 0), rounded(count, 0);
  auto inside = [&](int v) { return (nest_.depends[size_t(v)] & own) != 0; };
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    rounded[v] = n.op == Op::Convert && dear(n);
    const bool apart = n.op == Op::Reduced || n.op == Op::Carried || n.op == Op::State || n.op == Op::Check ||
                       (n.op == Op::Call && n.takes_status());
    if (apart) key[v] = kSeveral;
    for (int a : n.arg) {
      if (a < 0) continue;
      rounded[v] |= rounded[size_t(a)];
      if (!inside(int(v))) continue;
      reads[v] |= reads[size_t(a)];
      const int of = inside(a) ? key[size_t(a)] : nest_.depends[size_t(a)] ? a : kNone;
      if (of == kNone || of == key[v]) continue;
      key[v] = key[v] == kNone ? of : kSeveral;
    }
    if (n.op == Op::At && inside(int(v)))
      reads[v] |= std::ranges::none_of(last_->pieces(), [&](const InnerPiece& p) { return p.reads.count(int(v)) > 0; });
  }
  auto shared = [&](int v) {
    const int k = key[size_t(v)];
    return inside(v) && reads[size_t(v)] && k >= 0 && nest_.nodes[size_t(k)].type == DType::I64 && rounded[size_t(k)];
  };
  std::vector<char> exposed(count, 0);
  for (size_t v = 0; v < count; ++v)
    for (int a : nest_.nodes[v].arg)
      if (a >= 0 && shared(a) && !(shared(int(v)) && key[v] == key[size_t(a)])) exposed[size_t(a)] = 1;
  for (const NestStore& s : nest_.stores)
    if (shared(s.value)) exposed[size_t(s.value)] = 1;
  // Values that are the same but for the row are of one kind: what they are, and of which kinds.
  std::map<std::vector<int64_t>, int> numbers;
  std::vector<int> number(count);
  std::map<int, SharedRows> kinds;
  for (size_t v = 0; v < count; ++v) {
    const Node& n = nest_.nodes[v];
    std::vector<int64_t> what{int64_t(v)};
    if (inside(int(v)) && key[v] >= 0) {
      what = {int64_t(n.op), int64_t(n.type), int64_t(n.imm), n.part};
      for (int a : n.arg) what.push_back(a < 0 ? -1 : a == key[v] ? -2 : number[size_t(a)]);
    }
    number[v] = numbers.emplace(std::move(what), int(numbers.size())).first->second;
    if (!exposed[v]) continue;
    kinds[number[v]].values.push_back(int(v));
    kinds[number[v]].keys.push_back(key[v]);
  }
  for (auto& [of, kind] : kinds) {
    if (kind.values.size() > kMostRows) continue;
    kind.name = names_.unique(value_names_[size_t(kind.values[0])] + "_shared");
    for (size_t k = 0; k < kind.values.size(); ++k) shared_at_[kind.values[k]] = {int(shared_.size()), int(k)};
    shared_.push_back(kind);
  }
}

Holes NestPrinter::shared_holes(const SharedRows& s) const {
  return {{"s", s.name},
          {"n", std::to_string(s.values.size())},
          {"e", values_.type(nest_.nodes[size_t(s.values[0])].type)},
          {"i", nest_.ranges[size_t(inner_range_)].name},
          {"b", kept_begin_},
          {"end", kept_end_}};
}

// In the strip's loop: memory for the rows, none of which is known yet.
void NestPrinter::open_shared() {
  for (const SharedRows& s : shared_) {
    Holes holes = shared_holes(s);
    holes["strip"] = std::to_string(kStrip);
    lines(
        fill("$e $s[$n][$strip];\n"
             "i64 ${s}_have[$n];\n"
             "for (int k = 0; k < $n; k++) ${s}_have[k] = INT64_MIN;",
             holes));
  }
}

// Before the innermost loop: the rows that are not there yet.
void NestPrinter::shared_rows(uint64_t ranges, Done& done) {
  helpers_.add("shared_row", DType::I64);
  for (const SharedRows& s : shared_) {
    statements(s.keys, ranges, done);
    Holes holes = shared_holes(s);
    for (int k : s.keys) holes["keys"] += (holes["keys"].empty() ? "" : ", ") + ref(k);
    holes["key"] = ref(s.keys[0]);
    holes["any_order"] = values_.dialect().any_order;
    lines(
        fill("const i64 ${s}_want[$n] = {$keys};\n"
             "const $e* ${s}_at[$n];\n"
             "for (int k = 0; k < $n; k++) {\n"
             "  int row_at = shared_row(${s}_have, ${s}_want, $n, ${s}_want[k]);\n"
             "  if (row_at >= $n) {\n"
             "    row_at -= $n;\n"
             "    const i64 $key = ${s}_want[k];\n"
             "    $any_order\n"
             "    for (i64 $i = $b; $i < $end; $i++) {",
             holes));
    depth_ += 3;
    Done mine = done;
    statements({s.values[0]}, ranges | uint64_t(1) << inner_range_, mine);
    holes["value"] = ref(s.values[0]);
    line(fill("$s[row_at][$i - $b] = $value;", holes));
    depth_ -= 3;
    lines(
        fill("    }\n"
             "  }\n"
             "  ${s}_at[k] = $s[row_at];\n"
             "}",
             holes));
  }
}

std::string NestPrinter::shared_at(int v) const {
  const auto [kind, row] = shared_at_.at(v);
  Holes holes = shared_holes(shared_[size_t(kind)]);
  holes["row"] = std::to_string(row);
  return fill("${s}_at[$row][$i - $b]", holes);
}

}  // namespace strata::lower
