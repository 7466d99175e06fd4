// Launches go to the device of the operands: a device type without a launcher refuses, one with it gets the call that
// the CPU would get, and groups of many dims come in turns that every device sees alike.
#include "run/launch.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace strata {
namespace {

std::vector<size_t> turns;  // dims of the group in each call

int32_t on_fake(const eager::SpaceCall& c) {
  turns.push_back(c.places[0].dims.size());
  return eager::space({c.op, c.dtype, c.outs, c.ins, c.places, c.scalars.data()});
}

const eager::SpaceOp flip{"flip"};

// flip of all dims of 0, 1, 2... on `device`.
std::vector<float> flipped(Device device, IntArrayRef sizes) {
  const Tensor from = make_tensor(sizes, DType::F32, device), to = make_tensor(sizes, DType::F32, device);
  std::iota(from.data<float>(), from.data<float>() + from.numel(), 0.f);
  eager::Place all{"f", {}};
  for (size_t d = 0; d < sizes.size(); ++d) all.dims.push_back(int64_t(d));
  const Tensor *out = &to, *in = &from;
  EXPECT_EQ(eager::launch({flip, "flip", DType::U32, {&out, 1}, {&in, 1}, {&all, 1}, {}, {}}), 0);
  return {to.data<float>(), to.data<float>() + to.numel()};
}

std::vector<float> reversed(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.rbegin(), v.rend(), 0.f);
  return v;
}

TEST(Launch, GoesToTheDevice) {
  const int type = intern_device_type("launched");
  register_allocator(type, allocator_for(Device{}));
  const Device device{int8_t(type), 0};
  try {
    flipped(device, {3, 4});
    FAIL() << "a device without a launcher ran a kernel";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_NE(e.message().find("flip: device launched:0 runs no printed kernels"), std::string::npos) << e.message();
  }
  eager::register_launcher(type, on_fake);
  EXPECT_EQ(flipped(device, {3, 4}), reversed(12));
  EXPECT_EQ(turns, (std::vector<size_t>{2}));
  turns.clear();
  EXPECT_EQ(flipped(device, {2, 3, 1, 2, 2, 3, 2}), reversed(144));
  EXPECT_EQ(turns, (std::vector<size_t>{3, 3, 1}));
}

TEST(Launch, TurnsOnTheCpu) { EXPECT_EQ(flipped(Device{}, {2, 3, 2, 2, 5}), reversed(120)); }

}  // namespace
}  // namespace strata
