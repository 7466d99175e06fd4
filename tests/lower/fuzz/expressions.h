// Random expressions of the table's language, typed, over leaves that their user names.
#pragma once
#include "lower/fuzz/program.h"

namespace strata::lower::fuzz {

// Expressions never ask for the sign or the bits of a NaN: those may differ between compilers, and no contract says
// them.
class Expressions {
 public:
  explicit Expressions(Random& rng) : rng_(rng) {}

  void leaf(const std::string& text, DType type);  // of any type; complex ones count by their parts
  // A name of a dim, whose index may be compared with small numbers.
  void index(const std::string& letter) { letters_.push_back(letter); }
  std::string real(int depth);
  std::string integer(int depth);
  std::string condition(int depth);
  // Of any type; all leaves are in it.
  std::string any(int depth);
  std::string all_real(int depth);  // a real one with all leaves

 private:
  Random& rng_;
  std::string with_leaves(std::string text) const;
  std::string repeat(int depth);
  std::vector<std::string> reals_, integers_, conditions_, letters_;
  int names_ = 0;  // that repeat() made
};

}  // namespace strata::lower::fuzz
