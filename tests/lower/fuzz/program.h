// Random programs of kernels: a few values, each made by a kernel from inputs and earlier values, as texts of the
// table's language. A program stands for its sizes too: each dim has one of a few, chosen for a run.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "lower/ir/nest.h"

namespace strata::lower::fuzz {

using Random = std::mt19937_64;

// One of `list`.
template <class T>
const T& pick(Random& rng, const std::vector<T>& list) {
  return list[rng() % list.size()];
}
inline bool chance(Random& rng, int percent) { return int(rng() % 100) < percent; }

struct Tensor {
  std::string name;
  DType dtype;
  std::vector<int> dims;  // which size each dim has
  int places_in = -1;     // of an index: the size that its values stay below, but for some that do not
};

struct Value {
  std::string says;        // for people
  Nest nest;               // its operands and scalars have the program's names
  std::vector<int> sizes;  // per range of the nest
  std::vector<Tensor> outputs;
  bool begins = false;  // a scatter: its result begins as random values
};

struct Program {
  uint64_t seed = 0;
  int number = 0;
  int sizes = 0;  // how many there are
  std::vector<Tensor> inputs;
  std::vector<Value> values;

  const Tensor& tensor(const std::string& name) const;
  // The value that makes a tensor; -1 for an input.
  int maker(const std::string& name) const;
  bool read_later(size_t value) const;
};

Program make_program(uint64_t seed, int number);

// The values from `first` to before `past`; what they read of others are inputs.
Program window(const Program& whole, size_t first, size_t past);

// What was fused: kernels in order, which make the values that nobody else makes.
struct FusedProgram {
  std::vector<Value> values;
  std::map<std::string, int> refused;  // by reason: how often
  int inlined = 0;
};
FusedProgram fuse_program(const Program& program);

std::string describe(const Program& program);

}  // namespace strata::lower::fuzz
