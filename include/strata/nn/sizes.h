// Sizes as arguments of modules.
#pragma once
#include <array>

#include "strata/tensors.h"

namespace strata::nn {

// A number for every dim, or one for all.
template <size_t N, class T = int64_t>
struct PerDim : std::array<T, N> {
  PerDim(T all) { this->fill(all); }
  PerDim(std::initializer_list<T> each) {
    STRATA_CHECK_VALUE(each.size() == N, "expected ", N, " numbers, got ", each.size());
    std::copy(each.begin(), each.end(), this->begin());
  }
  operator ArrayRef<T>() const { return {this->data(), N}; }
};

// Sizes of any number of dims; a number is one.
struct Sizes : std::vector<int64_t> {
  Sizes(int64_t one) : vector{one} {}
  Sizes(std::initializer_list<int64_t> all) : vector(all) {}
  Sizes(std::vector<int64_t> all) : vector(std::move(all)) {}
};

}  // namespace strata::nn
