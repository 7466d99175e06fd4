// The words of a graph's text, from left to right; what is none raises with line, column and the line marked.
#pragma once
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

#include "base/error.h"

namespace strata::ir {

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

 protected:
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  [[noreturn]] void fail(std::string_view what) const {
    const size_t at = std::min(at_, text_.size());
    const size_t begin = at ? text_.rfind('\n', at - 1) + 1 : 0;  // npos + 1 is 0
    size_t line = 1, column = at - begin;
    for (char c : text_.substr(0, begin)) line += c == '\n';
    throw_error(ErrorKind::Value, str_cat("graph: line ", line, ", column ", column + 1, ": ", what, "\n  ",
                                          text_.substr(begin, std::min(text_.find('\n', at), text_.size()) - begin),
                                          "\n  ", std::string(column, ' '), "^"));
  }
  [[noreturn]] void fail_at(size_t at, std::string_view what) {
    at_ = at;
    fail(what);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (peek() == ' ' || peek() == '\n') ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    if (is_word(token.back()) && at_ + token.size() < text_.size() && is_word(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(str_cat("expected '", token, "'"));
  }
  template <class F>
  std::string_view span_of(F&& belongs, const char* what) {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) fail(str_cat("expected ", what));
    return text_.substr(begin, at_ - begin);
  }
  std::string_view word(const char* what) { return span_of(is_word, what); }

  // A number of type T that a word spells.
  template <class T>
  T number(std::string_view word, const char* what) {
    T v{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), v);
    if (error != std::errc() || end != word.data() + word.size())
      fail_at(at_ - word.size(), str_cat("expected ", what, ", got '", word, "'"));
    return v;
  }
  std::string_view numeral(const char* what) {
    return span_of([](char c) { return is_word(c) || c == '.' || c == '+' || c == '-'; }, what);
  }
  int64_t integer() { return number<int64_t>(numeral("an integer"), "an integer of 64 bits"); }
  double real() { return number<double>(numeral("a number"), "a number"); }
  bool truth() {
    if (accept("True")) return true;
    if (!accept("False")) fail("expected True or False");
    return false;
  }
  std::string quoted() {
    expect("'");
    std::string s;
    while (peek() != '\'') {
      if (at_ == text_.size()) fail("expected a closing '");
      if (peek() == '\\') {
        ++at_;
        if (peek() != '\'' && peek() != '\\' && peek() != 'n') fail("expected ', \\ or n after \\");
        s += peek() == 'n' ? '\n' : peek();
      } else {
        s += peek();
      }
      ++at_;
    }
    ++at_;
    return s;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace strata::ir
