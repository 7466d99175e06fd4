// grad/engine/function.h: custom functions with a derivative of their own.
#include <gtest/gtest.h>

#include "base/error.h"
#include "grad/engine/engine.h"
#include "grad/engine/function.h"
#include "strata/generated/ops.h"

namespace strata {

namespace {

Tensor leaf(double value) {
  Tensor t = ops::full(DimVec{2}, Scalar(value), DType::F64);
  set_requires_grad(t, true);
  return t;
}
double at(const Tensor& t) { return t.data<double>()[0]; }
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

struct Cube : Function<Cube> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, double scale) {
    EXPECT_FALSE(grad_enabled());
    EXPECT_TRUE(ctx.needs_input_grad(0));
    EXPECT_FALSE(ctx.needs_input_grad(1));
    ctx.save_for_backward({x});
    ctx.values["scale"] = scale;
    return ops::mul(ops::mul(ops::mul(x, x), x), Scalar(scale));
  }
  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    Tensor x = ctx.saved_tensors()[0];
    double scale = std::any_cast<double>(ctx.values["scale"]);
    return {ops::mul(grads[0], ops::mul(ops::mul(x, x), Scalar(3 * scale))), Tensor()};
  }
};

// Two outputs, the second not differentiable; undefined gradients are passed on as they are.
struct Halves : Function<Halves> {
  static std::vector<Tensor> forward(FunctionContext& ctx, const Tensor& x, const std::optional<Tensor>& shift) {
    Tensor half = ops::mul(x, Scalar(0.5)), sign = ops::sign(x), twice = ops::mul(x, Scalar(2.0));
    if (shift) half = ops::add(half, *shift);
    ctx.mark_non_differentiable({sign});
    ctx.set_materialize_grads(false);
    return {half, sign, twice};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    EXPECT_TRUE(grads[0].defined());
    EXPECT_FALSE(grads[2].defined());
    return {ops::mul(grads[0], Scalar(0.5)), grads[0]};
  }
};

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    Tensor y = x;
    ops::mul_(y, Scalar(2.0));
    ctx.mark_dirty({y});
    return y;
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {ops::mul(grads[0], Scalar(2.0))};
  }
};

struct Forgetful : Function<Forgetful> {
  static Tensor forward(FunctionContext&, const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return {grads[0]}; }
};

}  // namespace

TEST(Function, GradientsToSecondOrder) {
  Tensor x = leaf(2);
  Tensor y = Cube::apply(x, 5.0);
  EXPECT_EQ(at(y), 40.0);
  EXPECT_EQ(static_cast<Node*>(grad_fn(y).get())->name(), "CubeBackward");
  BackwardOptions options;
  options.create_graph = options.keep_graph = true;
  Tensor first = gradients({ops::sum(y)}, {x}, {}, options, false)[0];
  EXPECT_EQ(at(first), 60.0);
  EXPECT_EQ(at(gradients({ops::sum(first)}, {x}, {}, {}, false)[0]), 60.0);
}

TEST(Function, SavedTensorsAreGuarded) {
  Tensor x = leaf(2), y = ops::mul(x, Scalar(1.0));
  Tensor z = ops::sum(Cube::apply(y, 1.0));
  backward({z}, {}, {});
  EXPECT_EQ(at(grad_of(x)), 12.0);
  EXPECT_NE(error_of([&] { backward({z}, {}, {}); }).find("a second time"), std::string::npos);
  y = ops::mul(x, Scalar(1.0));
  z = ops::sum(Cube::apply(y, 1.0));
  ops::mul_(y, Scalar(3.0));
  EXPECT_NE(error_of([&] { backward({z}, {}, {}); }).find("modified by an inplace operation"), std::string::npos);
}

TEST(Function, SeveralOutputs) {
  Tensor x = leaf(3), shift = leaf(1);
  std::vector<Tensor> y = Halves::apply(x, std::optional<Tensor>(shift));
  EXPECT_TRUE(needs_grad(y[0]) && !needs_grad(y[1]) && needs_grad(y[2]));
  backward({ops::sum(y[0])}, {}, {});
  EXPECT_EQ(at(grad_of(x)), 0.5);
  EXPECT_EQ(at(grad_of(shift)), 1.0);
  GradModeGuard off(false);
  EXPECT_FALSE(needs_grad(Halves::apply(x, std::optional<Tensor>())[0]));
}

TEST(Function, DirtyInputs) {
  Tensor x = leaf(3), y = ops::mul(x, Scalar(1.0));
  Tensor z = DoubleInPlace::apply(y);
  EXPECT_EQ(z.impl(), y.impl());
  EXPECT_EQ(at(y), 6.0);
  backward({ops::sum(z)}, {}, {});
  EXPECT_EQ(at(grad_of(x)), 2.0);
  EXPECT_NE(error_of([&] { DoubleInPlace::apply(x); }).find("in-place operation"), std::string::npos);
}

TEST(Function, WrongNumberOfGradients) {
  Tensor a = leaf(1), b = leaf(2);
  Tensor y = ops::sum(Forgetful::apply(a, b));
  EXPECT_NE(error_of([&] { backward({y}, {}, {}); }).find("incorrect number of gradients (expected 2, got 1)"),
            std::string::npos);
}

}  // namespace strata
