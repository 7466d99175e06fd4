// verify() of scheduled kernels: a kernel of each kind is one, and every rule of the spec (lower/ir/ir.h) is broken
// once.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "lower/expr/build.h"

namespace strata::lower {
namespace {

constexpr DType f32 = DType::F32;

Kernel built(KernelKind kind, const char* inputs, const char* outputs, const char* text, DType t = f32) {
  return build_kernel({"probe", "test", kind, inputs, "alpha", outputs, text, ~0u, "test"}, t);
}

// Two passes, a scratch row (the exponentials), a result per element and one per row.
Kernel rows() {
  return built(KernelKind::Rows, "x m:row", "result total:row",
               "e = exp(x - m)\ns = sum(e)\nresult = alpha * e / s\ntotal = s");
}

size_t find(const Pass& p, Op op) {
  for (size_t v = 0; v < p.nodes.size(); ++v)
    if (p.nodes[v].op == op) return v;
  ADD_FAILURE() << "no " << op_name(op);
  return 0;
}

struct Break {
  const char* says;
  std::function<void(Kernel&)> change;
};

Node& node(Kernel& k, size_t pass, Op op) { return k.passes[pass].nodes[find(k.passes[pass], op)]; }

TEST(Verify, TakesWhatIsBuilt) {
  verify(rows());
  for (DType t : {f32, DType::F64, DType::BF16, DType::F16, DType::C64, DType::C128}) {
    verify(built(KernelKind::Pointwise, "a b", "result", "alpha * a / (b * b + 1)", t));
    verify(built(KernelKind::Rows, "a", "result:row", "sum(a) / n", t));
  }
  for (DType t : {DType::I8, DType::U8, DType::I64})
    verify(built(KernelKind::Pointwise, "a b", "result", "alpha * a + b", t));
  verify(built(KernelKind::Pointwise, "a b", "result:bool", "a < b"));
  verify(built(KernelKind::Pointwise, "a", "result", "lgamma(a)"));  // with rare parts
}

TEST(Verify, RefusesWhatBreaksARule) {
  const Kernel good = rows();
  ASSERT_EQ(good.passes.size(), 2u);
  ASSERT_EQ(good.scratch.size(), 1u);
  const std::vector<Break> breaks = {
      {"which follows it",
       [](Kernel& k) {
         Node& n = node(k, 0, Op::Sub);
         n.arg[0] = int(k.passes[0].nodes.size()) - 1;
       }},
      {"too few arguments", [](Kernel& k) { node(k, 0, Op::Sub).arg[1] = -1; }},
      {"too many arguments", [](Kernel& k) { node(k, 0, Op::Sub).arg[2] = 0; }},
      {"of another type than its arguments", [](Kernel& k) { node(k, 0, Op::Sub).type = DType::F64; }},
      {"reads another type", [](Kernel& k) { node(k, 0, Op::Load).type = DType::F64; }},
      {"names input", [](Kernel& k) { node(k, 0, Op::Load).imm = 7; }},
      {"names number", [](Kernel& k) { node(k, 1, Op::Param).imm = 1; }},
      {"made of node", [](Kernel& k) { node(k, 0, Op::Sub).uniform = true; }},
      {"which no pass before has made", [](Kernel& k) { node(k, 1, Op::Reduced).imm = 1; }},
      {"is not one for the row", [](Kernel& k) { node(k, 1, Op::Reduced).uniform = false; }},
      {"which no pass before has written once", [](Kernel& k) { k.passes[0].stores.clear(); }},
      {"which no pass before has written once", [](Kernel& k) { k.passes[0].stores.push_back(k.passes[0].stores[0]); }},
      {"scratch row 0 of another type", [](Kernel& k) { k.scratch[0] = DType::F64; }},
      {"compares two types",
       [](Kernel& k) {
         Node n{Op::Lt, f32, {0, 0, -1}};
         k.passes[0].nodes.push_back(n);
       }},
      {"chooses by no Bool",
       [](Kernel& k) {
         Node n{Op::Select, f32, {0, 0, 0}};
         k.passes[0].nodes.push_back(n);
       }},
      {"changes the number of bits",
       [](Kernel& k) {
         Node n{Op::Bitcast, DType::I64, {0, -1, -1}};
         k.passes[0].nodes.push_back(n);
       }},
      {"of one floating type",
       [](Kernel& k) {
         Node n{Op::Sqrt, DType::I32, {0, -1, -1}};
         k.passes[0].nodes.push_back(n);
       }},
      {"over an index space", [](Kernel& k) { k.passes[0].nodes.push_back({Op::Range, DType::I64}); }},
      {"names carry", [](Kernel& k) { k.passes[0].nodes.push_back({Op::State, f32}); }},
      {"goes on by what is no condition",
       [](Kernel& k) { k.passes[0].carries.push_back({Carry::Repeat, -1, 0, {0}, {0}, {"a"}}); }},
      {"a reduction of nothing", [](Kernel& k) { k.passes[0].reductions[0].value[0] = -1; }},
      {"do not fit", [](Kernel& k) { k.passes[0].reductions[0].value[1] = 0; }},
      {"a store of another type", [](Kernel& k) { k.outputs[0].storage = DType::F64; }},
      {"which has one per row", [](Kernel& k) { k.outputs[0].per_row = true; }},
      {"an output that is not written once", [](Kernel& k) { k.passes[1].stores.pop_back(); }},
      {"an output that is not written once", [](Kernel& k) { k.passes[1].stores.push_back(k.passes[1].stores[0]); }},
      {"no pass", [](Kernel& k) { k.passes.clear(); }},
      {"several passes over elements", [](Kernel& k) { k.kind = KernelKind::Pointwise; }},
  };
  for (const Break& b : breaks) {
    Kernel k = good;
    b.change(k);
    try {
      verify(k);
      ADD_FAILURE() << "taken: " << b.says;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(b.says), std::string::npos) << e.what() << "; expected: " << b.says;
    }
  }
}

}  // namespace
}  // namespace strata::lower
