// Launches over shapes alone are told, and groups of many dims come in turns that every device sees alike.
#include "run/launch.h"

#include <gtest/gtest.h>

#include <numeric>

namespace strata {
namespace {

const eager::SpaceOp flip{"flip"};

void flip_all(const Tensor& to, const Tensor& from) {
  eager::Place all{"f", {}};
  for (int64_t d = 0; d < to.dim(); ++d) all.dims.push_back(d);
  const Tensor *out = &to, *in = &from;
  EXPECT_EQ(eager::launch({flip, "flip", DType::U32, {&out, 1}, {&in, 1}, {&all, 1}, {}, {}}), 0);
}

class Turns final : public eager::LaunchObserver {
 public:
  std::vector<size_t> dims;  // of the group in each launch
  void pointwise(const eager::PointwiseOp&, DType, ArrayRef<const Tensor*>, ArrayRef<const Tensor*>,
                 ArrayRef<Scalar>) override {}
  void rows(const eager::RowsOp&, DType, ArrayRef<Tensor>, ArrayRef<const Tensor*>, ArrayRef<Scalar>,
            const DimVec&) override {}
  void space(const eager::SpaceCall& c) override { dims.push_back(c.places[0].dims.size()); }
  void draw(const eager::DrawOp&, DType, const Tensor&, TensorList, ArrayRef<eager::DrawNumber>,
            const Generator&) override {}
  void copy(const Tensor&, const Tensor&) override {}
  void fill(const Tensor&, const Scalar&) override {}
  void other() override {}
};

TEST(Launch, OverShapesIsTold) {
  const Tensor small = make_tensor({3, 4}, DType::F32, Device{}, true);
  flip_all(small, small);  // to nobody
  Turns turns;
  const eager::LaunchObserver::Scope observed(turns);
  flip_all(small, small);
  EXPECT_EQ(turns.dims, (std::vector<size_t>{2}));
  turns.dims.clear();
  const Tensor large = make_tensor({2, 3, 1, 2, 2, 3, 2}, DType::F32, Device{}, true);
  flip_all(large, large);
  EXPECT_EQ(turns.dims, (std::vector<size_t>{3, 3, 1}));
}

TEST(Launch, TurnsOnTheCpu) {
  const Tensor from = make_tensor({2, 3, 2, 2, 5}, DType::F32), to = make_tensor(from.sizes(), DType::F32);
  std::iota(from.data<float>(), from.data<float>() + from.numel(), 0.f);
  flip_all(to, from);
  std::vector<float> reversed(size_t(from.numel()));
  std::iota(reversed.rbegin(), reversed.rend(), 0.f);
  EXPECT_EQ(std::vector<float>(to.data<float>(), to.data<float>() + to.numel()), reversed);
}

}  // namespace
}  // namespace strata
