#include "lower/print/print_reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lower/print/fill.h"

namespace strata::lower {
namespace {

uint64_t identity_bits(const Reduction& r, DType t) {
  bool is_f32 = t == DType::F32, is_f64 = t == DType::F64;
  auto real = [&](double v) { return is_f32 ? std::bit_cast<uint32_t>(float(v)) : std::bit_cast<uint64_t>(v); };
  int bits = traits(t).bits;
  uint64_t top = uint64_t(1) << (bits - 1), ones = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  bool is_signed = traits(t).kind == DKind::Signed;
  switch (r.combine) {
    case Combine::Add:
      return is_f32 || is_f64 ? real(-0.0) : 0;
    case Combine::Mul:
      return is_f32 || is_f64 ? real(1) : 1;
    case Combine::Or:
      return 0;
    case Combine::And:
      return 1;
    case Combine::Max:
    case Combine::ArgMax:
      return is_f32 || is_f64 ? real(-__builtin_inf()) : is_signed ? top : 0;
    default:
      return is_f32 || is_f64 ? real(__builtin_inf()) : is_signed ? ones >> 1 : ones;
  }
}

// The tree over a power of two of an array's values.
std::string tree(const std::string& a, int count, int first = 0) {
  if (count == 1) return a + "[" + std::to_string(first) + "]";
  return "$combine(" + tree(a, count / 2, first) + ", " + tree(a, count / 2, first + count / 2) + ")";
}
std::string eight(const std::string& a) { return tree(a, 8); }

// Text whose loads and stores go under the mask `here`.
std::string under_masks(std::string text) {
  for (const auto& [of_rest, under] : {std::pair{" load_v", " those_v"}, {" store_v", " store_those_v"}})
    for (size_t at = 0; (at = text.find(of_rest, at)) != std::string::npos;) {
      text.replace(at, std::strlen(of_rest), under);
      text.replace(text.find(", left)", at), 7, ", here)");
    }
  return text;
}

DType index_type(DType t) { return traits(t).bits == 64 ? DType::I64 : DType::I32; }

}  // namespace

ReductionPrinter::ReductionPrinter(const Kernel& kernel, const Pass& pass, BodyPrinter& body, bool vector, Needs& needs)
    : kernel_(kernel), pass_(pass), body_(body), vector_(vector), needs_(needs) {
  for (const Reduction& r : pass.reductions) names_.push_back(body.unique("acc_" + r.name));
}

ReductionPrinter::Form ReductionPrinter::form_of(const Reduction& r) {
  if (r.combine == Combine::ArgMax || r.combine == Combine::ArgMin) return Form::Arg;
  if (r.combine != Combine::Add && r.combine != Combine::Mul) return Form::Free;
  return r.combine == Combine::Mul && is_complex(r.accumulator) ? Form::ComplexProduct : Form::Tree;
}

// One entry per accumulator: a complex reduction that works on its parts apart has two.
std::vector<ReductionPrinter::Part> ReductionPrinter::parts(size_t k) {
  const Reduction& r = pass_.reductions[k];
  Form form = form_of(r);
  std::vector<Part> out;
  for (int p = 0; p < 2; ++p) {
    int v = r.value[size_t(p)];
    if (v < 0 || (p == 1 && form == Form::ComplexProduct)) break;
    DType t = pass_.nodes[v].type, index = index_type(t);
    std::string acc = names_[k] + (p ? "_im" : ""), lane = traits(t).cname;
    Holes h = {{"acc", acc},
               {"e", "e_" + acc},
               {"value", body_.ref(v, vector_)},
               {"E", lane},
               {"T", body_.type(t)},
               {"M", vector_ ? body_.type(mask_lane(traits(t).bits)) : "bit"},
               {"start", body_.constant(t, identity_bits(r, t))},
               {"sign", r.combine == Combine::ArgMax ? ">" : "<"},
               {"slot", "((char*)args->partial + " + std::to_string(16 * k + size_t(p * itemsize(t))) + ")"}};
    if (vector_ && !body_.ends_nowhere()) h["present"] = present(t, h["e"], h["start"]);
    h["bits"] = std::to_string(traits(t).bits);
    if (form == Form::Tree || form == Form::Free) h["combine"] = body_.helper(combine_name(r.combine), t, vector_);
    if (form == Form::Tree && !(complete_ && narrow_))
      h["fold"] = body_.helper(std::string("fold_") + combine_name(r.combine), t, vector_);
    if (form == Form::Tree && vector_)
      h["lanes"] = body_.helper(std::string("lanes_") + combine_name(r.combine), t, true);
    if (form == Form::Free && (vector_ || is_float(t)))
      h["fold"] = body_.helper(std::string("lanes_") + combine_name(r.combine), t, vector_);
    if (form == Form::Free && is_float(t)) {
      h["any"] = vector_ ? body_.helper("any", mask_lane(traits(t).bits), true) : "";
      h["nan"] = t == DType::F32 ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
    }
    if (form == Form::Arg && vector_) {
      h["fold"] = body_.helper(std::string("fold_") + combine_name(r.combine), t, true);
      h["I"] = body_.type(index);
      h["index"] = "LANES_" + h["I"] + " + SPLAT(" + h["I"] + ", (" + traits(index).cname + ")i)";
      h["pick"] = body_.helper("select", t, true);
      h["pick_index"] = body_.helper("select", index, true);
      needs_.insert("lanes_" + h["I"]);
    }
    if (form == Form::ComplexProduct) {
      h["im"] = body_.ref(r.value[1], vector_);
      h["keep_re"] = vector_ ? present(t, "re", "p") : "re";
      h["keep_im"] = vector_ ? present(t, "im", "q") : "im";
      needs_.insert("fold_complex_" + lane);
    }
    out.push_back({form, is_float(t), std::move(h)});
  }
  return out;
}

// Text of every accumulator of the pass.
template <class F>
std::string ReductionPrinter::each(F text) {
  std::string out;
  for (size_t k = 0; k < pass_.reductions.size(); ++k)
    for (const Part& p : parts(k)) out += body_.marked(fill(text(p), p.holes), pass_.reductions[k].origin);
  return out;
}

// Sums of 32-bit values: rows of up to 1,024 in registers, or up to 512 where other passes, which wait for this one,
// read them, too. Longer ones of those are read in one loop: processors foresee the addresses that one instruction goes
// through, and so fetch the next row from memory while the other passes run. What is not there is neutral.
std::string ReductionPrinter::narrow_trees(const std::string& group, const std::string& last) {
  const auto data_passes =
      std::ranges::count_if(kernel_.passes, [](const Pass& p) { return !p.reductions.empty() || p.elementwise; });
  const int kept = data_passes > 1 ? 512 : 1024;
  const bool any_length = kernel_.length <= 0 || kernel_.across, ends = !(body_.ends_nowhere() && kernel_.whole(128)),
             choose = any_length && kept < 1024;
  std::string out = each([](const Part&) { return "    $T all_$acc;\n"; });
  if (ends)
    out += each([](const Part&) { return "    $T last_$acc = $start;\n"; }) + "    if (count & 127) {\n" + last +
           each([](const Part&) { return "      last_$acc = " + eight("g_$acc") + ";\n"; }) +
           "#ifdef MASKS\n      if (count < 128) {\n" +
           each([](const Part&) { return "        *($E*)$slot = $lanes(last_$acc);\n"; }) +
           "        return;\n      }\n#endif\n    }\n";
  if (choose) out += "    if (count <= 512) {\n";
  if (any_length || kernel_.length <= kept) {
    const std::string groups = std::to_string(kept / 128);
    out += each([&](const Part&) { return "    $T $acc[" + groups + "];\n"; }) +
           "    WHOLLY\n    for (i64 b = 0; b < " + groups + "; b++) {\n      const i64 at = 128 * b;\n";
    out += each([&](const Part&) {
      return ends ? "      $acc[b] = b == count >> 7 ? last_$acc : $start;\n" : "      $acc[b] = $start;\n";
    });
    out += "      if (at + 128 > count) continue;\n" + group;
    out += each([](const Part&) { return "      $acc[b] = " + eight("g_$acc") + ";\n"; }) + "    }\n";
    out += each([&](const Part&) { return "    all_$acc = " + tree("$acc", kept / 128) + ";\n"; });
  }
  if (choose) out += "    } else {\n";
  if (choose || (!any_length && kernel_.length > kept)) {
    out += each(
        [](const Part&) { return "    $T $acc[8];\n    WHOLLY\n    for (i64 b = 0; b < 8; b++) $acc[b] = $start;\n"; });
    out += "    for (i64 at = 0; at + 128 <= count; at += 128) {\n" + group;
    out += each([](const Part&) { return "      $acc[at >> 7] = " + eight("g_$acc") + ";\n"; }) + "    }\n";
    if (ends) out += each([](const Part&) { return "    if (count < 1024) $acc[count >> 7] = last_$acc;\n"; });
    out += each([](const Part&) { return "    all_$acc = " + eight("$acc") + ";\n"; });
  }
  if (choose) out += "    }\n";
  return out + each([](const Part&) { return "    *($E*)$slot = $lanes(all_$acc);\n"; });
}

// Whether text is worth a second copy.
bool ReductionPrinter::is_cheap(const std::string& element) const {
  constexpr int kLongest = 12;  // lines
  return vector_ && std::ranges::count(element, '\n') <= kLongest && element.find("RARELY") == std::string::npos;
}

// Four vectors from element `from` on, of which `n` elements are there: under masks, without a branch for each. `to`:
// where their values go, neutral ones for what is not there.
std::string ReductionPrinter::some(const std::string& from, const std::string& n, const std::string& text,
                                   const std::string& to) {
  return "    const u64 there = ROW_BITS(" + n + ");\n    WHOLLY\n    for (i64 u = 0; u < 4; u++) {\n" +
         "      const i64 i = " + from + " + 16 * u, left = count - i;\n      const u64 here = there >> 16 * u;\n" +
         under_masks(text) + each([&](const Part&) {
           return "      $T $e = $value;\n      " + to + "[u] = PICK_$bits($T, here, $e, $start);\n";
         }) +
         "    }\n";
}

// Rows of up to eight vectors.
std::string ReductionPrinter::few(const std::string& element, const std::string& stores) {
  constexpr int kMost = 128;
  if (!is_cheap(element) || pass_.reductions.empty() || (kernel_.length > kMost && !kernel_.across)) return "";
  for (const Reduction& r : pass_.reductions) {
    const Form form = form_of(r);
    if ((form != Form::Tree && form != Form::Free) || traits(pass_.nodes[size_t(r.value[0])].type).bits > 32) return "";
  }
  const bool whole = body_.ends_nowhere();
  const std::string length = std::to_string(kernel_.length);
  complete_ = whole;
  auto four = [&](int from) {
    std::string out = each([](const Part&) { return "    $T g_$acc[4];\n"; });
    if (whole)
      out += "    WHOLLY\n    for (i64 u = 0; u < 4; u++) {\n      const i64 i = 16 * u + " +
             std::to_string(16 * from) + ", left = 16;\n" +
             each([](const Part&) { return "      g_$acc[u] = $start;\n"; }) + "      if (i >= " + length +
             ") continue;\n" + element + stores + each([](const Part&) { return "      g_$acc[u] = $value;\n"; }) +
             "    }\n";
    else
      out += some(std::to_string(16 * from), from ? "count - 64" : "count", element + stores, "g_$acc");
    return out + each([](const Part& p) {
             return p.form == Form::Free && p.is_float
                        ? "    WHOLLY\n    for (i64 u = 0; u < 4; u++) nan_$acc |= g_$acc[u] != g_$acc[u];\n"
                        : "";
           });
  };
  std::string out = whole ? "  {\n" : "#ifdef MASKS\n  if (count < " + std::to_string(kMost) + ") {\n";
  out += each([](const Part& p) {
    return std::string("    $T all_$acc;\n") +
           (p.form == Form::Free && p.is_float ? "    $M nan_$acc = SPLAT($M, 0);\n" : "");
  });
  out +=
      "    {\n" + four(0) + each([](const Part&) { return "    all_$acc = " + tree("g_$acc", 4) + ";\n"; }) + "    }\n";
  if (!whole || kernel_.length > 64)
    out += (whole ? "    {\n" : "    if (count > 64) {\n") + four(4) +
           each([](const Part&) { return "    all_$acc = $combine(all_$acc, " + tree("g_$acc", 4) + ");\n"; }) +
           "    }\n";
  out += each([](const Part& p) -> std::string {
    if (p.form == Form::Tree) return "    *($E*)$slot = $lanes(all_$acc);\n";
    return p.is_float ? "    *($E*)$slot = $any(nan_$acc) ? $nan : $fold(all_$acc);\n"
                      : "    *($E*)$slot = $fold(all_$acc);\n";
  });
  return out + (whole ? "  }\n" : "    return;\n  }\n#endif\n");
}

std::string ReductionPrinter::groups(const std::string& fetches, const std::string& element) {
  constexpr int kShort = 3;  // lines of text: more are not worth one more copy for long rows
  if (!is_cheap(element)) return "";
  bool trees = false, other = false;
  for (const Reduction& r : pass_.reductions) {
    trees |= form_of(r) == Form::Tree;
    other |= form_of(r) != Form::Tree && form_of(r) != Form::Free;
  }
  if (other || pass_.reductions.empty()) return "";
  // Products are not worth a second form for long rows, nor vectors of 64-bit lanes, which are several registers each,
  // one for short rows that is all in registers.
  auto narrow_sum = [&](const Reduction& r) {
    return r.combine == Combine::Add && traits(pass_.nodes[size_t(r.value[0])].type).bits <= 32;
  };
  auto product = [](const Reduction& r) { return r.combine == Combine::Mul; };
  blocked_ = trees && std::ranges::count(element, '\n') <= kShort && std::ranges::none_of(pass_.reductions, product);
  narrow_ = blocked_ && std::ranges::all_of(pass_.reductions, narrow_sum);
  // What rows are known to be takes the other cases with it.
  const bool short_rows = kernel_.length > 0 && kernel_.length <= 1024 && !kernel_.across;
  const bool long_rows = kernel_.length > 1024 && kernel_.length <= 65536 && !kernel_.across;
  if (trees && long_rows) return "";
  const std::string ends = body_.ends_nowhere() ? "" : "        if (RARELY(left < 16)) $e = $present;\n";
  const std::string group =
      each([](const Part&) { return "      $T g_$acc[8];\n"; }) +
      "      WHOLLY\n      for (i64 u = 0; u < 8; u++) {\n        const i64 i = at + 16 * u, left = 16;\n" + fetches +
      element + each([](const Part&) { return "        g_$acc[u] = $value;\n"; }) + "      }\n";
  // The group that is not whole: under masks without a branch for each vector.
  const bool masks = !body_.ends_nowhere() && std::ranges::none_of(pass_.reductions, [&](const Reduction& r) {
    return traits(pass_.nodes[size_t(r.value[0])].type).bits > 32;
  });
  std::string last = each([](const Part&) { return "      $T g_$acc[8];\n"; });
  if (masks)
    last += "#ifdef MASKS\n" + some("(count & ~127l)", "count & 127", element, "g_$acc") +
            "      if ((count & 127) > 64) {\n" +
            some("(count & ~127l) + 64", "(count & 127) - 64", element, "(g_$acc + 4)") +
            "      } else {\n        WHOLLY\n        for (i64 u = 4; u < 8; u++) {\n" +
            each([](const Part&) { return "          g_$acc[u] = $start;\n"; }) + "        }\n      }\n#else\n";
  last += each([](const Part&) { return "      WHOLLY\n      for (i64 u = 0; u < 8; u++) g_$acc[u] = $start;\n"; }) +
          "      for (i64 i = count & ~127l; i < count; i += 16) {\n        const i64 left = count - i;\n" + element +
          each([&](const Part&) { return "        $T $e = $value;\n" + ends + "        g_$acc[i >> 4 & 7] = $e;\n"; }) +
          "      }\n" + (masks ? "#endif\n" : "");
  if (body_.ends_nowhere()) {
    const std::string out = few(element, "");
    if (complete_) return out;
  }
  complete_ = !trees || short_rows;
  std::string out = complete_ ? "  {\n" : "  if (count <= 1024) {\n";
  const std::string close = complete_ ? "  }\n" : "    return;\n  }\n";
  if (narrow_) return out + narrow_trees(group, last) + close;
  // What becomes of a group's eight values.
  auto fold_group = [&](const char* to) {
    return each([&](const Part& p) -> std::string {
      if (p.form == Form::Tree) return std::string("      ") + to + " = " + eight("g_$acc") + ";\n";
      return "      $acc = $combine($acc, " + eight("g_$acc") + ");\n" +
             (p.is_float ? "      WHOLLY\n      for (i64 u = 0; u < 8; u++) nan_$acc |= g_$acc[u] != g_$acc[u];\n"
                         : "");
    });
  };
  out += each([&](const Part& p) -> std::string {
    if (p.form == Form::Tree) return "    $T $acc[8];\n";
    return std::string("    $T $acc = $start;\n") + (p.is_float ? "    $M nan_$acc = SPLAT($M, 0);\n" : "");
  });
  out += "    for (i64 at = 0; at + 128 <= count; at += 128) {\n" + group + fold_group("$acc[at >> 7]") + "    }\n";
  const auto result = [&](const char* tree) {
    return each([&](const Part& p) -> std::string {
      if (p.form == Form::Tree) return std::string("    *($E*)$slot = ") + tree + ";\n";
      return p.is_float ? "    *($E*)$slot = $any(nan_$acc) ? $nan : $fold($acc);\n"
                        : "    *($E*)$slot = $fold($acc);\n";
    });
  };
  if (!(body_.ends_nowhere() && kernel_.whole(128))) {
    out += "    if (count & 127) {\n" + last +
           each([](const Part& p) { return p.form == Form::Tree ? "      $T last_$acc;\n" : ""; }) +
           fold_group("last_$acc");
    if (masks)
      out +=
          "#ifdef MASKS\n      if (count < 128) {\n" + result("$lanes(last_$acc)") + "      return;\n      }\n#endif\n";
    out += each([](const Part& p) { return p.form == Form::Tree ? "      $acc[count >> 7] = last_$acc;\n" : ""; }) +
           "    }\n";
  }
  return out + result("$fold($acc, (count + 127) >> 7)") + close;
}

std::string ReductionPrinter::before() {
  bool trees = false;
  std::string out = each([&](const Part& p) -> std::string {
    switch (p.form) {
      case Form::Tree:
        trees = true;
        return vector_ ? "  $T $acc[64];\n" : "  $T $acc[1024];\n";
      case Form::ComplexProduct:
        return vector_ ? "  $T $acc[64], ${acc}_im[64];\n" : "  $T $acc[1024], ${acc}_im[1024];\n";
      case Form::Free:  // of integers in one variable, which compilers make vectors of
        return std::string(vector_ || !p.is_float
                               ? "  $T $acc = $start;\n"
                               : "  $T $acc[16];\n  for (int l = 0; l < 16; l++) $acc[l] = $start;\n") +
               (p.is_float ? vector_ ? "  $M nan_$acc = SPLAT($M, 0);\n" : "  $M nan_$acc = 0;\n" : "");
      default:
        return vector_ ? "  $T $acc[4] = {$start, $start, $start, $start};\n  $I ${acc}_at[4] = {0};\n"
                       : "  $T $acc = $start;\n  i64 ${acc}_at = 0;\n";
    }
  });
  if (trees) out += "  const i64 used = count > 1008 ? 64 : (count + 15) >> 4;\n";
  if (!vector_)
    out += each([&](const Part& p) {
      return p.form == Form::Tree ? "  for (i64 k = count; k < 16 * used; k++) $acc[k] = $start;\n" : "";
    });
  return out;
}

std::string ReductionPrinter::blocks(const std::string& element) {
  if (!blocked_) return "";
  auto free = [&](const Part& p) -> std::string {
    if (p.form == Form::Tree) return "";
    return std::string("      $acc = $combine($acc, $value);\n") +
           (p.is_float ? "      nan_$acc |= $value != $value;\n" : "");
  };
  std::string out = "  for (i64 k = 0; k < 64; k++) {\n      const i64 i = 16 * k, left = 16;\n" + element;
  out += each([&](const Part& p) { return p.form == Form::Tree ? "      $acc[k] = $value;\n" : free(p); });
  out += "  }\n  i64 done = 1024;\n";
  // Four blocks at a time: the array of positions is read and written once for them.
  for (const char* together : {"4", "1"}) {
    out += fill("  for (; done + 1024 * $n <= count; done += 1024 * $n)\n    for (i64 k = 0; k < 64; k++) {\n",
                {{"n", together}});
    out += each([](const Part& p) { return p.form == Form::Tree ? "      $T now_$acc = $acc[k];\n" : ""; });
    out += fill(
        "      WHOLLY\n      for (i64 u = 0; u < $n; u++) {\n        const i64 i = done + 1024 * u + 16 * k, left = "
        "16;\n",
        {{"n", together}});
    out += element + each([&](const Part& p) {
             return p.form == Form::Tree ? "        now_$acc = $combine(now_$acc, $value);\n" : free(p);
           });
    out += "      }\n" + each([](const Part& p) { return p.form == Form::Tree ? "      $acc[k] = now_$acc;\n" : ""; }) +
           "    }\n";
  }
  return out;
}

std::string ReductionPrinter::inside() {
  return each([&](const Part& p) -> std::string {
    // Lanes beyond the row's end, in its last vector, become the identity.
    std::string element = "    $T $e = $value;\n";
    if (vector_ && !body_.ends_nowhere()) element += "    if (RARELY(left < 16)) $e = $present;\n";
    std::string at = p.form == Form::Free  ? vector_ || !p.is_float ? "" : "[i & 15]"
                     : p.form == Form::Arg ? "[i >> 4 & 3]"
                     : vector_             ? "[i >> 4 & 63]"
                                           : "[i & 1023]";
    std::string here = "$acc" + at;
    switch (p.form) {
      case Form::Tree:
        return element + "    if (i >= 1024) $e = $combine(" + here + ", $e);\n    " + here + " = $e;\n";
      case Form::Free:
        return element + "    " + here + " = $combine(" + here + ", $e);\n" +
               (p.is_float ? "    nan_$acc |= $e != $e;\n" : "");
      case Form::ComplexProduct:  // the first element of a position starts it: the identity would turn infinities into
                                  // NaN
        return "    $T x_$acc = $value, y_$acc = $im;\n    if (i >= 1024) {\n      $T p = " + here + ", q = ${acc}_im" +
               at +
               ";\n      $T re = p * x_$acc - q * y_$acc, im = p * y_$acc + q * x_$acc;\n"
               "      x_$acc = $keep_re;\n      y_$acc = $keep_im;\n    }\n    " +
               here + " = x_$acc;\n    ${acc}_im" + at + " = y_$acc;\n";
      default:
        break;
    }
    if (!vector_) {
      std::string nan = p.is_float ? " || ($e != $e && $acc == $acc)" : "";
      return element + "    if ($e $sign $acc" + nan + ") {\n      $acc = $e;\n      ${acc}_at = i;\n    }\n";
    }
    std::string nan = p.is_float ? " | (($e != $e) & (" + here + " == " + here + "))" : "", index = "${acc}_at" + at;
    return element + "    const $M m_$acc = ($e $sign " + here + ")" + nan + ";\n    " + here +
           " = $pick(m_$acc, $e, " + here + ");\n    " + index + " = $pick_index(CONVERT($I, m_$acc), $index, " +
           index + ");\n";
  });
}

std::string ReductionPrinter::after() {
  return each([&](const Part& p) -> std::string {
    switch (p.form) {
      case Form::Tree:
        return "  *($E*)$slot = $fold($acc, used);\n";
      case Form::ComplexProduct:
        return "  fold_complex_$E(($E*)$acc, ($E*)${acc}_im, count, ($E*)$slot);\n";
      case Form::Free:
        if (!p.is_float) return vector_ ? "  *($E*)$slot = $fold($acc);\n" : "  *($E*)$slot = $acc;\n";
        return "  *($E*)$slot = $any(nan_$acc) ? $nan : $fold($acc);\n";
      default:
        return vector_ ? "  $fold($acc, ${acc}_at, args->first, $slot);\n"
                       : "  *($E*)$slot = $acc;\n  *(i64*)($slot + 8) = args->first + ${acc}_at;\n";
    }
  });
}

std::string ReductionPrinter::joined(const std::string& a, const std::string& b) {
  const Reduction& r = pass_.reductions[0];
  const DType t = pass_.nodes[r.value[0]].type;
  const std::string nan = form_of(r) == Form::Free && is_float(t) ? "_or_nan" : "";
  return body_.helper(combine_name(r.combine) + nan, t, vector_) + "(" + a + ", " + b + ")";
}

std::string ReductionPrinter::present(DType t, const std::string& value, const std::string& other) {
  DType lane = mask_lane(traits(t).bits);
  std::string m = body_.type(lane, true);
  needs_.insert("lanes_" + m);
  return fill("$select(LANES_$M < SPLAT($M, ($L)left), $value, $other)", {{"select", body_.helper("select", t, true)},
                                                                          {"M", m},
                                                                          {"L", traits(lane).cname},
                                                                          {"value", value},
                                                                          {"other", other}});
}

}  // namespace strata::lower
