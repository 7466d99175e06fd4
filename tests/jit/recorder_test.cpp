// jit/trace/recorder: graphs of operators, and what computes while they are recorded without having been asked for.
#include "jit/trace/recorder.h"

#include <gtest/gtest.h>

#include "run/copy.h"
#include "strata/generated/kernel_calls.h"
#include "strata/generated/ops.h"

namespace strata {

TEST(Recorder, ReplaysOnOtherInputs) {
  Tensor x = ops::arange(Scalar(4)), y = ops::full({4}, Scalar(10));
  Recording recording({x, y});
  Tensor z = ops::mul(x, y);
  ops::add_(ops::slice(z, 0, 1, 3, 1), x.sizes().empty() ? x : ops::select(y, 0, 0));
  ir::Graph graph = recording.finish({z});
  EXPECT_EQ(graph.body.nodes.size(), 4u);
  EXPECT_TRUE(graph.captured.empty());
  Tensor a = ops::full({4}, Scalar(2)), b = ops::arange(Scalar(4));
  a = ops::to(a, x.dtype());
  b = ops::to(b, y.dtype());
  std::vector<Tensor> out = ir::run(graph, {a, b});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(ops::equal(out[0], ops::mul(a, b)));  // b[0] is 0
}

TEST(Recorder, WhatNobodyAskedForIsAnInternalError) {
  Tensor x = ops::ones({4}), y = ops::zeros({4});
  Recording recording({x, y});
  auto kind = [](auto&& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::Value;
  };
  EXPECT_EQ(kind([&] { eager::copy_values(y, x); }), ErrorKind::Internal);
  EXPECT_EQ(kind([&] { eager::fill_values(y, Scalar(2)); }), ErrorKind::Internal);
  EXPECT_EQ(kind([&] { eager::contiguous_copy(x); }), ErrorKind::Internal);
  EXPECT_EQ(kind([&] { eager::calls::reciprocal_deviation(x, Scalar(1)); }), ErrorKind::Internal);
  EXPECT_EQ(kind([&] { eager::calls::channel_stats(x, std::nullopt, false); }), ErrorKind::Internal);
  EXPECT_EQ(kind([&] { ops::item(ops::sum(x)); }), ErrorKind::Runtime);
  {
    ExcludeGuard off{KeySet(Key::Tracer)};
    EXPECT_NO_THROW(eager::copy_values(y, x));
    EXPECT_NO_THROW(ops::item(ops::sum(x)));
  }
}

TEST(Recorder, TensorsFromOutsideAreCaptured) {
  Tensor x = ops::ones({4}), outside = ops::ones({4});
  Recording recording({x});
  ir::Graph graph = recording.finish({ops::add(x, outside)});
  ASSERT_EQ(graph.captured.size(), 1u);
  EXPECT_TRUE(graph.captured[0].is_same(outside));
}

TEST(Recorder, CompositesAreDecomposed) {
  Operator& reshape = OperatorTable::instance().get("aten::reshape");
  ASSERT_TRUE(reshape.is_composite());
  Tensor x = ops::ones({4}), out = ops::empty({0});
  Recording recording({x, out});
  ops::reshape(x, {2, 2});
  ir::Graph graph = recording.finish({});
  ASSERT_EQ(graph.body.nodes.size(), 1u);
  EXPECT_EQ(graph.body.nodes[0].op->name, "aten::view");
}

}  // namespace strata
