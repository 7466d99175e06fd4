#include "dispatch/schema.h"

#include <cctype>
#include <charconv>

namespace strata {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema schema() {
    Schema s;
    s.ns = word("a namespace");
    expect("::");
    s.name = word("an operator name");
    if (accept(".")) s.overload = word("an overload name");
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        if (accept("*")) {
          if (keyword_only) fail("a second '*'; expected one at most");
          keyword_only = true;
          continue;
        }
        s.args.push_back(argument());
        s.args.back().keyword_only = keyword_only;
      } while (accept(","));
      expect(")");
    }
    expect("->");
    if (accept("(")) {
      if (!accept(")")) {
        do s.returns.push_back(result());
        while (accept(","));
        expect(")");
      }
    } else {
      s.returns.push_back(result());
    }
    skip();
    if (at_ != text_.size()) fail("expected the end");
    return s;
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    throw_error(ErrorKind::Value,
                str_cat("schema: column ", at_ + 1, ": ", what, "\n  ", text_, "\n  ", std::string(at_, ' '), "^"));
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }
  std::string word(const char* what) {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == begin || std::isdigit(static_cast<unsigned char>(text_[begin]))) {
      at_ = begin;
      fail(std::string("expected ") + what);
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  TypeSpec type() {
    skip();
    size_t begin = at_;
    std::string name = word("a type");
    TypeSpec t;
    bool known = false;
    for (const ArgTypeName& n : arg_type_names)
      if (name == n.name) {
        t.base = n.type;
        known = true;
      }
    if (!known) {
      at_ = begin;
      fail("unknown type '" + name +
           "'; expected Tensor, SymInt, int, float, bool, Scalar, str, ScalarType, Device, "
           "MemoryFormat, Generator or Layout");
    }
    if (accept("(")) {
      t.alias = word("an alias name");
      t.written = accept("!");
      expect(")");
    }
    if (accept("?")) t.optional = true;
    if (accept("[")) {
      t.list = true;
      t.optional_elements = t.optional;
      t.optional = false;
      skip();
      size_t digits = at_;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
      if (at_ > digits) std::from_chars(text_.data() + digits, text_.data() + at_, t.list_size);
      expect("]");
      if (accept("(")) {
        t.alias = word("an alias name");
        t.written = accept("!");
        expect(")");
      }
      if (accept("?")) t.optional = true;
    }
    return t;
  }
  Argument result() {
    Argument a;
    a.type = type();
    skip();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) a.name = word("a name");
    return a;
  }
  Argument argument() {
    Argument a;
    a.type = type();
    a.name = word("an argument name");
    if (accept("=")) {
      skip();
      size_t begin = at_;
      a.default_value = default_value(a.type);
      a.default_text = std::string(text_.substr(begin, at_ - begin));
    }
    return a;
  }
  std::string raw_value() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != ']') ++at_;
    std::string s(text_.substr(begin, at_ - begin));
    while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.pop_back();
    return s;
  }
  template <class T>
  T number(const std::string& s) {
    T v;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    const bool whole = std::is_integral_v<T>;
    if (error == std::errc::result_out_of_range)
      fail(str_cat("expected ", whole ? "an integer of 64 bits" : "a number of 64 bits", ", got '", s, "'"));
    if (error != std::errc() || end != s.data() + s.size())
      fail(str_cat("expected ", whole ? "an integer" : "a number", ", got '", s, "'"));
    return v;
  }
  bool truth(const std::string& s) {
    if (s != "True" && s != "False") fail("expected True or False, got '" + s + "'");
    return s == "True";
  }
  // The elements in brackets; or one for each of a list of that size.
  template <class T, class Read>
  IValue list_value(const TypeSpec& t, Read read) {
    if (t.list_size >= 0 && !accept("[")) return std::vector<T>(size_t(t.list_size), read(raw_value()));
    if (t.list_size < 0) expect("[");
    std::vector<T> v;
    if (!accept("]")) {
      do v.push_back(read(raw_value()));
      while (accept(","));
      expect("]");
    }
    return v;
  }
  IValue default_value(const TypeSpec& t) {
    if (t.list) {
      if (accept("None")) return {};
      switch (t.base) {
        case ArgType::Bool:
          return list_value<bool>(t, [&](const std::string& s) { return truth(s); });
        case ArgType::Int:
        case ArgType::SymInt:
          return list_value<int64_t>(t, [&](const std::string& s) { return number<int64_t>(s); });
        case ArgType::Float:
          return list_value<double>(t, [&](const std::string& s) { return number<double>(s); });
        default:
          expect("[");
          if (!accept("]")) fail("a default list of this type can only be None or []");
          if (t.base == ArgType::Tensor) return IValue::TensorVec();
          return std::vector<int64_t>();
      }
    }
    if (t.base == ArgType::Str) {
      if (accept("None")) return {};
      char quote = accept("'") ? '\'' : '"';
      if (quote == '"') expect("\"");
      size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != quote) ++at_;
      std::string s(text_.substr(begin, at_ - begin));
      expect(std::string(1, quote));
      return s;
    }
    std::string s = raw_value();
    if (s == "None") return {};
    switch (t.base) {
      case ArgType::Bool:
        return truth(s);
      case ArgType::Int:
      case ArgType::SymInt:
        return number<int64_t>(s);
      case ArgType::Float:
        return number<double>(s);
      case ArgType::Scalar:
        if (s == "True" || s == "False") return Scalar(s == "True");
        return s.find_first_of(".en") == std::string::npos ? Scalar(number<int64_t>(s)) : Scalar(number<double>(s));
      case ArgType::MemoryFormat:
        if (s == "contiguous_format") return MemoryFormat::Contiguous;
        if (s == "preserve_format") return MemoryFormat::Preserve;
        [[fallthrough]];
      default:
        fail("a default of this type can only be None, got '" + s + "'");
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string to_string(const Argument& a) {
  std::string s = to_string(a.type);
  if (!a.name.empty()) s += " " + a.name;
  if (a.default_text) s += "=" + *a.default_text;
  return s;
}

}  // namespace

std::string to_string(const TypeSpec& t) {
  std::string s;
  for (const ArgTypeName& n : arg_type_names)
    if (n.type == t.base) s = n.name;
  std::string alias = t.alias.empty() ? "" : "(" + t.alias + (t.written ? "!" : "") + ")";
  if (!t.list) return s + alias + (t.optional ? "?" : "");
  s += t.optional_elements ? "?" : "";
  s += alias;
  s += t.list_size >= 0 ? "[" + std::to_string(t.list_size) + "]" : "[]";
  return s + (t.optional ? "?" : "");
}

std::string Schema::text() const {
  std::string s = full_name() + "(";
  bool keyword_only = false, first = true;
  for (const Argument& a : args) {
    if (!first) s += ", ";
    first = false;
    if (a.keyword_only && !keyword_only) {
      s += "*, ";
      keyword_only = true;
    }
    s += to_string(a);
  }
  s += ") -> ";
  if (returns.size() == 1) return s + to_string(returns[0]);
  s += "(";
  for (size_t i = 0; i < returns.size(); ++i) s += (i ? ", " : "") + to_string(returns[i]);
  return s + ")";
}

bool Schema::writes() const {
  for (const Argument& a : args)
    if (a.type.written) return true;
  return false;
}

int Schema::arg_index(std::string_view wanted) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == wanted) return int(i);
  return -1;
}

Schema parse_schema(std::string_view text) { return Parser(text).schema(); }

}  // namespace strata
