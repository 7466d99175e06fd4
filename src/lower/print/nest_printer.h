// What prints a nest (print_nest.h): the loops and values in print_nest.cpp, reductions in print_reductions.cpp.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lower/pass/inner_loop.h"
#include "lower/print/print_nest.h"
#include "lower/print/values.h"

namespace strata::lower {

class NestPrinter {
 public:
  NestPrinter(const Nest& nest, const Dialect& dialect, NestHelpers& helpers);
  std::string run();

 private:
  using Done = std::vector<char>;  // by node: it has a name already

  void line(const std::string& text) { text_ += std::string(2 * size_t(depth_), ' ') + text + "\n"; }
  void open(const std::string& text) { line(text), ++depth_; }
  void close() { --depth_, line("}"); }
  void lines(const std::string& text);
  void header();

  // ---- values
  std::string name_of(int v);
  const std::string& parameter(NestParameter::Kind kind, int index, uint8_t part) const;
  int same(int v) const { return piece_ && size_t(v) < piece_->same.size() ? piece_->same[size_t(v)] : v; }
  std::string ref(int v) const;
  std::string place(const std::map<int, InnerStep>* steps, int of, int offset, bool pairs, uint8_t part) const;
  std::vector<int> roots() const;
  Done needed(const std::vector<int>& roots) const;
  void statements(const std::vector<int>& roots, uint64_t ranges, Done& done);
  void stores(uint64_t ranges);

  // ---- loops
  void loops(size_t next, uint64_t ranges, Done done);
  void innermost(uint64_t ranges, const Done& done);

  // ---- reductions
  int node_of(int reduction, uint8_t part) const;
  void reduced_loops(const Reduction& r, uint64_t ranges, const Done& done);
  void close_loops(const Reduction& r);
  void reduction(int number, uint64_t ranges, Done& done);
  void plain(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void tree(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void extremum(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void arg_reduction(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);
  void product(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);

  std::optional<InnerLoop> inner_;  // where the dialect has versions of the innermost loop
  const Nest& nest_;
  ValuePrinter values_;
  NestHelpers& helpers_;
  const std::vector<NestParameter> parameters_;
  NamePool names_;
  std::vector<std::string> value_names_;
  bool side_by_side_ = false;          // in the version for elements that lie side by side
  const InnerPiece* piece_ = nullptr;  // of the innermost loop, in that version
  std::string text_;
  int depth_ = 1;
};

}  // namespace strata::lower
