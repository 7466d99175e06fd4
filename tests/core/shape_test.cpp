// The shape rules of core/shape run with symbolic sizes. A rule runs once over symbols, which records an expression for
// each size and the comparisons that it decided by; then the expressions must give the rule's numbers for all other
// sizes that answer those comparisons alike.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "core/shape/arrange.h"
#include "core/shape/conv.h"
#include "core/shape/index.h"
#include "core/shape/matmul.h"
#include "core/shape/pool.h"
#include "core/shape/shape.h"
#include "core/shape/view.h"

namespace strata {
namespace {

// ---- a symbolic size: a node of an expression, and its value for the sizes at hand

struct Node {
  char op;  // 'v' variable, 'c' constant, or the operator
  int64_t a, b;
};
std::vector<Node> nodes;
std::vector<int64_t> hints;  // of the variables

int64_t value(int64_t id, const std::vector<int64_t>& at) {
  const Node n = nodes[size_t(id)];
  if (n.op == 'v') return at[size_t(n.a)];
  if (n.op == 'c') return n.a;
  int64_t x = value(n.a, at), y = value(n.b, at);
  switch (n.op) {
    case '+':
      return x + y;
    case '-':
      return x - y;
    case '*':
      return x * y;
    case '/':
      return x / y;
    case '<':
      return x < y;
    default:
      return x == y;
  }
}

struct Sym {
  int64_t id = 0;
  Sym() : Sym(int64_t(0)) {}
  Sym(int64_t constant) : id(int64_t(nodes.size())) { nodes.push_back({'c', constant, 0}); }
  Sym(int constant) : Sym(int64_t(constant)) {}
  static Sym make(char op, int64_t a, int64_t b) {
    nodes.push_back({op, a, b});
    Sym s(int64_t(0));
    nodes.pop_back();
    s.id = int64_t(nodes.size()) - 1;
    return s;
  }
};
Sym operator+(Sym a, Sym b) { return Sym::make('+', a.id, b.id); }
Sym operator-(Sym a, Sym b) { return Sym::make('-', a.id, b.id); }
Sym operator*(Sym a, Sym b) { return Sym::make('*', a.id, b.id); }
Sym operator/(Sym a, Sym b) { return Sym::make('/', a.id, b.id); }
Sym operator-(Sym a) { return Sym(0) - a; }

std::vector<std::pair<int64_t, int64_t>> guards;  // a comparison and its answer
bool decide(char op, Sym a, Sym b) {
  Sym s = Sym::make(op, a.id, b.id);
  guards.push_back({s.id, value(s.id, hints)});
  return guards.back().second != 0;
}
bool operator<(Sym a, Sym b) { return decide('<', a, b); }
bool operator>(Sym a, Sym b) { return decide('<', b, a); }
bool operator<=(Sym a, Sym b) { return !decide('<', b, a); }
bool operator>=(Sym a, Sym b) { return !decide('<', a, b); }
bool operator==(Sym a, Sym b) { return decide('=', a, b); }
[[maybe_unused]] bool operator!=(Sym a, Sym b) { return !decide('=', a, b); }
std::ostream& operator<<(std::ostream& out, Sym s) { return out << value(s.id, hints); }

template <class S>
using List = std::vector<S>;

// A list that is made from a view, as DimVec is.
template <class S>
struct Listed : List<S> {
  explicit Listed(ArrayRef<S> sizes) : List<S>(sizes.begin(), sizes.end()) {}
  List<S> list() const { return *this; }
};

// ---- the comparison

// Runs `rule(sizes)` over symbols and over numbers; an error counts as the result.
template <class Rule>
void check_rule(size_t variables, int64_t low, int64_t high, Rule rule) {
  std::mt19937_64 rng(3);
  std::uniform_int_distribution<int64_t> pick(low, high);
  auto draw = [&] {
    std::vector<int64_t> v(variables);
    for (int64_t& x : v) x = pick(rng);
    return v;
  };
  auto numbers = [&](const std::vector<int64_t>& at, List<int64_t>& out) {
    try {
      out = rule(List<int64_t>(at.begin(), at.end()));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  int compared = 0, general = 0;
  for (int trial = 0; trial < 200; ++trial) {
    nodes.clear();
    guards.clear();
    hints = draw();
    List<Sym> symbols;
    for (size_t i = 0; i < variables; ++i) symbols.push_back(Sym::make('v', int64_t(i), 0));
    List<Sym> made;
    bool good = true;
    try {
      made = rule(symbols);
    } catch (const Error&) {
      good = false;
    }
    const auto kept = guards;
    for (int other = 0; other < 60; ++other) {
      std::vector<int64_t> at = other ? draw() : hints;
      bool alike = true;
      for (auto [id, answer] : kept)
        if (alike && value(id, at) != answer) alike = false;
      if (!alike) continue;
      List<int64_t> want;
      ASSERT_EQ(numbers(at, want), good);
      if (!good) continue;
      ASSERT_EQ(made.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(value(made[i].id, at), want[i]);
      ++compared;
      general += other > 0;
    }
  }
  EXPECT_GT(compared, 0);
  EXPECT_GT(general, 0) << "no result was used for other sizes";
}

#define RULE(...)                           \
  [](const auto& s) {                       \
    using S = std::decay_t<decltype(s[0])>; \
    [[maybe_unused]] List<S> out;           \
    __VA_ARGS__;                            \
  }

TEST(Shape, Diagonals) {
  check_rule(2, 0, 9, RULE(return List<S>{shape::diagonal_length(s[0], s[1], 2)}));
  check_rule(2, 0, 9, RULE(return List<S>{shape::diagonal_length(s[0], s[1], -3)}));
  check_rule(3, 0, 9, RULE(return shape::diagonal_sizes(s, 1, 0, 2)));
  check_rule(2, 0, 9, RULE(return List<S>{shape::triangle_width(s[0], s[1], 1)}));
}

TEST(Shape, Windows) {
  check_rule(5, 1, 12, RULE(return List<S>{shape::conv_size(s[0] + S(40), s[1], s[2], s[3], s[4])}));
  check_rule(6, 1, 9, RULE(return List<S>{shape::conv_transpose_size(s[0], s[1], s[2], s[3], s[4], s[5])}));
  check_rule(5, 1, 6, RULE(return List<S>{shape::pool_size(s[0] + S(30), s[1], s[2], s[3], s[4], false)}));
  check_rule(5, 1, 6, RULE(return List<S>{shape::pool_size(s[0] + S(30), s[1], s[2], s[3], s[4], true)}));
  check_rule(3, 1, 9, RULE(return List<S>{shape::even_begin(s[0], s[1], s[2]), shape::even_end(s[0], s[1], s[2])}));
  check_rule(3, 0, 9, RULE(return List<S>{shape::windows(s[0], int64_t(1), s[1], s[2])}));
}

TEST(Shape, Products) {
  check_rule(6, 0, 9,
             RULE(List<S> a{s[0], s[1], s[2]}; List<S> b{s[0], s[2], s[3]}; List<S> lead{s[4], s[5]};
                  return shape::matmul_sizes<List<S>>(a, b, lead)));
  check_rule(2, 0, 9,
             RULE(List<S> a{s[0]}; List<S> b{s[0], s[1]}; return shape::matmul_sizes<List<S>>(a, b, List<S>())));
}

TEST(Shape, Indexing) {
  check_rule(6, 0, 9,
             RULE(List<S> self{s[0], s[1], s[2], s[3]}; List<S> broadcast{s[4], s[5]};
                  return shape::index_sizes(self, List<bool>{false, true, true, false}, broadcast)));
  check_rule(5, 0, 9,
             RULE(List<S> self{s[0], s[1], s[2]}; List<S> broadcast{s[3], s[4]};
                  return shape::index_sizes(self, List<bool>{true, false, true}, broadcast)));
  check_rule(3, 0, 9, RULE(return shape::with_dim(s, 1, s[0] * s[2])));
}

TEST(Shape, Slices) {
  check_rule(4, -3, 8, RULE(auto r = shape::slice(s[0], s[1], s[2], s[3]); return List<S>{r.start, r.length}));
  check_rule(3, -2, 6, RULE(return List<S>{shape::select_index(ArrayRef<S>(s), 1, s[2])}));
  check_rule(3, -2, 6, RULE(return List<S>{shape::narrow_start(s[0], s[1], s[2])}));
  check_rule(2, -1, 9, RULE(return List<S>{shape::parts(s[0], s[1])}));
  check_rule(3, -1, 5,
             RULE(List<S> parts{s[0], s[1]}; shape::check_split_sizes(ArrayRef<S>(parts), s[2], 0); return parts));
}

TEST(Shape, Joins) {
  check_rule(4, 1, 3,
             RULE(List<S> into{s[0], s[1]}; List<S> more{s[2], s[3]}; shape::join(into, ArrayRef<S>(more), 0, 1);
                  return into));
  check_rule(5, -1, 6,
             RULE(List<S> sizes{s[0], s[1]}; List<S> repeats{s[2], s[3], s[4]};
                  return (shape::repeated<S, List<S>>(ArrayRef<S>(sizes), ArrayRef<S>(repeats)))));
  check_rule(4, -2, 6,
             RULE(List<S> sizes{s[0], s[1]}; List<S> pad{s[2], s[3]};
                  return (shape::padded<S, Listed<S>>(ArrayRef<S>(sizes), ArrayRef<S>(pad)).list())));
}

}  // namespace
}  // namespace strata
