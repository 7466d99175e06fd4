#include "dispatch/info.h"

#include <cstring>

namespace strata {

namespace {

// Word number `letter` - 'A' of a list.
std::string_view word_of(std::string_view words, char letter) {
  for (; letter > 'A'; --letter) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(' '));
}

// "aten::abs" of "ops/unary.yaml:2: aten::abs".
std::string_view entry_of(const char* record) {
  std::string_view source(record + 1);
  return source.substr(source.rfind(' ') + 1);
}

void add_line(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out += str_cat("  ", name, ":");
  if (text.find('\n') == std::string_view::npos) {
    out += str_cat(" ", text, "\n");
    return;
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += str_cat("\n    ", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += "\n";
}

}  // namespace

std::optional<OpInfo> info(const Operator& op) {
  if (!op.record) return std::nullopt;
  OpInfo made;
  for (const char* at = op.record; *at; at += std::strlen(at) + 1) {
    const std::string_view value(at + 1);
    if (*at == kDerivativeField) {
      const size_t end = value.find('\n');
      made.derivatives.emplace_back(value.substr(0, end), value.substr(end + 1));
      continue;
    }
    for (const OpInfoField& f : op_info_fields)
      if (f.letter == *at) made.*f.field = f.words.empty() ? value : word_of(f.words, value[0]);
  }
  if (!is_made_twin(op)) return made;
  // The record is that of the operator that writes.
  OpInfo twin;
  twin.source = made.source;
  twin.kind = "twin";
  twin.text = entry_of(op.record);
  twin.order = made.order;
  twin.reads = made.reads;
  twin.size = made.size;
  twin.acts = made.acts;
  twin.gradient = "parts";
  return twin;
}

bool is_made_twin(const Operator& op) { return op.record && entry_of(op.record) != op.name && !op.schema().writes(); }

Operator& twin_writes(const Operator& twin) { return OperatorTable::instance().get(entry_of(twin.record)); }

Operator* functional_twin(const Operator& op) {
  OperatorTable& table = OperatorTable::instance();
  if (!op.schema().writes()) return nullptr;
  if (op.record && entry_of(op.record) != op.name) return table.find(entry_of(op.record));
  if (const std::optional<OpInfo> said = info(op); said && !said->functional.empty())
    return table.find(said->functional);  // "none; ..." is no operator's name
  const size_t end = std::min(op.name.find('.'), op.name.size());
  if (end == 0 || op.name[end - 1] != '_') return nullptr;
  Operator* found = table.find(op.name.substr(0, end - 1) + op.name.substr(end));
  return found && !found->schema().writes() ? found : nullptr;
}

std::string describe(const Operator& op) {
  std::string out = str_cat(op.schema_text, "\n");
  if (const std::optional<OpInfo> said = info(op)) {
    for (const OpInfoField& f : op_info_fields) add_line(out, f.name, (*said).*f.field);
    for (const auto& [names, formula] : said->derivatives) add_line(out, str_cat("derivative of ", names), formula);
  }
  if (const Operator* twin = functional_twin(op)) add_line(out, "functional twin", twin->name);
  return out;
}

}  // namespace strata
