// dispatch/: the schema parser, keys, fallbacks, overrides.
#include <gtest/gtest.h>

#include "dispatch/boxed.h"
#include "dispatch/call.h"
#include "strata/generated/ops.h"

namespace strata {

TEST(Schema, EveryOperatorsTextParsesBack) {
  int n = 0;
  for (Operator* op : OperatorTable::instance().all()) {
    Schema again = parse_schema(op->schema().text());
    EXPECT_EQ(again.text(), op->schema().text());
    ++n;
  }
  EXPECT_GT(n, 300);
}

TEST(Schema, ErrorsNameTheColumn) {
  try {
    parse_schema("aten::f(Tensor a, Tensr b) -> Tensor");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("column 19"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("unknown type 'Tensr'"), std::string::npos);
  }
  EXPECT_THROW(parse_schema("aten::f(Tensor a -> Tensor"), Error);
  EXPECT_THROW(parse_schema("aten::f(Tensor a) -> Tensor x y"), Error);
  Schema s = parse_schema("aten::g(Tensor(a!) self, int[2] k=3, *, str mode='x') -> Tensor(a!)");
  EXPECT_TRUE(s.writes());
  EXPECT_EQ(s.args[1].default_value->get<std::vector<int64_t>>(), (std::vector<int64_t>{3, 3}));
  EXPECT_TRUE(s.args[2].keyword_only);
}

TEST(Operators, DefiningTwiceWithAnotherSchemaRaises) {
  EXPECT_THROW(OperatorTable::instance().define("aten::add.Tensor(Tensor self) -> Tensor"), Error);
  EXPECT_THROW(OperatorTable::instance().get("aten::no_such_operator"), Error);
}

namespace {
int boxed_calls = 0;
Tensor negated_twice(const Tensor& t) { return t; }
}  // namespace

TEST(Operators, OverridesAreRestored) {
  OperatorTable& table = OperatorTable::instance();
  Tensor x = ops::ones({2});
  std::string warned;
  static std::string* text = &warned;
  set_warning_handler([](const std::string& m) { *text = m; });
  auto saved = table.impl(table.get("aten::neg"), Key::Backend, 0,
                          reinterpret_cast<void*>(&PlainKernel<&negated_twice>::call), nullptr, "dispatch_test");
  set_warning_handler(nullptr);
  EXPECT_NE(warned.find("dispatch_test"), std::string::npos);
  EXPECT_NE(warned.find("ops/pointwise.yaml"), std::string::npos);
  EXPECT_EQ(ops::neg(x).data<float>()[0], 1.0f);
  table.restore(table.get("aten::neg"), Key::Backend, 0, saved);
  EXPECT_EQ(ops::neg(x).data<float>()[0], -1.0f);
}

// A whole key in a few lines: one fallback, one list of operators that it leaves alone.
TEST(Operators, WholeKeyRegistration) {
  OperatorTable& table = OperatorTable::instance();
  BoxedKernel kernel{[](Operator& op, Dispatch, Stack& stack) {
                       ++boxed_calls;
                       ExcludeGuard below{KeySet(Key::User0)};
                       call_boxed(op, stack);
                     },
                     "dispatch_test"};
  table.fallback(Key::User0, &kernel);
  table.fallthrough(table.get("aten::mul.Tensor"), Key::User0);
  Tensor x = ops::ones({2});
  {
    IncludeGuard on{KeySet(Key::User0)};
    ops::add(x, x);
    EXPECT_EQ(boxed_calls, 1);
    ops::mul(x, x);
    EXPECT_EQ(boxed_calls, 1);
    Stack args{IValue(x)};
    EXPECT_NE(explain_dispatch(table.get("aten::neg"), args).find("fallback of the key, from dispatch_test"),
              std::string::npos);
  }
  table.fallback(Key::User0, nullptr);
  ops::add(x, x);
  EXPECT_EQ(boxed_calls, 1);
}

// A call that has found the slot of a key runs what the key has now: calls write nothing there.
TEST(Operators, CallsDoNotWriteTheSlotOfAFallback) {
  OperatorTable& table = OperatorTable::instance();
  auto plain = [](Operator& op, Dispatch, Stack& stack) {
    ExcludeGuard below{KeySet(Key::User2)};
    call_boxed(op, stack);
  };
  BoxedKernel first{plain, "first"}, second{plain, "second"};
  Dispatch d{Key::Backend | Key::User2, 0};
  table.fallback(Key::User2, &first);
  const Slot& found = table.get("aten::add.Tensor").find(d);
  EXPECT_EQ(found.boxed.load(), &first);
  table.fallback(Key::User2, &second);
  EXPECT_EQ(found.boxed.load(), &second);
  EXPECT_EQ(&table.get("aten::mul.Tensor").find(d), &found);
  table.fallback(Key::User2, nullptr);
  EXPECT_THROW(table.get("aten::add.Tensor").find(d), Error);
  EXPECT_EQ(found.boxed.load(), &second);  // for a call that is between finding and running
}

TEST(Operators, UnlistedOperatorsOfAKeyWithAnErrorFallbackRaise) {
  BoxedKernel refuse{[](Operator& op, Dispatch, Stack&) {
                       throw_error(ErrorKind::NotImplemented, op.name + " has no kernel for User1");
                     },
                     "dispatch_test"};
  OperatorTable::instance().fallback(Key::User1, &refuse);
  {
    IncludeGuard on{KeySet(Key::User1)};
    EXPECT_THROW(ops::neg(ops::ones({1})), Error);
  }
  OperatorTable::instance().fallback(Key::User1, nullptr);
}

}  // namespace strata
