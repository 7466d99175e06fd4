// grad/: names and edges of nodes, long chains, threads, hooks, in-place errors, views.
#include <gtest/gtest.h>

#include <thread>

#include "dispatch/tls.h"
#include "grad/engine/engine.h"
#include "grad/engine/variable.h"
#include "strata/generated/ops.h"

namespace strata {

namespace {
Tensor leaf(IntArrayRef sizes, double value) {
  Tensor t = ops::full(sizes, Scalar(value));
  set_requires_grad(t, true);
  return t;
}
std::string node_name(const Tensor& t) { return static_cast<Node*>(grad_fn(t).get())->name(); }
float at(const Tensor& t, int i) { return t.data<float>()[i]; }
}  // namespace

TEST(Grad, SumOfAdd) {
  Tensor a = leaf({5, 5}, 1), b = leaf({5, 5}, 1);
  Tensor c = ops::sum(ops::add(a, b));
  EXPECT_EQ(node_name(c), "SumBackward0");
  Node* sum = static_cast<Node*>(grad_fn(c).get());
  Node* add = sum->edges[0].node.get();
  EXPECT_EQ(add->name(), "AddBackward0");
  EXPECT_EQ(add->edges[0].node->name(), "AccumulateGrad");
  EXPECT_EQ(add->edges[1].node->name(), "AccumulateGrad");
  backward({c}, {}, {});
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(at(grad_of(a), i), 1.0f);
    EXPECT_EQ(at(grad_of(b), i), 1.0f);
  }
}

TEST(Grad, ChainOf100000) {
  Tensor x = leaf({1}, 1);
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = ops::add(y, Scalar(1));
  backward({y}, {}, {});
  EXPECT_EQ(at(grad_of(x), 0), 1.0f);
}

TEST(Grad, HigherOrders) {
  Tensor x = leaf({1}, 2);
  Tensor y = ops::mul(ops::mul(x, x), x);
  BackwardOptions o;
  o.create_graph = o.keep_graph = true;
  std::vector<Tensor> g = gradients({y}, {x}, {}, o, false);
  EXPECT_EQ(at(g[0], 0), 12.0f);
  g = gradients({g[0]}, {x}, {}, o, false);
  EXPECT_EQ(at(g[0], 0), 12.0f);
  g = gradients({g[0]}, {x}, {}, o, false);
  EXPECT_EQ(at(g[0], 0), 6.0f);
}

TEST(Grad, SecondBackwardRaises) {
  Tensor x = leaf({1}, 2);
  Tensor y = ops::exp(x);
  backward({y}, {}, {});
  EXPECT_THROW(backward({y}, {}, {}), Error);
}

TEST(Grad, InplaceWriteIsFound) {
  Tensor x = leaf({1}, 2);
  Tensor y = ops::exp(x);
  ops::add_(y, Scalar(1));
  try {
    backward({y}, {}, {});
    FAIL();
  } catch (const Error& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("modified by an inplace operation"), std::string::npos) << text;
    EXPECT_NE(text.find("ExpBackward0"), std::string::npos);
    EXPECT_NE(text.find("add_"), std::string::npos);
  }
  EXPECT_THROW(ops::add_(x, Scalar(1)), Error);
}

TEST(Grad, WritesThroughViews) {
  Tensor x = leaf({2, 2}, 3);
  Tensor base = ops::mul(x, Scalar(1));
  Tensor row = ops::as_strided(base, {2}, {1}, 0);
  ops::mul_(row, Scalar(10));
  EXPECT_EQ(node_name(base), "CopySlices");
  EXPECT_EQ(node_name(row), "AsStridedBackward0");
  backward({ops::sum(base)}, {}, {});
  EXPECT_EQ(at(grad_of(x), 0), 10.0f);
  EXPECT_EQ(at(grad_of(x), 1), 10.0f);
  EXPECT_EQ(at(grad_of(x), 2), 1.0f);
}

TEST(Grad, ViewsSeeWritesToTheirBase) {
  Tensor x = leaf({4}, 2);
  Tensor base = ops::mul(x, Scalar(1));
  Tensor part = ops::as_strided(base, {2}, {1}, 2);
  ops::mul_(base, Scalar(5));
  backward({ops::sum(part)}, {}, {});
  EXPECT_EQ(at(grad_of(x), 0), 0.0f);
  EXPECT_EQ(at(grad_of(x), 3), 5.0f);
}

TEST(Grad, HooksReplaceGradientsInOrder) {
  Tensor x = leaf({1}, 1);
  Tensor y = ops::mul(x, Scalar(2));
  register_tensor_hook(y, [](const Tensor& g) { return ops::mul(g, Scalar(3)); });
  int64_t gone = register_tensor_hook(y, [](const Tensor& g) { return ops::mul(g, Scalar(100)); });
  remove_tensor_hook(y, gone);
  register_tensor_hook(x, [](const Tensor& g) { return ops::add(g, Scalar(1)); });
  retain_grad(y);
  backward({y}, {}, {});
  EXPECT_EQ(at(grad_of(y), 0), 3.0f);
  EXPECT_EQ(at(grad_of(x), 0), 7.0f);
}

TEST(Grad, NoGradRecordsNothing) {
  Tensor x = leaf({1}, 1);
  GradModeGuard off(false);
  Tensor y = ops::mul(x, Scalar(2));
  EXPECT_FALSE(needs_grad(y));
  ops::add_(x, Scalar(1));
  EXPECT_EQ(at(x, 0), 2.0f);
}

TEST(Grad, ThreadsRunSeparateGraphs) {
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  Tensor shared = leaf({16}, 2);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor x = leaf({16}, t + 1);
        Tensor y = ops::sum(ops::mul(ops::mul(x, x), shared));
        BackwardOptions o;
        std::vector<Tensor> g = gradients({y}, {x}, {}, o, false);
        results[t] = at(g[0], 0);
      }
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 8; ++t) EXPECT_EQ(results[t], 4.0f * (t + 1));
}

}  // namespace strata
