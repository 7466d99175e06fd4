// io/package, io/value: nested values come back as they were; damaged trees raise.
#include "io_files.h"

#include <cmath>

#include "io/package.h"

namespace strata::io {
namespace {

Tensor floats(std::vector<float> values) {
  Tensor t = make_tensor({int64_t(values.size())}, DType::F32);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
Value list_of(std::vector<Value> items, List::Kind kind = List::Plain) {
  auto l = std::make_shared<List>();
  l->kind = kind;
  l->items = std::move(items);
  return {l};
}
Value dict_of(std::vector<std::pair<Value, Value>> items, Dict::Kind kind = Dict::Plain) {
  auto d = std::make_shared<Dict>();
  d->kind = kind;
  d->items = std::move(items);
  return {d};
}
Value number(int64_t i) { return {i}; }
Value round_trip(const Value& v) { return load_bytes(package_bytes(v)); }

// A tree without tensors, as the JSON of its file.
std::string tree_file(const std::string& tree) {
  StringWriter w;
  SafeWriter({}, {{kPackageKey, "{\"version\":1,\"tree\":" + tree + "}"}}).write(w);
  return w.bytes;
}

Value example() {
  Tensor base = floats({0, 1, 2, 3, 4, 5});
  auto weight = std::make_shared<TensorItem>();
  weight->tensor = base.alias({2, 2}, {3, 1}, 1);
  weight->kind = TensorItem::Parameter;
  weight->requires_grad = true;
  weight->attributes.emplace_back(std::make_shared<const std::string>("note"), make_str("x"));
  Tensor complex = make_tensor({2}, DType::C128);
  for (int i = 0; i < 2; ++i) complex.data<std::complex<double>>()[i] = {i + 0.5, -i - 0.25};
  Value state = dict_of({{make_str("weight"), {weight}}, {make_str("base"), make_tensor_value(base)}}, Dict::Ordered);
  std::get<std::shared_ptr<Dict>>(state.v)->attributes.emplace_back(std::make_shared<const std::string>("_metadata"),
                                                                    dict_of({{make_str(""), number(1)}}));
  return dict_of({
      {make_str("state"), state},
      {make_str("again"), state},
      {number(3), list_of({{}, {true}, {1.5}, number(INT64_MIN)}, List::Tuple)},
      {make_str("complex"), make_tensor_value(complex)},
      {make_str("empty"), make_tensor_value(make_tensor({2, 0}, DType::I64))},
      {make_str("set"), list_of({make_str("a"), number(1)}, List::Set)},
  });
}

TEST(Package, ScalarsComeBackExactly) {
  for (double d : {0.0, -0.0, 0.1, 1e300, double(INFINITY), -double(INFINITY), std::nan("0x123")}) {
    Value v = round_trip({d});
    ASSERT_TRUE(v.get<double>());
    EXPECT_EQ(std::memcmp(v.get<double>(), &d, 8), 0);
  }
  for (int64_t i : {int64_t(0), int64_t(-1), INT64_MAX, INT64_MIN}) EXPECT_EQ(*round_trip({i}).get<int64_t>(), i);
  EXPECT_TRUE(round_trip({}).is_none());
  EXPECT_EQ(*round_trip({false}).get<bool>(), false);
  EXPECT_EQ(*round_trip(make_str("a\"\n\xc3\xa4")).str(), "a\"\n\xc3\xa4");
  EXPECT_EQ(*round_trip({DType::BF16}).get<DType>(), DType::BF16);
  EXPECT_EQ(*round_trip({Device{}}).get<Device>(), Device{});
  EXPECT_TRUE(round_trip({StridedLayout{}}).get<StridedLayout>());
  Value bytes = round_trip({std::make_shared<const Bytes>(Bytes{std::string("\0\xff\x10", 3), true})});
  EXPECT_EQ((*bytes.get<std::shared_ptr<const Bytes>>())->data, std::string("\0\xff\x10", 3));
  EXPECT_TRUE((*bytes.get<std::shared_ptr<const Bytes>>())->array);
  Value c = round_trip({std::complex<double>(1, -INFINITY)});
  EXPECT_EQ(*c.get<std::complex<double>>(), std::complex<double>(1, -INFINITY));
}

TEST(Package, SharingAndViewsComeBack) {
  Value v = round_trip(example());
  const auto& items = v.dict()->items;
  const Dict *state = items[0].second.dict(), *again = items[1].second.dict();
  EXPECT_EQ(state, again);
  EXPECT_EQ(state->kind, Dict::Ordered);
  EXPECT_EQ(*state->attributes[0].first, "_metadata");
  const TensorItem *weight = state->items[0].second.tensor(), *base = state->items[1].second.tensor();
  EXPECT_EQ(weight->kind, TensorItem::Parameter);
  EXPECT_TRUE(weight->requires_grad);
  EXPECT_EQ(*weight->attributes[0].second.str(), "x");
  EXPECT_EQ(weight->tensor.storage(), base->tensor.storage());
  EXPECT_EQ(weight->tensor.strides(), IntArrayRef({3, 1}));
  EXPECT_EQ(weight->tensor.data<float>()[3], 4);
  EXPECT_EQ(*items[2].first.get<int64_t>(), 3);
  EXPECT_EQ(items[2].second.list()->kind, List::Tuple);
  EXPECT_EQ(items[3].second.tensor()->tensor.data<std::complex<double>>()[1], std::complex<double>(1.5, -1.25));
  EXPECT_EQ(items[4].second.tensor()->tensor.sizes(), IntArrayRef({2, 0}));
}

TEST(Package, OnlyThePartThatIsReachedIsWritten) {
  Tensor big = make_tensor({100000}, DType::F32);
  std::memset(big.data_ptr(), 0, size_t(big.nbytes()));
  std::string bytes = package_bytes(make_tensor_value(big.alias({2, 2}, {10, 1}, 500)));
  EXPECT_LT(bytes.size(), 600u);
  Value v = load_bytes(bytes);
  EXPECT_EQ(v.tensor()->tensor.strides(), IntArrayRef({10, 1}));
  EXPECT_EQ(v.tensor()->tensor.storage_offset(), 0);
}

TEST(Package, OneStorageOfTwoDtypes) {
  Tensor f = floats({1, 2, 3, 4, 5, 6, 7, 8});
  Tensor bits = make_tensor_over(f.storage(), {3}, {1}, 5, DType::I32), tail = f.alias({2}, {1}, 6);
  Value v = round_trip(list_of({make_tensor_value(bits), make_tensor_value(tail)}));
  const Tensor &a = v.list()->items[0].tensor()->tensor, &b = v.list()->items[1].tensor()->tensor;
  EXPECT_EQ(a.storage(), b.storage());
  EXPECT_EQ(a.data<int32_t>()[0], 0x40c00000);
  EXPECT_EQ(b.data<float>()[0], 7);
  EXPECT_EQ(static_cast<void*>(a.data<int32_t>() + 1), b.data_ptr());
}

TEST(Package, OthersSeeTheTensorsByName) {
  std::string bytes = package_bytes(dict_of({{make_str("layer.weight"), make_tensor_value(floats({1, 2}))},
                                             {make_str("more"), list_of({make_tensor_value(floats({3}))})}}));
  SafeHeader header = read_safetensors_header(*Source::memory(bytes, "file"));
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "layer.weight");
  EXPECT_EQ(header.entries[1].name, "more.0");
  EXPECT_EQ(bytes, package_bytes(load_bytes(bytes)));
}

TEST(Package, WhatCannotBeHeldIsRefused) {
  auto refused = [](const Value& v, ErrorKind kind) {
    try {
      package_bytes(v);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.message();
    }
  };
  refused(make_tensor_value(make_tensor({1}, DType::F32, Device{}, true)), ErrorKind::Value);
  refused(make_str("\xff"), ErrorKind::Value);
  refused(dict_of({{list_of({}), {}}}), ErrorKind::Value);
  auto self = std::make_shared<List>();
  self->items.push_back({self});
  refused({self}, ErrorKind::Value);
  self->items.clear();
  Value deep;
  for (int i = 0; i < kMaxDepth; ++i) deep = list_of({deep});
  EXPECT_NO_THROW(round_trip(deep));
  refused(list_of({deep}), ErrorKind::Value);
}

TEST(Package, DamagedTreesSayWhatIsWrong) {
  EXPECT_EQ(refusal(tree_file("null")), "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected a value"},
      {"nul", "expected 'null'"},
      {"1 2", "expected ','"},
      {"null,\"more\":1", "unknown part"},
      {"null,\"tree\":1", "unknown part"},
      {"[]", "too short"},
      {"[1]", "expected a string"},
      {"[\"x\",1]", "expected a string"},
      {"[\"x\",\"\"]", "unknown tag"},
      {"[\"l\"]", "too short"},
      {"[\"l\",[],1]", "too long"},
      {"[\"l\",{}]", "expected '['"},
      {"[\"z\",[1.5]]", "Size"},
      {"[\"r\",0]", "leads nowhere"},
      {"[\"r\",-1]", "0 or more"},
      {"[\"l\",[[\"r\",0]]]", "contains itself"},
      {"[\"d\",[[[\"l\",[]],1]]]", "no plain value"},
      {"[\"d\",[[1]]]", "too short"},
      {"[\"d\",[[1,2,3]]]", "too long"},
      {"[\"d\",{},{}]", "too long"},
      {"[\"e\",[{}]]", "no plain value"},
      {"{\"a\":1,\"a\":2}", "stands twice"},
      {"[\"i\",\"0\"]", "cut"},
      {"[\"i\",\"0g\"]", "hexadecimal"},
      {"[\"f\",\"00\"]", "8 bytes"},
      {"[\"c\",1,2]", "expected a float"},
      {"[\"dtype\",\"float99\"]", "unknown dtype"},
      {"[\"device\",\"nowhere\"]", "not here"},
      {"[\"layout\",\"sparse\"]", "unknown tag"},
      {"18446744073709551615", "64 bits"},
      {"[\"t\",{}]", "no dtype"},
      {"[\"t\",{\"in\":\"a\",\"dtype\":\"float32\",\"shape\":[1]}]", "not there"},
      {"[\"t\",{\"dtype\":\"float32\",\"shape\":[1],\"kind\":\"x\"}]", "unknown kind"},
      {"[\"t\",{\"dtype\":\"int64\",\"shape\":[1],\"grad\":true}]", "gradient"},
  };
  for (const auto& [tree, part] : cases) {
    SCOPED_TRACE(tree);
    expect_refused(tree_file(tree), part);
  }
  StringWriter w;
  SafeWriter({}, {{kPackageKey, "{\"version\":2,\"tree\":null}"}}).write(w);
  expect_refused(w.bytes, "version 2");
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "[\"l\",[";
  expect_refused(tree_file(deep), "nested deeper");
}

TEST(Package, TensorsMustFitTheirEntry) {
  auto file = [](const std::string& geometry) {
    StringWriter w;
    std::string tree = R"({"version":1,"tree":["t",{"in":"a","dtype":"float32",)" + geometry + "}]}";
    SafeWriter({{"a", floats({1, 2, 3, 4})}}, {{kPackageKey, tree}}).write(w);
    return w.bytes;
  };
  EXPECT_EQ(refusal(file(R"("shape":[2,2])")), "");
  EXPECT_EQ(refusal(file(R"("shape":[2],"stride":[3])")), "");
  EXPECT_EQ(refusal(file(R"("shape":[0],"offset":4)")), "");
  for (const char* g :
       {R"("shape":[5])", R"("shape":[-1])", R"("shape":[2],"stride":[4])", R"("shape":[1],"offset":4)",
        R"("shape":[1],"offset":-1)", R"("shape":[2],"stride":[-1],"offset":1)", R"("shape":[2],"stride":[1,1])",
        R"("shape":[0],"offset":5)", R"("shape":[4611686018427387904],"stride":[4])",
        R"("shape":[3037000500,3037000500],"stride":[0,0])", R"("shape":[0,4611686018427387904,4],"stride":[1,1,1])",
        R"("shape":[2],"stride":[9223372036854775807],"offset":1)"})
    EXPECT_NE(refusal(file(g)), "") << g;
}

TEST(Package, CutAtEveryByteAndFlipped) {
  std::string bytes = package_bytes(example());
  EXPECT_EQ(refusal(bytes), "");
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(refusal(bytes.substr(0, n)), "") << n;
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = bytes;
    for (uint32_t k = random() % 3 + 1; k--;) damaged[random() % damaged.size()] = char(random());
    refusal(damaged);
  }
}

// Changes of the tree's text that keep the header well-formed reach the reader of trees.
TEST(Package, RandomTreesLoadOrRaise) {
  std::string bytes = package_bytes(example());
  SafeHeader header = read_safetensors_header(*Source::memory(bytes, "file"));
  std::vector<std::pair<std::string, Tensor>> tensors;
  auto source = Source::memory(bytes, "file");
  for (const SafeEntry& e : header.entries) tensors.emplace_back(e.name, read_safetensor(*source, e));
  const std::string& tree = header.metadata.at(kPackageKey);
  const std::vector<std::string> words = {"[",
                                          "]",
                                          "{",
                                          "}",
                                          ",",
                                          ":",
                                          "\"l\"",
                                          "\"o\"",
                                          "\"t\"",
                                          "\"r\"",
                                          "0",
                                          "1",
                                          "-1",
                                          "null",
                                          "true",
                                          "\"in\":",
                                          "9999999999999999999",
                                          "1e308",
                                          "\"\"",
                                          "[\"r\",0]"};
  std::mt19937 random(2);
  int loaded = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = tree;
    for (uint32_t k = random() % 3 + 1; k--;) {
      size_t at = random() % text.size(), n = random() % 8;
      if (random() % 3 == 0) {
        text.insert(at, text.substr(random() % text.size(), random() % 40));
      } else {
        text.replace(at, n, words[random() % words.size()]);
      }
    }
    StringWriter w;
    SafeWriter(tensors, {{kPackageKey, text}}).write(w);
    loaded += refusal(w.bytes).empty();
  }
  EXPECT_GT(loaded, 10);
}

}  // namespace
}  // namespace strata::io
