#include "lower/fuzz/expressions.h"

namespace strata::lower::fuzz {

void Expressions::leaf(const std::string& text, DType type) {
  if (is_complex(type)) {
    reals_.push_back("real(" + text + ")");
    reals_.push_back("imag(" + text + ")");
  } else if (is_float(type)) {
    reals_.push_back(text);
  } else if (type == DType::Bool) {
    conditions_.push_back(text);
  } else {
    integers_.push_back(text);
  }
}

std::string Expressions::any(int depth) {
  if (chance(rng_, 75)) return all_real(depth);
  if (!integers_.empty() && chance(rng_, 40)) return with_leaves(integer(depth));
  // Of others, all are in one condition, which is then a number or not.
  const std::string text = "(" + all_real(depth - 1) + " < " + real(1) + ")";
  return chance(rng_, 50) ? "where(" + text + ", " + integer(depth) + ", " + integer(1) + ")" : text;
}

std::string Expressions::all_real(int depth) { return with_leaves(real(depth)); }

std::string Expressions::with_leaves(std::string text) const {
  auto add = [&](const std::vector<std::string>& leaves, const char* as) {
    for (const std::string& l : leaves)
      if (text.find(l) == std::string::npos)
        text = "(" + text + pick<std::string>(rng_, {" + ", " - ", " * "}) + as + (*as ? l + ")" : l) + ")";
  };
  add(reals_, "");
  add(integers_, "f32(");
  add(conditions_, "f32(");
  return text;
}

std::string Expressions::real(int depth) {
  if (depth <= 0 || chance(rng_, 12)) {
    if (!reals_.empty() && chance(rng_, 85)) return pick(rng_, reals_);
    if (!integers_.empty() && chance(rng_, 70)) return "f32(" + pick(rng_, integers_) + ")";
    return pick<std::string>(rng_, {"0.5", "1.5", "3", "0.1", "2.25"});
  }
  auto x = [&] { return real(depth - 1); };
  auto call = [&](const char* name, int count) {
    std::string text = name + std::string("(");
    for (int k = 0; k < count; ++k) text += (k ? ", " : "") + x();
    return text + ")";
  };
  switch (rng_() % 20) {
    case 0:
    case 1:
    case 2:
      return "(" + x() + " + " + x() + ")";
    case 3:
    case 4:
    case 5: {
      const std::string a = x(), b = x();
      return "(" + a + (a == b ? " * " : " - ") + b + ")";
    }
    case 6:
    case 7:
      return "(" + x() + " * " + x() + ")";
    case 8: {
      const std::string a = x(), b = x();
      return "(" + a + (a == b ? " + " : " / ") + b + ")";
    }
    case 9:
      return call(pick<const char*>(rng_, {"maximum", "minimum", "fmax", "fmin"}), 2);
    case 10:
    case 11:
      return "where(" + condition(depth - 1) + ", " + x() + ", " + x() + ")";
    case 12:
      return "sqrt(abs(" + x() + "))";
    case 13:
      return call("fma", 3);
    case 14:
      return "(-" + x() + ")";
    case 15:
      return (chance(rng_, 50) ? "f32(" : "f64(") + integer(depth - 1) + ")";
    case 16:
      return call(pick<const char*>(rng_, {"bf16", "f16", "f32", "rint", "floor"}), 1);
    case 17:
      return "(" + x() + " * 0.125)";
    case 18:
      return chance(rng_, 30) ? repeat(depth) : "(" + x() + " + 0.25)";
    default:
      // Long texts, so seldom.
      if (chance(rng_, 40)) return call(pick<const char*>(rng_, {"exp", "tanh", "sigmoid", "log1p"}), 1);
      return "abs(" + x() + ")";
  }
}

// A few turns, of a number that may leave earlier.
std::string Expressions::repeat(int depth) {
  const std::string k = "k" + std::to_string(names_), x = "z" + std::to_string(names_);
  ++names_;
  const std::string from = real(depth - 1), turns = integer(depth - 1);
  reals_.push_back(x);
  std::string next = real(depth - 1);
  if (next.find(x) == std::string::npos) next = "(" + x + " * 0.5 + " + next + ")";
  reals_.pop_back();
  return "repeat(" + x + ", (" + k + " < (" + turns + " & 7l)) && !(" + x + " > 1000), " + k + ", 0l, " + k +
         " + 1l, " + x + ", f32(" + from + "), f32(" + next + "))";
}

std::string Expressions::integer(int depth) {
  if (depth <= 0 || chance(rng_, 12)) {
    if (!integers_.empty() && chance(rng_, 70)) return pick(rng_, integers_);
    // An index with its bits cut off is linear in nothing, so that no limit of a loop is moved across what may wrap.
    if (!letters_.empty() && chance(rng_, 60)) return "(" + pick(rng_, letters_) + " & 255l)";
    return pick<std::string>(rng_, {"1l", "3l", "7l", "i32(5)", "300l", "70001l", "5000000001l"});
  }
  auto x = [&] { return integer(depth - 1); };
  switch (rng_() % 12) {
    case 0:
    case 1:
      return "(" + x() + " + " + x() + ")";
    case 2:
      return "(" + x() + " - " + x() + ")";
    case 3:
      return "(" + x() + " * " + x() + ")";
    case 4:
      return "(" + x() + pick<std::string>(rng_, {" & ", " | ", " ^ "}) + x() + ")";
    case 5:
      return "(" + x() + pick<std::string>(rng_, {" << ", " >> "}) + pick<std::string>(rng_, {"1l", "3l", "2l"}) + ")";
    case 6:
      return pick<std::string>(rng_, {"maximum(", "minimum("}) + x() + ", " + x() + ")";
    case 7:
      return "where(" + condition(depth - 1) + ", " + x() + ", " + x() + ")";
    case 8:
      // A divisor of 0 sets the status.
      return pick<std::string>(rng_, {"floordiv(", "remainder(", "truncdiv("}) + x() + ", " +
             (chance(rng_, 80) ? "(" + x() + " | 1l)" : x()) + ")";
    case 9:
      return pick<std::string>(rng_, {"i64(", "i32(", "u8(", "i8("}) + real(depth - 1) + ")";
    case 10:
      return "i32(" + condition(depth - 1) + ")";
    default:
      return "abs(" + x() + ")";
  }
}

std::string Expressions::condition(int depth) {
  if (!conditions_.empty() && (depth <= 0 || chance(rng_, 20))) return pick(rng_, conditions_);
  const std::string sign = pick<std::string>(rng_, {" < ", " <= ", " > ", " >= ", " == ", " != "});
  if (!letters_.empty() && chance(rng_, 30))
    return "(" + pick(rng_, letters_) + sign + pick<std::string>(rng_, {"2", "17", "1000", "70000"}) + ")";
  switch (depth <= 0 ? 0 : rng_() % 7) {
    case 0:
    case 1:
    case 2:
      return "(" + real(depth - 1) + sign + real(depth - 1) + ")";
    case 3:
      return "(" + integer(depth - 1) + sign + integer(depth - 1) + ")";
    case 4:
      return "(!" + condition(depth - 1) + ")";
    case 5:
      return "(" + condition(depth - 1) + pick<std::string>(rng_, {" && ", " || "}) + condition(depth - 1) + ")";
    default:
      return pick<std::string>(rng_, {"isnan(", "isfinite("}) + real(depth - 1) + ")";
  }
}

}  // namespace strata::lower::fuzz
