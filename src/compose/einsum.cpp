// einsum: labels of the equation become dims of a common space; operands are contracted in pairs as batched products.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/checked.h"
#include "strata/generated/by_hand/matmul.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr int kLetters = 52;
constexpr int kEllipsis = -1;

int letter_index(char c) { return std::isupper(static_cast<unsigned char>(c)) ? c - 'A' : c - 'a' + 26; }
char letter_name(int i) { return i < 26 ? char('A' + i) : char('a' + i - 26); }

// One operand's or the output's labels, an ellipsis as kEllipsis.
std::vector<int> parse_labels(std::string_view text, const char* what) {
  std::vector<int> labels;
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      STRATA_CHECK(!ellipsis, "einsum(): found '.' for ", what, " for which an ellipsis was already found");
      STRATA_CHECK(text.substr(i, 3) == "...", "einsum(): found '.' for ", what, " that is not part of any ellipsis");
      ellipsis = true;
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    STRATA_CHECK(std::isalpha(static_cast<unsigned char>(c)), "einsum(): invalid subscript given for ", what, ", got '",
                 c, "'; subscripts must be in [a-zA-Z]");
    labels.push_back(letter_index(c));
  }
  return labels;
}

struct Equation {
  std::vector<std::vector<int>> operands;
  std::optional<std::vector<int>> output;
};

Equation parse(std::string_view equation, size_t operands) {
  Equation e;
  size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    size_t comma = std::min(left.find(',', at), left.size());
    std::string what = str_cat("operand ", e.operands.size());
    e.operands.push_back(parse_labels(left.substr(at, comma - at), what.c_str()));
    at = comma + 1;
  }
  STRATA_CHECK(e.operands.size() <= operands, "einsum(): fewer operands were provided than specified in the equation (",
               operands, " of ", e.operands.size(), ")");
  STRATA_CHECK(e.operands.size() >= operands, "einsum(): more operands were provided than specified in the equation (",
               operands, ", not ", e.operands.size(), ")");
  if (arrow != std::string_view::npos) e.output = parse_labels(equation.substr(arrow + 2), "the output");
  return e;
}

// Where labels lie in the common space: first the dims of the output in order, then the summed ones.
struct Space {
  std::array<int64_t, kLetters> place;
  int64_t ellipsis_place = 0, ellipsis_dims = 0, output_dims = 0, dims = 0;
};

Space make_space(const Equation& e, TensorList tensors) {
  Space s;
  s.place.fill(-1);
  std::array<int, kLetters> count{};
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t letters = 0;
    bool ellipsis = false;
    for (int l : e.operands[i]) {
      if (l == kEllipsis) {
        ellipsis = true;
      } else {
        ++letters;
        ++count[l];
      }
    }
    int64_t rest = tensors[i].dim() - letters;
    STRATA_CHECK(ellipsis ? rest >= 0 : rest == 0, "einsum(): the number of subscripts in the equation (", letters,
                 ellipsis ? ") is more than the number of dimensions (" : ") does not match the number of dimensions (",
                 tensors[i].dim(), ") for operand ", i, ellipsis ? "" : " and no ellipsis was given");
    if (ellipsis) s.ellipsis_dims = std::max(s.ellipsis_dims, rest);
  }
  bool shown = false;
  if (e.output) {
    for (int l : *e.output) {
      if (l == kEllipsis) {
        s.ellipsis_place = s.dims;
        s.dims += s.ellipsis_dims;
        shown = true;
        continue;
      }
      STRATA_CHECK(s.place[l] < 0, "einsum(): output subscript ", letter_name(l),
                   " appears more than once in the output");
      STRATA_CHECK(count[l] > 0, "einsum(): output subscript ", letter_name(l),
                   " does not appear in the equation for any input operand");
      s.place[l] = s.dims++;
    }
  } else {
    // Implicit output: the ellipsis, then the labels that occur once, in alphabetical order.
    s.dims = s.ellipsis_dims;
    shown = true;
    for (int l = 0; l < kLetters; ++l)
      if (count[l] == 1) s.place[l] = s.dims++;
  }
  s.output_dims = s.dims;
  if (!shown) {
    s.ellipsis_place = s.dims;
    s.dims += s.ellipsis_dims;
  }
  for (int l = 0; l < kLetters; ++l)
    if (count[l] > 0 && s.place[l] < 0) s.place[l] = s.dims++;
  return s;
}

// Without a recorded operator where there is nothing to do.
Tensor permuted(const Tensor& t, const DimVec& order) {
  bool same = true;
  for (size_t d = 0; d < order.size(); ++d) same &= order[d] == int64_t(d);
  return same ? t : ops::permute(t, order);
}
Tensor reshaped(const Tensor& t, const DimVec& sizes) {
  return t.sizes() == IntArrayRef(sizes) ? t : ops::reshape(t, sizes);
}

// An operand with a dim for every place of the space, absent ones of size 1; repeated labels become diagonals.
Tensor lay_out(const Tensor& t, const std::vector<int>& labels, const Space& s, size_t number) {
  Tensor r = t;
  int64_t rest = t.dim() + 1 - int64_t(labels.size());  // dims that an ellipsis stands for
  std::vector<int64_t> source(s.dims, -1);
  int64_t at = 0;
  std::vector<int64_t> places;
  for (int l : labels) {
    if (l == kEllipsis) {
      for (int64_t i = 0; i < rest; ++i, ++at) places.push_back(s.ellipsis_place + s.ellipsis_dims - rest + i);
      continue;
    }
    auto before = std::find(places.begin(), places.end(), s.place[l]);
    if (before == places.end()) {
      places.push_back(s.place[l]);
      ++at;
      continue;
    }
    int64_t first = before - places.begin();
    STRATA_CHECK(r.sizes()[first] == r.sizes()[at], "einsum(): subscript ", letter_name(l), " is repeated for operand ",
                 number, " but the sizes don't match, ", r.sizes()[at], " != ", r.sizes()[first]);
    // The diagonal comes last; put it where the label stood first.
    r = ops::diagonal(r, 0, first, at);
    DimVec order;
    for (int64_t d = 0; d + 1 < r.dim(); ++d) order.push_back(d);
    order.insert(first, r.dim() - 1);
    r = ops::permute(r, order);
  }
  for (size_t d = 0; d < places.size(); ++d) source[places[d]] = int64_t(d);
  DimVec order, sizes;
  for (int64_t p : source) {
    if (p >= 0) order.push_back(p);
    sizes.push_back(p >= 0 ? r.sizes()[p] : 1);
  }
  return reshaped(permuted(r, order), sizes);
}

Tensor sum_over(const Tensor& t, const DimVec& dims) {
  return dims.empty() ? t : ops::sum(t, OptIntArrayRef(dims), true);
}

int64_t product_of(const Tensor& t, const DimVec& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= t.sizes()[d];
  return n;
}

Tensor as_batch(const Tensor& t, const DimVec& a, const DimVec& b, const DimVec& c) {
  DimVec order;
  for (const DimVec* part : {&a, &b, &c})
    for (int64_t d : *part) order.push_back(d);
  // Absent dims have size 1 and go last.
  for (int64_t d = 0; d < t.dim(); ++d)
    if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
  return reshaped(permuted(t, order), {product_of(t, a), product_of(t, b), product_of(t, c)});
}

// The product of two laid-out operands, summed over `summed`, whose dims stay with size 1.
Tensor contract(Tensor x, Tensor y, const DimVec& summed) {
  DimVec batch, left, right, inner, only_x, only_y;
  auto is_summed = [&](int64_t d) { return std::find(summed.begin(), summed.end(), d) != summed.end(); };
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool in_x = x.sizes()[d] != 1, in_y = y.sizes()[d] != 1;
    if (is_summed(d)) {
      if (in_x && in_y) inner.push_back(d);
      if (in_x != in_y) (in_x ? only_x : only_y).push_back(d);
    } else if (in_x && in_y) {
      batch.push_back(d);
    } else if (in_x) {
      left.push_back(d);
    } else if (in_y) {
      right.push_back(d);
    }
  }
  x = sum_over(x, only_x);
  y = sum_over(y, only_y);
  if (inner.empty()) return ops::mul(x, y);
  Tensor r = ops::bmm(as_batch(x, batch, left, inner), as_batch(y, batch, inner, right));
  DimVec sizes, order(x.dim());
  int64_t position = 0;
  for (const DimVec* part : {&batch, &left, &right})
    for (int64_t d : *part) {
      sizes.push_back(part == &right ? y.sizes()[d] : x.sizes()[d]);
      order[d] = position++;
    }
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool placed = false;
    for (const DimVec* part : {&batch, &left, &right})
      placed |= std::find(part->begin(), part->end(), d) != part->end();
    if (placed) continue;
    sizes.push_back(1);
    order[d] = position++;
  }
  return permuted(reshaped(r, sizes), order);
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList tensors, OptIntArrayRef path) {
  STRATA_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  Equation e = parse(equation, tensors.size());
  Space s = make_space(e, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) operands.push_back(lay_out(tensors[i], e.operands[i], s, i));
  for (int64_t d = 0; d < s.dims; ++d) {
    int64_t size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      int64_t own = operands[i].sizes()[d];
      STRATA_CHECK(own == 1 || size == 1 || own == size,
                   "einsum(): operands do not broadcast with remapped shapes [original->remapped]: ", "operand ", i,
                   " ", tensors[i].sizes(), "->", operands[i].sizes(), " against size ", size, " in dim ", d);
      if (own != 1) size = own;
    }
  }
  STRATA_CHECK(!path || path->size() == 2 * (tensors.size() - 1),
               "einsum(): expected contraction path given in path parameter to have "
               "size ",
               2 * (tensors.size() - 1), " but got ", path ? path->size() : 0);
  for (size_t step = 0; operands.size() > 1; ++step) {
    size_t i = path ? size_t((*path)[2 * step]) : 0, j = path ? size_t((*path)[2 * step + 1]) : 1;
    if (i > j) std::swap(i, j);
    STRATA_CHECK(i != j && j < operands.size(), "einsum(): invalid contraction path, got operands ", i, " and ", j,
                 " of ", operands.size());
    Tensor x = operands[i], y = operands[j];
    operands.erase(operands.begin() + j);
    operands.erase(operands.begin() + i);
    DimVec summed;  // dims that nobody needs after this product
    for (int64_t d = s.output_dims; d < s.dims; ++d) {
      bool needed = false;
      for (const Tensor& t : operands) needed |= t.sizes()[d] != 1;
      if (!needed) summed.push_back(d);
    }
    operands.insert(path ? operands.end() : operands.begin(), contract(x, y, summed));
  }
  Tensor r = operands[0];
  DimVec rest, sizes(r.sizes().slice(0, s.output_dims));
  for (int64_t d = s.output_dims; d < s.dims; ++d) rest.push_back(d);
  bool sums = tensors.size() == 1 && !rest.empty();  // whose integers become int64, as sum() makes them
  for (int64_t d : rest) sums |= r.sizes()[d] != 1;
  return sums ? ops::sum(r, OptIntArrayRef(rest)) : reshaped(r, sizes);
}

}  // namespace strata::eager
