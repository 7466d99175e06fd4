// dispatch/boxed and dispatch/autocast: operators without a C++ signature, saved kernels, the foreign slot, casts.
#include "dispatch/boxed.h"

#include <gtest/gtest.h>

#include "dispatch/autocast.h"
#include "dispatch/call.h"
#include "strata/generated/ops.h"

namespace strata {

namespace {

double first(const Tensor& t) { return ops::item(ops::reshape(t, {-1})).to_double(); }

// x * n, n an int with a default.
const BoxedKernel times{[](Operator&, Dispatch, Stack& stack) {
                          Tensor r = ops::mul(stack[0].get<Tensor>(), Scalar(long(stack[1].get<int64_t>())));
                          stack = {IValue(r)};
                        },
                        "boxed_test"};

}  // namespace

TEST(Boxed, OperatorsWithoutSignature) {
  OperatorTable& table = OperatorTable::instance();
  Operator& op = define_boxed("boxed_test::times(Tensor x, int n=3) -> Tensor");
  EXPECT_THROW(define_boxed("boxed_test::times(Tensor x) -> Tensor"), Error);
  EXPECT_THROW(define_boxed("boxed_test::bad(Tensr x) -> Tensor"), Error);
  Stack stack{IValue(ops::ones({1})), IValue(int64_t(3))};
  EXPECT_THROW(
      {
        Stack args = stack;
        call_boxed(op, args);
      },
      Error);
  table.impl(op, Key::Backend, kCompositeSlot, nullptr, &times, "boxed_test");
  call_boxed(op, stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(first(stack[0].get<Tensor>()), 3);
  EXPECT_NE(table.dump(op).find("Composite: boxed kernel from boxed_test"), std::string::npos);
  table.remove(op);
  EXPECT_EQ(table.find("boxed_test::times"), nullptr);
}

TEST(Boxed, SavedKernelsRun) {
  OperatorTable& table = OperatorTable::instance();
  Operator& op = table.get("aten::neg");
  static const BoxedKernel zero{[](Operator&, Dispatch, Stack& stack) { stack = {IValue(ops::zeros({1}))}; },
                                "boxed_test"};
  OperatorTable::Saved saved = table.impl(op, Key::Backend, 0, nullptr, &zero, "boxed_test", true);
  EXPECT_EQ(first(ops::neg(ops::ones({1}))), 0);
  Stack stack{IValue(ops::ones({1}))};
  EXPECT_TRUE(run_saved(op, saved, {KeySet(Key::Backend), 0}, stack));
  EXPECT_EQ(first(stack[0].get<Tensor>()), -1);
  EXPECT_FALSE(run_saved(op, {nullptr, nullptr, nullptr, false}, {KeySet(Key::Backend), 0}, stack));
  table.restore(op, Key::Backend, 0, saved);
  EXPECT_EQ(first(ops::neg(ops::ones({1}))), -1);
}

TEST(Boxed, ForeignKernelComesAfterAutograd) {
  const Slot& before = OperatorTable::instance().foreign_slot();
  const BoxedKernel* kept = before.boxed.load();
  static bool autograd_was_off = false;
  static const BoxedKernel foreign{[](Operator&, Dispatch, Stack& stack) {
                                     autograd_was_off = dispatch_tls.mask.has(Key::Autograd);
                                     stack = {IValue(ops::full({1}, 7.0))};
                                   },
                                   "boxed_test"};
  OperatorTable::instance().foreign(&foreign);
  Tensor x = ops::ones({1});
  x.impl()->requires_grad_ = true;
  x.impl()->keys_ = x.impl()->keys_ | KeySet(Key::Autograd);
  Stack stack{IValue(x)};
  Dispatch d = dispatch_of_stack(stack);
  redispatch_boxed(OperatorTable::instance().get("aten::exp"), {d.keys, kForeignDevice}, stack);
  Tensor y = stack[0].get<Tensor>();
  EXPECT_EQ(first(y.detach()), 7);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(autograd_was_off);
  OperatorTable::instance().foreign(kept);
}

TEST(Boxed, DispatchOfStackSeesListsAndDevices) {
  Tensor x = ops::ones({1});
  x.impl()->keys_ = x.impl()->keys_ | KeySet(Key::User2);
  Stack stack{IValue(), IValue(IValue::TensorVec{Tensor(), x}), IValue(Device{0, 0})};
  Dispatch d = dispatch_of_stack(stack);
  EXPECT_TRUE(d.keys.has(Key::User2));
  EXPECT_TRUE(d.keys.has(Key::Backend));
  EXPECT_EQ(d.device, 0);
}

TEST(Autocast, ScopesNestAndRestore) {
  EXPECT_FALSE(autocast_state(0).enabled);
  {
    AutocastGuard outer;
    EXPECT_TRUE(autocast_state(0).enabled);
    EXPECT_TRUE(dispatch_tls.include.has(Key::Autocast));
    {
      AutocastGuard inner(DType::F16, false);
      EXPECT_FALSE(autocast_state(0).enabled);
      EXPECT_EQ(autocast_depth(), 2);
    }
    EXPECT_EQ(autocast_state(0).dtype, DType::BF16);
    EXPECT_THROW(autocast_enter(0, DType::F32, true, true), Error);
    EXPECT_EQ(autocast_depth(), 1);
  }
  EXPECT_FALSE(dispatch_tls.include.has(Key::Autocast));
  EXPECT_THROW(autocast_exit(), Error);
}

TEST(Autocast, LowersProducts) {
  Operator* mm = OperatorTable::instance().find("aten::mm");
  if (!mm) GTEST_SKIP() << "the table has no aten::mm";
  AutocastGuard guard;
  Stack stack{IValue(ops::ones({2, 2})), IValue(ops::ones({2, 2}))};
  call_boxed(*mm, stack);
  EXPECT_EQ(stack[0].get<Tensor>().dtype(), DType::BF16);
}

}  // namespace strata
