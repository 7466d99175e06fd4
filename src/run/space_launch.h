// One launch of a space kernel on the CPU: its operands bound to the ranges of a form. Dims of the plain group that are
// no range of the kernel are walked here.
#pragma once
#include <optional>
#include <utility>

#include "run/space.h"

namespace strata::eager {

constexpr int64_t kChain = 1024;  // contributions of a chain (kernels count them so)

// The printed kernel, or null where it has no such form.
const StrataSpaceEntry* find_form(const SpaceOp& op, DType dtype, int rank, bool inner, bool chained = false);
// The form that a launch begins with. A kernel with a computed group has one for each number of its dims.
const StrataSpaceEntry* first_form(const SpaceArgs& args);

class SpaceLaunch {
 public:
  SpaceLaunch(const StrataSpaceEntry& form, const SpaceArgs& args);
  // `narrow` by the same form for elements that are the `many` of its last plain dim.
  SpaceLaunch(const StrataSpaceEntry& form, const SpaceLaunch& narrow, int64_t many);
  // Orders plain dims by the first output's strides and joins those that every operand walks in one step.
  void order_plain();
  // Joins plain dims that follow each other in the result, whose sizes are given, and that every input walks in one
  // step.
  void join_plain(DimVec& sizes);
  // Whether the plain dims' fastest one is faster in memory than what the kernel's own innermost loop walks. One plain
  // dim alone is that loop.
  bool wants_inner() const;
  // How many elements of the last plain dim lie, in every operand that is moved, as one element of 2 to 16 bytes; or 0.
  int64_t as_one() const;
  // At most so many contributions meet in one element.
  int64_t contributions() const;
  int32_t run(const void* scalars);
  // Of sums (products) in chains, where an index names whole lines: by this form, which counts nothing. `t`: the
  // result's dtype. None where it can't.
  std::optional<int32_t> run_lines(const void* scalars, DType t, bool products);

 protected:
  static constexpr int kMaxRanges = 16, kMaxOperands = 8, kMaxDims = TensorImpl::kMaxDims;

  // An operand: memory, and its strides by what its dims are.
  struct Operand {
    char* memory;
    int64_t offset;              // bytes
    int64_t stride[kMaxRanges];  // elements, per dim of the kernel's operand
    int64_t plain[kMaxDims];     // elements, per plain dim; 0 where the operand has none
    bool has_plain;
    int64_t width;
  };

  // The strides of the kernel's dims, operand after operand, and the extents of the plain ones: the kernel's inner one
  // is the last, its outer one the one before.
  void lay_out(int64_t* stride);
  int inner() const { return form_.inner ? plain_ - 1 : -1; }
  int outer() const { return plain_ - 1 - form_.inner; }
  void bind(size_t k, const Tensor& t, ArrayRef<Place> places);
  int outputs() const;
  // Whether its elements are of the kernel's dtype (others are indices).
  bool is_moved(int k) const { return form_.operand[k].dtype == form_.dtype; }

  // What the dims of the first output's tensor are: ranges of the kernel (0 and up) or plain dims.
  static int plain_role(int p) { return -1 - p; }
  int role_[kMaxDims];

  const StrataSpaceEntry& form_;
  Operand operand_[kMaxOperands];
  int64_t extent_[kMaxRanges];
  int64_t plain_size_[kMaxDims];
  int plain_ = -1;
  int64_t turns_from_ = 0, turns_to_ = -1;  // of the range that the index runs over; -1: all
  int index_ = -1;                          // the operand whose values say where contributions go
  double reads_ = 1;                        // elements of a reduction
  bool scatters_ = false;

 private:
  // What a run calls the kernel with: strides, and per loop of the kernel its range; which loop threads divide (-1:
  // none).
  struct Loops {
    int64_t stride[kMaxOperands * kMaxRanges];
    int range[kMaxRanges], count = 0, split = -1;
    int64_t volume = 1, times = 1;  // turns of the loops, and times that the kernel is called for plain dims outside
  };
  // An operand's row along a dim at whose places it is read in no order: fetched before a block of so many rows.
  struct Row {
    int operand = -1;
    int64_t bytes, step, block;
  };
  struct Call;  // one thread's arguments
  void plan(Loops& loops, int threads);
  Row row_to_fetch(const Loops& loops) const;
  bool is_inside(const Loops& loops, int loop) const;  // whether it goes along a line
  void keep_lines(Loops& loops, int threads) const;
  int ordered_loop(const Loops& loops) const;
  int named_range() const;
  std::pair<int64_t, int64_t> turns(int range) const;  // that a run of the range has
  bool own_places(const Loops& loops, int64_t* first, int threads) const;
  int32_t run_by_place(const void* scalars, Loops& loops, const int64_t* first, int threads);
  bool repeats(int d) const;
  void swap_plain(int a, int b);
  // Plain dim d as the next of those that are kept or, where it may join and operands from `first` on walk both in one
  // step, as a part of the last of them; whether it is a part.
  bool keep_plain(int d, int& kept, bool joins, int first);
};

}  // namespace strata::eager
