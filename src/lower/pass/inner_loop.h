// What is known ahead of an innermost loop of a nest: which elements it steps through, and where conditions on its
// index change. A schedule: no value depends on it. Note [Innermost loop].
//
// The loop is cut into pieces where a comparison of the index with what the loop leaves alone changes; in a piece the
// comparison is a constant, and what hangs on it (a guard, a choice) is gone. An element whose offset is
// start + index * step is an access of known step.
//
// What may set the status does so in every piece, whether the piece needs its value or not: an error depends on no
// strides.
//
// Index arithmetic must not overflow, since a limit moves terms across a comparison; a factor of the index in a
// comparison is positive.
#pragma once
#include <map>
#include <vector>

#include "lower/ir/nest.h"

namespace strata::lower {

// Of an offset: sign * factor elements a turn; factor is a node that the loop leaves alone, -1 for 1.
struct InnerStep {
  int start;  // node: the offset where the index is 0
  int sign, factor;
};

struct InnerPiece {
  struct Limit {
    int node, divisor;  // the limit is the quotient, rounded up; divisor -1 for 1
    bool upper;         // the index stays below it; else it starts there
  };
  std::vector<Limit> limits;
  std::vector<int> same;            // per node: the one that has its value here
  std::map<int, InnerStep> reads;   // by At node
  std::map<int, InnerStep> writes;  // by number of the store
  std::vector<int> reports;         // Check nodes of values that the piece does not need
};

// A loop over `range` that computes `roots`, values that do not follow one another; the ranges of reductions that are
// at hand are open around it. Adds nodes to the nest.
class InnerLoop {
 public:
  InnerLoop(Nest& nest, int range, std::vector<int> roots);
  // The loop of the nest's stores.
  InnerLoop(Nest& nest, int range);

  const std::vector<InnerPiece>& pieces() const { return pieces_; }
  const std::vector<int>& strides() const { return strides_; }  // Stride nodes that are a factor of some step
  const std::vector<int>& roots() const { return roots_; }
  const std::vector<int>& status() const { return status_; }  // nodes that may set it
  // Whether nothing is left of a piece that counts only where `condition` holds.
  bool never(const InnerPiece& piece, int condition) const {
    return condition >= 0 && piece.same[size_t(condition)] == no_ && piece.reports.empty();
  }

 private:
  struct Linear {
    bool known;
    int start, sign, factor;
  };
  int add(Op op, DType type, int a, int b = -1);
  int constant(DType type, uint64_t bits);
  void cut(InnerPiece piece, int depth);
  bool cut_at(int condition, const InnerPiece& piece, int depth);
  void choose(InnerPiece& piece) const;
  bool varies(int v) const { return nest_.depends[size_t(v)] >> range_ & 1; }
  Linear linear(int v, const std::vector<int>& same);
  void finish(InnerPiece piece);
  std::vector<char> live(const InnerPiece& piece) const;
  std::vector<char> choosing(const std::vector<char>& live, const InnerPiece& piece) const;

  Nest& nest_;
  const int range_;
  const bool stores_;
  void start();
  void report(InnerPiece& piece, const std::vector<char>& live);

  std::vector<int> roots_;
  std::vector<int> status_;
  int no_ = -1, yes_ = -1;
  std::map<int, bool> known_;  // conditions of the piece at hand
  std::vector<InnerPiece> pieces_;
  std::vector<int> strides_;
};

}  // namespace strata::lower
