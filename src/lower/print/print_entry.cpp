#include "lower/print/print_entry.h"

#include <algorithm>
#include "lower/pass/grouped.h"

namespace strata::lower {

namespace {

bool divides(const NestRange& r) { return !r.ordered && !r.whole; }

// A parameter's name in an entry point, which has names of its own.
std::string name_of(const NestParameter& p) {
  for (const char* own : {"a", "first", "past", "lane", "scratch", "item", "items", "found_here"})
    if (p.name == own) return p.name + "_given";
  return p.name;
}

// An argument in a slot of 8 bytes: its first bytes are the value's.
std::string in_slot(const NestParameter& p, const Dialect& d, size_t slot) {
  const std::string at = "a + " + std::to_string(slot);
  if (p.kind == NestParameter::Memory)
    return std::string("(") + d.memory + (p.output ? "void*" : "const void*") + ")*(" + at + ")";
  const std::string type = p.kind == NestParameter::Status ? std::string(d.memory) + "i32*" : traits(p.type).cname;
  return "*(" + type + " const*)(" + at + ")";
}

// A value and a place by item.
std::string memory_of_group(const Dialect& d) {
  return str_cat("  ", d.group_memory, "u64 scratch[", 2 * d.group, "];\n  const i32 lane = ", d.lane, ";\n");
}

}  // namespace

std::vector<NestParameter> entry_parameters(const Nest& nest) {
  std::vector<NestParameter> out;
  const bool sets = may_set_status(nest);
  for (NestParameter& p : parameters(nest)) {
    const bool known = p.kind == NestParameter::Extent && nest.ranges[size_t(p.index)].known;
    const bool status = p.kind == NestParameter::Status && !sets;
    if (p.kind != NestParameter::Begin && p.kind != NestParameter::End && !known && !status)
      out.push_back(std::move(p));
  }
  if (sets) out.push_back({NestParameter::Word, 0, 0, DType::I64, false, "word"});
  return out;
}

std::vector<int> item_ranges(const Nest& nest, bool groups) {
  std::vector<int> out;
  const uint64_t loops = nest.loops() & ~(groups ? grouped_ranges(nest) : 0);
  for (size_t k = 0; k < nest.ranges.size(); ++k)
    if ((loops >> k & 1) && divides(nest.ranges[k])) out.push_back(int(k));
  return out;
}

bool may_set_status(const Nest& nest) {
  for (const Node& n : nest.nodes)
    if (n.op == Op::Check || (n.op == Op::Call && n.takes_status())) return true;
  return false;
}

// The entry point alone, behind its nest's function.
static std::string entry_text(const Nest& nest, const Dialect& d, const std::string& entry, int group) {
  std::string out = str_cat(group && !d.slots ? d.group_entry : d.entry, entry, "(");
  const std::vector<NestParameter> taken = entry_parameters(nest);
  std::string fetched, separator;
  for (size_t k = 0; k < taken.size(); ++k) {
    const NestParameter& p = taken[k];
    const std::string type = p.kind == NestParameter::Memory   ? str_cat(d.memory, p.output ? "void*" : "const void*")
                             : p.kind == NestParameter::Status ? str_cat(d.memory, "i32*")
                                                               : std::string(traits(p.type).cname);
    if (d.slots)
      fetched += str_cat("  ", type, " const ", name_of(p), " = ", in_slot(p, d, k), ";\n");
    else
      out += separator + type + " " + name_of(p), separator = ", ";
  }
  std::string sizes;
  for (const NestRange& r : nest.ranges)
    if (r.known) sizes += str_cat("  const i64 n_", r.name, " = ", r.known, ";\n");
  if (d.slots)
    out += str_cat("const u64* a, i64 first, i64 past", group ? ", i32 lane, u64* scratch" : "", ") {\n", sizes,
                   fetched, "  for (i64 item = first; item < past; item++) {\n");
  else
    out += str_cat(", i64 items) {\n", sizes, group ? memory_of_group(d) : str_cat(d.each_item, "\n"),
                   "  for (i64 item = ", group ? d.first_group : d.first_item,
                   "; item < items; item += ", group ? d.group_step : d.item_step, ") {\n");
  // The last loop is the fastest.
  const std::vector<int> ranges = item_ranges(nest, group != 0);
  for (size_t k = ranges.size(); k-- > 0;) {
    const std::string& name = nest.ranges[size_t(ranges[k])].name;
    std::string rest = k + 1 == ranges.size() ? "item" : "rest_" + nest.ranges[size_t(ranges[k + 1])].name;
    out += str_cat("    const i64 at_", name, " = ", k ? str_cat(rest, " % n_", name) : rest, ";\n");
    if (k) out += str_cat("    const i64 rest_", name, " = ", rest, " / n_", name, ";\n");
  }
  out += "    i32 found_here = 0;\n    " + nest.symbol() + "(";
  separator = "";
  for (const NestParameter& p : parameters(nest)) {
    out += separator;
    separator = ", ";
    const bool loop = p.kind == NestParameter::Begin || p.kind == NestParameter::End;
    const std::string range = loop ? nest.ranges[size_t(p.index)].name : "";
    const bool item = loop && std::find(ranges.begin(), ranges.end(), p.index) != ranges.end();
    if (p.kind == NestParameter::Status)
      out += "&found_here";
    else if (p.kind == NestParameter::Begin)
      out += item ? "at_" + range : "0";
    else if (p.kind == NestParameter::End)
      out += item ? "at_" + range + " + 1" : "n_" + range;
    else
      out += name_of(p);
  }
  out += group ? ", lane, scratch);\n" : ");\n";
  if (may_set_status(nest)) out += str_cat("    if (found_here) ", d.or_status, "(status + word, found_here);\n");
  return out + "  }\n}\n";
}

std::string print_entry(const Nest& nest, const Dialect& dialect, const std::string& entry, int group) {
  return print_entries({nest}, dialect, {entry}, {group});
}

std::string print_entries(const std::vector<Nest>& nests, const Dialect& dialect,
                          const std::vector<std::string>& entries, const std::vector<int>& groups) {
  Dialect d = dialect;
  d.group = 0;
  NestHelpers helpers(d);
  std::string functions, all;
  int defined = 0;
  for (size_t k = 0; k < nests.size(); ++k) {
    d.group = groups[k];
    functions += print_nest(nests[k], d, helpers);
    if (groups[k] && groups[k] != defined) {
      all += str_cat(defined ? "#undef GROUP\n" : "", "#define GROUP ", groups[k], "\n");
      defined = groups[k];
    }
    all += entry_text(nests[k], d, entries[k], groups[k]);
  }
  return dialect.head + helpers.text() + "\n" + functions + all;
}

}  // namespace strata::lower
