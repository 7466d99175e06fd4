#include "io/json.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace strata::io {

bool is_utf8(std::string_view s) {
  size_t i = 0, n = s.size();
  auto tail = [&](size_t k) { return (uint8_t(s[k]) & 0xc0) == 0x80; };
  while (i < n) {
    uint8_t c = uint8_t(s[i]);
    size_t more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;
    if (more == 9 || more >= n - i) return false;
    for (size_t k = 1; k <= more; ++k)
      if (!tail(i + k)) return false;
    uint8_t d = more ? uint8_t(s[i + 1]) : 0;
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f))
      return false;
    i += more + 1;
  }
  return true;
}

JsonReader::JsonReader(std::string_view text, int max_depth, std::function<void(const std::string&)> refuse)
    : text_(text), max_depth_(max_depth), refuse_(std::move(refuse)) {
  if (!is_utf8(text)) fail("it is no UTF-8 text");
}

void JsonReader::fail(const std::string& what) {
  refuse_(str_cat(what, " (at byte ", at_, ")"));
  throw_error(ErrorKind::Internal, "JsonReader: its refuse function returned");
}

void JsonReader::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

JsonReader::Kind JsonReader::peek() {
  space();
  if (at_ == text_.size()) fail("it ends too early");
  switch (text_[at_]) {
    case 'n':
      return Kind::Null;
    case 't':
    case 'f':
      return Kind::Bool;
    case '"':
      return Kind::String;
    case '[':
      return Kind::Array;
    case '{':
      return Kind::Object;
    default:
      return Kind::Number;
  }
}

void JsonReader::expect(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) fail(str_cat("expected '", word, "'"));
  at_ += word.size();
}

void JsonReader::skip() {
  std::string unused;
  switch (peek()) {
    case Kind::Null:
      return null();
    case Kind::Bool:
      boolean();
      return;
    case Kind::Number:
      number();
      return;
    case Kind::String:
      string();
      return;
    case Kind::Array:
      begin_array();
      while (more()) skip();
      return;
    default:
      begin_object();
      while (key(unused)) skip();
  }
}

void JsonReader::null() {
  space();
  expect("null");
}

bool JsonReader::boolean() {
  space();
  bool yes = at_ < text_.size() && text_[at_] == 't';
  expect(yes ? "true" : "false");
  return yes;
}

JsonReader::Number JsonReader::number() {
  space();
  size_t from = at_;
  auto digits = [&] {
    size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == start) fail("expected a value");
    return at_ - start;
  };
  auto is = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  Number n{};
  n.negative = is('-');
  if (n.negative) ++at_;
  bool zero = is('0');
  if (digits() > 1 && zero) fail("a number begins with 0");
  bool real = false;
  if (is('.')) {
    real = true;
    ++at_;
    digits();
  }
  if (is('e') || is('E')) {
    real = true;
    ++at_;
    if (is('+') || is('-')) ++at_;
    digits();
  }
  const char *b = text_.data() + from, *e = text_.data() + at_;
  if (!real) {
    if (n.negative) {
      n.whole = std::from_chars(b, e, n.integer).ec == std::errc();
    } else {
      uint64_t u = 0;
      n.whole = std::from_chars(b, e, u).ec == std::errc();
      n.integer = int64_t(u);
    }
  }
  if (std::from_chars(b, e, n.real).ec != std::errc()) {
    // Too near to 0 for a double is 0 to every other reader; too large is nothing.
    std::string_view digits_of_it = text_.substr(from, at_ - from);
    size_t e_at = digits_of_it.find_first_of("eE");
    if (e_at == std::string_view::npos || digits_of_it[e_at + 1] != '-') fail("a number is out of range");
    n.real = n.negative ? -0.0 : 0.0;
  }
  return n;
}

uint64_t JsonReader::unsigned_int() {
  if (peek() != Kind::Number) fail("expected a whole number");
  Number n = number();
  if (!n.whole || n.negative) fail("expected a whole number of 0 or more");
  return uint64_t(n.integer);
}

int64_t JsonReader::signed_int() {
  if (peek() != Kind::Number) fail("expected a whole number");
  Number n = number();
  if (!n.whole || (!n.negative && n.integer < 0)) fail("expected a whole number of 64 bits");
  return n.integer;
}

unsigned JsonReader::hex4() {
  if (text_.size() - at_ < 4) fail("an escape is cut");
  unsigned v = 0;
  auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, v, 16);
  if (error != std::errc() || end != text_.data() + at_ + 4) fail("an escape is no hexadecimal number");
  at_ += 4;
  return v;
}

std::string JsonReader::string() {
  space();
  if (at_ == text_.size() || text_[at_] != '"') fail("expected a string");
  ++at_;
  std::string s;
  for (;;) {
    size_t from = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' && uint8_t(text_[at_]) >= 0x20) ++at_;
    s.append(text_.substr(from, at_ - from));
    if (at_ == text_.size()) fail("a string has no end");
    if (uint8_t(text_[at_]) < 0x20) fail("a string holds a control character");
    if (text_[at_++] == '"') return s;
    if (at_ == text_.size()) fail("a string has no end");
    char c = text_[at_++];
    static constexpr std::string_view plain = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (size_t k = plain.find(c); k != std::string_view::npos) {
      s += meant[k];
      continue;
    }
    if (c != 'u') fail("an unknown escape");
    uint32_t u = hex4();
    if (u >= 0xd800 && u < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") fail("half of a surrogate pair");
      at_ += 2;
      uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
      u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    } else if (u >= 0xdc00 && u < 0xe000) {
      fail("half of a surrogate pair");
    }
    if (u < 0x80) {
      s += char(u);
    } else if (u < 0x800) {
      s += char(0xc0 | u >> 6);
    } else if (u < 0x10000) {
      s += char(0xe0 | u >> 12);
      s += char(0x80 | (u >> 6 & 0x3f));
    } else {
      s += char(0xf0 | u >> 18);
      s += char(0x80 | (u >> 12 & 0x3f));
      s += char(0x80 | (u >> 6 & 0x3f));
    }
    if (u >= 0x80) s += char(0x80 | (u & 0x3f));
  }
}

void JsonReader::open(char bracket) {
  space();
  if (at_ == text_.size() || text_[at_] != bracket) fail(str_cat("expected '", bracket, "'"));
  if (int(first_.size()) >= max_depth_) fail(str_cat("it is nested deeper than ", max_depth_));
  ++at_;
  first_.push_back(true);
}

bool JsonReader::next_item(char close) {
  space();
  if (at_ == text_.size()) fail("it ends too early");
  if (text_[at_] == close) {
    ++at_;
    first_.pop_back();
    return false;
  }
  if (!first_.back()) {
    if (text_[at_] != ',') fail(str_cat("expected ',' or '", close, "'"));
    ++at_;
  }
  first_.back() = false;
  return true;
}

void JsonReader::begin_array() { open('['); }
bool JsonReader::more() { return next_item(']'); }
void JsonReader::begin_object() { open('{'); }

bool JsonReader::key(std::string& name) {
  if (!next_item('}')) return false;
  name = string();
  space();
  expect(":");
  return true;
}

void JsonReader::end() {
  space();
  if (at_ != text_.size()) fail("something follows its end");
}

void write_json_string(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (uint8_t(c) < 0x20) {
          out += "\\u00";
          out += digits[uint8_t(c) >> 4];
          out += digits[uint8_t(c) & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void write_json_real(std::string& out, double value) {
  STRATA_INTERNAL(std::isfinite(value));
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string_view s(buffer, size_t(end - buffer));
  out += s;
  if (s.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace strata::io
