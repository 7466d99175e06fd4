// What prints a nest (print_nest.h): the loops and values in print_nest.cpp, reductions in print_reductions.cpp; which
// versions the innermost loop has in plan_innermost.cpp, and what is computed once for it in keep_row.cpp,
// lanes.cpp and share_rows.cpp; rows that groups of items share in print_group.cpp.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lower/pass/inner_loop.h"
#include "lower/print/fill.h"
#include "lower/print/print_nest.h"
#include "lower/print/values.h"

namespace strata::lower {

constexpr int kShort = 8;    // turns of the innermost loop that are worth a strip
constexpr int kStrip = 64;   // elements of the innermost loop that are reduced together
constexpr int kWindows = 8;  // that go side by side: an addition waits for the one before it for about so many turns
constexpr int kRow = 1024;   // elements of a loop whose values are kept for the whole of it

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
  std::string parameter(NestParameter::Kind kind, int index, uint8_t part) const;
  int same(int v) const { return piece_ && size_t(v) < piece_->same.size() ? piece_->same[size_t(v)] : v; }
  std::string ref(int v) const;
  std::string place(const std::map<int, InnerStep>* steps, int of, int offset, bool pairs, uint8_t part) const;
  std::vector<int> roots() const;
  Done needed(const std::vector<int>& roots) const;
  void statements(const std::vector<int>& roots, uint64_t ranges, Done& done);
  void stores(uint64_t ranges);
  void contribute(int store);
  void read_ahead(int v);
  bool reports(int condition) const;
  std::vector<std::string> joined(const NestStore& s, const std::vector<std::string>& to,
                                  const std::vector<std::string>& v) const;
  bool is_false(int condition) const {
    const Node* n = condition < 0 ? nullptr : &nest_.nodes[size_t(same(condition))];
    return n && n->op == Op::Const && n->imm == 0;
  }

  // ---- loops
  void loops(size_t next, uint64_t ranges, Done done);
  void plan_innermost();
  std::string side_by_side() const;
  void innermost(uint64_t ranges, Done done);
  struct Span {
    int range;
    std::string begin, end;
    bool any_order;  // of the innermost loop, whose strides are 1; else the last loop of a reduction
    std::string where;
  };
  void limits(const InnerPiece& piece);
  void piece_loop(const InnerLoop& loop, const InnerPiece& piece, const Span& span, uint64_t ranges, Done done,
                  int reduction);
  int step_of(const InnerPiece& piece) const;
  void strip_of(int reduction, const InnerLoop& loop, uint64_t ranges, Done done);

  // ---- kept values
  void plan_kept();
  void plan_kept(int range);
  void open_kept();
  bool dear(const Node& n) const;
  bool is_kept(int v) const { return (keeps_ && kept_.count(v)) || (in_lanes_ && lane_kept_.count(v)); }
  std::string begin_of(int range) const {
    return keeps_ && range == kept_range_ ? kept_begin_ : parameter(NestParameter::Begin, range, 0);
  }
  std::string end_of(int range) const {
    return keeps_ && range == kept_range_ ? kept_end_ : parameter(NestParameter::End, range, 0);
  }

  // ---- rows that are kept by where they come from
  struct SharedRows {
    std::vector<int> values, keys;  // by row that is wanted at once
    std::string name;               // of their memory
  };
  void plan_shared();
  void open_shared();
  void shared_rows(uint64_t ranges, Done& done);
  Holes shared_holes(const SharedRows& s) const;
  std::string shared_at(int v) const;
  bool is_shared(int v) const { return shares_ && shared_at_.count(v); }

  // ---- windows side by side
  void plan_lanes();
  void lanes(uint64_t ranges, const Done& done);
  void lanes_of(int reduction, uint64_t ranges, const Done& done);
  bool limits_follow(const InnerPiece& piece, int reduction, uint64_t outer) const;
  void lanes_limits(const InnerPiece& piece, const std::vector<int>& wanted, uint64_t ranges, Done done,
                    const std::string& guard);
  void lanes_piece(int reduction, const InnerPiece& piece, uint64_t ranges, Done done, bool ahead);
  void open_lanes();
  // Whether some windows tell where they found something: those lanes become vectors only where the bounds are computed
  // beside them, and no branch stands around their ends.
  bool finds_places() const {
    return std::ranges::any_of(lanes_, [&](int k) { return nest_.reductions[size_t(k)].value[1] >= 0; });
  }
  // The array and its index where a value is kept for the loop at hand.
  std::string kept_at(int v) const {
    if (in_lanes_ && lane_kept_.count(v)) return lane_kept_.at(v) + "[lane]";
    return kept_.at(v) + "[" + nest_.ranges[size_t(kept_range_)].name + " - " + kept_begin_ + "]";
  }
  bool is_lane(const Node& n) const {
    return in_lanes_ && n.op == Op::Reduced && std::find(lanes_.begin(), lanes_.end(), int(n.imm)) != lanes_.end();
  }

  // ---- carries
  void open_carries(size_t range);
  void carry(int number, uint64_t ranges, Done& done);
  void repeat(int number, uint64_t ranges, const Done& done);
  void scan(int number);
  void combine_function(int number);

  // ---- reductions
  int node_of(int reduction, uint8_t part) const;
  void range_loops(uint64_t over);
  void reduced_loops(const Reduction& r, uint64_t ranges, const Done& done);
  void close_loops(uint64_t over);
  void reduction(int number, uint64_t ranges, Done& done);
  // A sequence's state: names, what they start with, and how an element changes them (`where`: an index behind the
  // names).
  std::vector<std::string> state_of(int number, const std::string& where) const;
  std::vector<std::string> state_types(int number) const;
  std::vector<std::string> starts(int number) const;
  void step(int number, const std::string& where, const std::string& v, const std::string& v1,
            const std::string& guard);
  void sequence(int number, const int nodes[2], uint64_t ranges, const Done& done);
  void plain(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void tree(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void extremum(const Reduction& r, const std::string& e, const std::string& result, uint64_t ranges, const Done& done);
  void arg_reduction(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);
  void product(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);
  void contraction(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);

  // ---- rows of groups of items (print_group.cpp)
  void group_parameters();
  void group_length();
  void group_indices();
  void group_blocks(const Reduction& r);
  void group_all(const Reduction& r);
  void group_elements(uint64_t ranges, Done done);
  Holes group_holes() const;
  void group_values(const Reduction& r, uint64_t ranges, const Done& done, const std::string& text);
  void group_reduction(int number, const int nodes[2], uint64_t ranges, const Done& done);
  void group_tree(const Reduction& r, DType t, Holes holes, uint64_t ranges, const Done& done);
  void group_fold(const Reduction& r, const Holes& holes, uint64_t ranges, const Done& done);
  void group_extremum(const Reduction& r, DType t, Holes holes, uint64_t ranges, const Done& done);
  void group_arg(const Reduction& r, const int nodes[2], uint64_t ranges, const Done& done);
  void group_plain(int number, const Reduction& r, Holes holes, uint64_t ranges, const Done& done);

  // Where the dialect has versions of the innermost loop: its range; the loop of the stores and, before it, one for
  // each reduction that is computed for a strip of the range at a time.
  int inner_range_ = -1;
  std::map<int, InnerLoop> strips_;  // by reduction
  std::map<int, InnerLoop> rows_;    // by reduction that is a sequence: its last loop
  std::optional<InnerLoop> last_;
  // Values that are kept for a strip of the innermost loop: the names of their arrays; that loop, and the strip's ends.
  std::map<int, std::string> kept_;
  int kept_range_ = -1;
  std::string kept_begin_, kept_end_;
  bool keeps_ = false;       // in the strip's loops
  bool kept_whole_ = false;  // for all of that loop, where it is short
  std::vector<SharedRows> shared_;
  std::map<int, std::pair<int, int>> shared_at_;  // by value: its rows, and which of them
  bool shares_ = false;
  // Reductions whose windows go side by side, and the arrays of what is kept for them.
  std::vector<int> lanes_;
  std::map<int, std::string> lane_kept_;
  bool in_lanes_ = false;
  uint64_t grouped_ = 0;  // the ranges over a row's elements, which the items of a group share
  Nest nest_;
  ValuePrinter values_;
  NestHelpers& helpers_;
  const std::vector<NestParameter> parameters_;
  NamePool names_;
  std::vector<std::string> value_names_;
  std::map<int, std::string> strip_names_;  // by reduction
  std::map<int, std::vector<std::string>> carry_names_;
  std::string better_;
  int known_step_ = 0;         // what the one factor of the piece's reads is, where the text is for that; else 0
  bool side_by_side_ = false;  // in the version for elements that lie side by side
  bool guarded_ = false;       // the store's guard stands around the loop at hand
  const InnerPiece* piece_ = nullptr;  // of the loop at hand, where it is cut
  const Span* span_ = nullptr;         // and that loop
  std::string functions_, text_;       // what the nest's function calls, and it
  int depth_ = 1;
};

}  // namespace strata::lower
