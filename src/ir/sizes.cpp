#include "ir/sizes.h"

#include <charconv>

#include "base/checked.h"
#include "base/error.h"
#include "core/sym.h"

namespace strata::ir {

namespace {

constexpr int kDeepest = 64;

class Reader {
 public:
  Reader(std::string_view text, const SizeOf& size) : text_(text), size_(size) {}

  int64_t comparison() {
    if (++depth_ > kDeepest) refuse("fewer expressions in one another");
    const int64_t a = sum();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!accept(sign)) continue;
      const int64_t b = sum();
      const std::string_view s = sign;
      --depth_;
      return s == "=="   ? a == b
             : s == "!=" ? a != b
             : s == "<=" ? a <= b
             : s == ">=" ? a >= b
             : s == "<"  ? a < b
                         : a > b;
    }
    --depth_;
    return a;
  }
  size_t used() const { return at_; }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw_error(ErrorKind::Value, str_cat("graph: expected ", what, " in an expression of sizes: ",
                                          text_.substr(0, std::min<size_t>(text_.size(), 80))));
  }
  size_t next() const {
    size_t at = at_;
    while (at < text_.size() && text_[at] == ' ') ++at;
    return at;
  }
  bool accept(std::string_view token) {
    const size_t at = next();
    if (text_.substr(at, token.size()) != token) return false;
    at_ = at + token.size();
    return true;
  }
  bool modulo() {
    const size_t at = next();
    if (text_.substr(at, 2) != "% ") return false;  // else it is a value
    at_ = at + 1;
    return true;
  }
  int64_t number() {
    at_ = next();
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) refuse("a number");
    at_ = size_t(end - text_.data());
    return v;
  }
  int64_t sum() {
    int64_t v = product();
    while (true) {
      if (accept("+"))
        v = checked_add(v, product(), "size");
      else if (accept("-"))
        v = checked_add(v, checked_mul(product(), -1, "size"), "size");
      else
        return v;
    }
  }
  int64_t product() {
    int64_t v = factor();
    while (true) {
      if (accept("*")) {
        v = checked_mul(v, factor(), "size");
      } else if (const bool divides = accept("//"); divides || modulo()) {
        const int64_t by = factor();
        STRATA_CHECK(by != 0, "graph: a size is divided by zero: ", text_);
        if (by == -1)
          v = divides ? checked_mul(v, -1, "size") : 0;
        else
          v = divides ? floor_div(v, by) : floor_mod(v, by);
      } else {
        return v;
      }
    }
  }
  int64_t factor() {
    if (++depth_ > kDeepest) refuse("fewer expressions in one another");
    const int64_t v = bare_factor();
    --depth_;
    return v;
  }
  int64_t bare_factor() {
    if (accept("(")) {
      const int64_t v = comparison();
      if (!accept(")")) refuse("')'");
      return v;
    }
    if (accept("%")) {
      const int64_t value = number();
      if (!accept(".size(")) refuse("'.size('");
      const int64_t dim = number();
      if (!accept(")")) refuse("')'");
      if (value < 0 || value > INT32_MAX) refuse("a value");
      return size_(Id(value), dim);
    }
    return number();
  }

  std::string_view text_;
  const SizeOf& size_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

int64_t evaluate_sizes(std::string_view text, const SizeOf& size, size_t* used) {
  Reader reader(text, size);
  const int64_t v = reader.comparison();
  if (used) *used = reader.used();
  return v;
}

IValue evaluated(const Arg& arg, const SizeOf& size) {
  if (arg.constant.is<std::vector<int64_t>>()) {
    std::vector<int64_t> list = arg.constant.get<std::vector<int64_t>>();
    for (size_t i = 0; i < list.size() && i < arg.sizes.size(); ++i)
      if (!arg.sizes[i].empty()) list[i] = evaluate_sizes(arg.sizes[i], size);
    return IValue(std::move(list));
  }
  const int64_t v = evaluate_sizes(arg.sizes[0], size);
  return arg.constant.is<Scalar>() ? IValue(Scalar(long(v))) : IValue(v);
}

}  // namespace strata::ir
