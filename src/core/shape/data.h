// Rules of results whose size is data (`size:` of the table). Over symbols that size is a fresh one with the bounds
// that the operands' sizes give; over numbers, where only values could tell it, the rule raises.
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// (count, dims): one row for each element that is not zero.
template <class S>
Prepared<S> nonzero(const Geometry<S>& self);
template <class S>
Prepared<S> masked_select(const Geometry<S>& self, const Geometry<S>& mask);
// The different elements, each element's place among them, and how often each occurs; the latter empty where `inverse`
// and `counts` do not ask for them.
template <class S>
Prepared<S> unique(const Geometry<S>& self, bool inverse, bool counts);
// The same of slices along `dim`, with all three results.
template <class S>
Prepared<S> unique_slices(const char* op, const Geometry<S>& self, int64_t dim);
template <class S>
Prepared<S> unique_consecutive(const Geometry<S>& self, bool inverse, bool counts, std::optional<int64_t> dim);
template <class S>
Prepared<S> bincount(const Geometry<S>& self, const Geometry<S>& weights, const S& minlength);
template <class S>
Prepared<S> repeat_positions(const Geometry<S>& repeats, const std::optional<S>& output_size);
template <class S>
Prepared<S> one_hot(const Geometry<S>& self, int64_t num_classes);

}  // namespace strata::shape
