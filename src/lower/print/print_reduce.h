// The reductions of one pass as C text: accumulators before its loop, updates inside, results after it. For
// print_kernel.
#pragma once
#include "lower/print/fill.h"
#include "lower/print/print_c.h"

namespace strata::lower {

// Sums and products keep tree T's 1,024 positions in a local array (64 vectors). Where no order can change the result
// but for the sign of a zero (max, min, any, all) there are 16 positions, one vector, and NaN is noticed apart. Argmax
// and argmin keep four vectors or one value: the first of equals needs no order.
class ReductionPrinter {
 public:
  ReductionPrinter(const Kernel& kernel, const Pass& pass, BodyPrinter& body, bool vector, Needs& needs);
  // For passes that only reduce, with cheap text: rows of up to 1,024 elements (of any length, where no sum or product
  // is made) are folded in groups of eight vectors, without the array of positions. Returns from the function, or, when
  // complete(), is all that the pass needs. Empty where it does not apply. `fetches` go before the text and compute
  // nothing.
  std::string groups(const std::string& fetches, const std::string& element);
  bool complete() const { return complete_; }
  // The same for rows of few vectors alone, also where the pass stores elements.
  std::string few(const std::string& element, const std::string& stores);
  // After before(), where the text is short: whole blocks of 1,024 elements, without a branch. Declares `done`, where
  // the loop then begins.
  std::string blocks(const std::string& element);
  std::string before();
  std::string inside();
  std::string after();
  // For kernels of one reduction across memory: the value of an element, and what two accumulators become.
  std::string value() { return body_.ref(pass_.reductions[0].value[0], vector_); }
  std::string joined(const std::string& a, const std::string& b);

 private:
  enum class Form { Tree, ComplexProduct, Free, Arg };
  static Form form_of(const Reduction& r);
  struct Part {
    Form form;
    bool is_float;
    Holes holes;
  };
  std::vector<Part> parts(size_t k);
  template <class F>
  std::string each(F text);
  bool is_cheap(const std::string& element) const;
  // groups() of sums of narrow values; group: what reads one from `at` on, last: the one that is not whole.
  std::string narrow_trees(const std::string& group, const std::string& last);
  std::string some(const std::string& from, const std::string& n, const std::string& text, const std::string& to);
  // `value` in the lanes that the row has, `other` beyond.
  std::string present(DType t, const std::string& value, const std::string& other);

  const Kernel& kernel_;
  const Pass& pass_;
  BodyPrinter& body_;
  bool vector_;
  Needs& needs_;
  std::vector<std::string> names_;
  bool blocked_ = false, narrow_ = false, complete_ = false;
};

}  // namespace strata::lower
