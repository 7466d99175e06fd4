// What a space kernel would give, piece by piece as a loop asks for it: no memory for the whole.
#pragma once
#include <atomic>

#include "run/loop/maker.h"
#include "run/space_launch.h"

namespace strata::eager {

class SpacePieces final : public Maker, SpaceLaunch {
 public:
  // Null for kernels whose elements are not made one apart from the other: scatters, scans, several results, groups of
  // many dims. The result's memory is not looked at; what is read must outlive the pieces, and `args.scalars`, too.
  static std::unique_ptr<SpacePieces> of(const SpaceArgs& args);
  void make(int64_t first, int64_t count, char* to) const override;
  int32_t status() const { return status_.load(std::memory_order_relaxed); }  // of all pieces so far

 private:
  SpacePieces(const StrataSpaceEntry& form, const SpaceArgs& args);
  bool each_apart() const;

  DimVec sizes_;
  int dim_of_loop_[kMaxRanges];  // of the result; -1 where the loop has one turn
  int dim_of_plain_[kMaxDims];   // of those that are walked
  bool has_block_ = false;       // rows that follow each other are made at once
  const void* scalars_;
  int64_t stride_[kMaxOperands * kMaxRanges];
  mutable std::atomic<int32_t> status_{0};
};

}  // namespace strata::eager
