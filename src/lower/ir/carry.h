// Carry: values that a loop hands from one turn to the next. Scheduled kernels have those that repeat.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace strata::lower {

struct Carry {
  // Repeat: while `going` holds, each value becomes `next`. In a nest it has a range of its own, which has no index.
  // Recurrence: along a loop of the nest, in order; at index 0 the values are `start`, then `next`.
  // Blocks: the associative scan along a loop of the nest (contract 6). `start` is an element; `next` combines the
  // values so far with those of a later piece. Blocks of 1,024 elements are combined from left to right, their totals
  // as well; the value at an index is the total before its block combined with its place in the block.
  enum Kind : uint8_t { Repeat, Recurrence, Blocks };
  Kind kind = Repeat;
  int range = -1;
  int going = -1;                // a Bool
  std::vector<int> start, next;  // nodes, one for each value; a complex one is two
  std::vector<std::string> names;

  std::vector<int> uses() const {
    std::vector<int> all = start;
    all.insert(all.end(), next.begin(), next.end());
    if (going >= 0) all.push_back(going);
    return all;
  }
  // What is computed where the carry is: a scan combines in a function of its own.
  std::vector<int> reads() const { return kind == Blocks ? start : uses(); }
};

}  // namespace strata::lower
