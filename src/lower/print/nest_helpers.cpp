// Helpers of printed nests: total arithmetic, and the folds of reductions.
#include "lower/print/fill.h"
#include "lower/print/helpers.h"
#include "lower/print/print_nest.h"

namespace strata::lower {
namespace {

// Tree T. $C: what combines two values a and b. A chunk is 65,536 elements: $E part[1024] by position, `count` of them
// present. Chunks fold pairwise in order: a binary counter of what is waiting.
const char* const kTree = R"C($head $E fold_${name}_$E($E* part, i64 count) {
  for (int bit = 0; bit < 10; bit++) {
    const i64 w = bit < 6 ? (i64)16 << bit : (i64)1 << (9 - bit);
    for (i64 k = 0; k + w < count; k++)
      if (bit < 6 ? !(k & (2 * w - 16)) : k < w) {
        const $E a = part[k], b = part[k + w];
        part[k] = $C;
      }
  }
  return part[0];
}
$head i64 push_${name}_$E($E* waiting, i64 depth, i64 chunk, $E b) {
  for (; chunk & 1; chunk >>= 1) {
    const $E a = waiting[--depth];
    b = $C;
  }
  waiting[depth] = b;
  return depth + 1;
}
$head $E last_${name}_$E(const $E* waiting, i64 depth, $E none) {
  if (depth == 0) return none;
  $E b = waiting[--depth];
  while (depth > 0) {
    const $E a = waiting[--depth];
    b = $C;
  }
  return b;
}
)C";

// Products of complex values: the parts are not apart.
const char* const kComplexTree = R"C($head void fold_product_$E($E* re, $E* im, i64 count) {
  for (int bit = 0; bit < 10; bit++) {
    const i64 w = bit < 6 ? (i64)16 << bit : (i64)1 << (9 - bit);
    for (i64 k = 0; k + w < count; k++)
      if (bit < 6 ? !(k & (2 * w - 16)) : k < w) {
        const $E x = re[k], y = im[k];
        re[k] = x * re[k + w] - y * im[k + w];
        im[k] = x * im[k + w] + y * re[k + w];
      }
  }
}
$head i64 push_product_$E($E* re, $E* im, i64 depth, i64 chunk, $E p, $E q) {
  for (; chunk & 1; chunk >>= 1) {
    const $E x = re[--depth], y = im[depth], s = x * p - y * q;
    q = x * q + y * p;
    p = s;
  }
  re[depth] = p;
  im[depth] = q;
  return depth + 1;
}
$head void last_product_$E($E* re, $E* im, i64 depth) {
  while (depth > 1) {
    const $E p = re[--depth], q = im[depth], x = re[depth - 1], y = im[depth - 1];
    re[depth - 1] = x * p - y * q;
    im[depth - 1] = x * q + y * p;
  }
}
)C";

// Limits of a piece of a loop; those by a / b, rounded up (b > 0), divide where they are met.
const char* const kLimits = R"C($head inline $E lesser($E a, $E b) { return b < a ? b : a; }
$head inline $E greater($E a, $E b) { return b > a ? b : a; }
$head inline $E lesser_quotient($E past, $E a, $E b) {
  return (past - 1) * b < a ? past : a / b + (a % b > 0);
}
$head inline $E greater_quotient($E first, $E a, $E b) {
  return first * b >= a ? first : a / b + (a % b > 0);
}
)C";

// Which of `count` kept rows is the one of `key`; where it is not there, `count` more than one that nobody wants now.
const char* const kSharedRow = R"C($head int shared_row($E* have, const $E* want, int count, $E key) {
  for (int k = 0; k < count; k++)
    if (have[k] == key) return k;
  for (int k = 0; k < count; k++) {
    bit wanted = 0;
    for (int j = 0; j < count; j++) wanted |= have[k] == want[j];
    if (!wanted) {
      have[k] = key;
      return count + k;
    }
  }
  return count;
}
)C";

// The largest (smallest) of 16 lanes that a chunk's elements went to in turn, and then of chunks: the first of equals.
const char* const kLanes = R"C($head $E lanes_${name}_$E($E* lane) {
  for (int h = 8; h; h /= 2)
    for (int l = 0; l < h; l++)
      if (lane[l + h] $O lane[l]) lane[l] = lane[l + h];
  return lane[0];
}
)C";

}  // namespace

void NestHelpers::add(const std::string& what, DType type) {
  const std::string e = traits(type).cname;
  if (!done_.insert(what + "_" + e).second) return;
  if (const ScalarHelper* h = scalar_helper(what)) {
    const std::string needs = h->needs;
    for (size_t b = 0; b < needs.size();) {
      size_t end = std::min(needs.find(',', b), needs.size());
      add(needs.substr(b, end - b), type);
      b = end + 1;
    }
    text_ += std::string(dialect_.helper) + " " + scalar_helper_text(*h, e);
    return;
  }
  Holes holes = {{"head", dialect_.helper}, {"E", e}, {"name", what.substr(what.find('_') + 1)}};
  const char* text = nullptr;
  if (what == "tree_add" || what == "tree_mul") {
    text = kTree;
    holes["C"] = what == "tree_add" ? "a + b" : "a * b";
  } else if (what == "tree_product") {
    text = kComplexTree;
  } else if (what == "limits") {
    text = kLimits;
  } else if (what == "shared_row") {
    text = kSharedRow;
  } else if (what == "lanes_max" || what == "lanes_min") {
    text = kLanes;
    holes["O"] = what == "lanes_max" ? ">" : "<";
  }
  STRATA_INTERNAL(text, "no helper ", what);
  text_ += fill(text, holes);
}

}  // namespace strata::lower
