// io/safetensors, io/json: files as the format has them, and files that are not.
#include "io_files.h"

#include "io/json.h"

namespace strata::io {
namespace {

Tensor counting(IntArrayRef sizes, DType dtype) {
  Tensor t = make_tensor(sizes, dtype);
  auto* p = static_cast<uint8_t*>(t.data_ptr());
  for (int64_t i = 0; i < t.nbytes(); ++i) p[i] = dtype == DType::Bool ? i % 2 : uint8_t(i + 1);
  return t;
}

std::string safe_bytes(const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {}) {
  StringWriter w;
  SafeWriter(tensors, metadata).write(w);
  return w.bytes;
}

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string s;
  append<uint64_t>(s, header.size());
  return s + header + data;
}
// One entry "a" with this dtype, shape and offsets.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(Safetensors, EveryDtypeComesBack) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int i = 0; i < kDTypeCount; ++i)
    if (DType(i) != DType::C128) tensors.emplace_back(str_cat("t", i), counting({2, 3}, DType(i)));
  tensors.emplace_back("scalar", counting({}, DType::F32));
  tensors.emplace_back("empty", counting({2, 0, 3}, DType::I64));
  std::string bytes = safe_bytes(tensors, {{"who", "me \"\\\n\x01 \xc3\xa4"}});
  auto source = Source::memory(bytes, "file");
  SafeHeader header = read_safetensors_header(*source);
  EXPECT_EQ(header.metadata.at("who"), "me \"\\\n\x01 \xc3\xa4");
  ASSERT_EQ(header.entries.size(), tensors.size());
  for (const SafeEntry& e : header.entries) {
    auto was = std::find_if(tensors.begin(), tensors.end(), [&](auto& t) { return t.first == e.name; });
    ASSERT_NE(was, tensors.end());
    Tensor t = read_safetensor(*source, e);
    EXPECT_EQ(t.dtype(), was->second.dtype());
    EXPECT_EQ(t.sizes(), was->second.sizes());
    if (t.numel() == 0) continue;
    EXPECT_EQ(std::memcmp(t.data_ptr(), was->second.data_ptr(), size_t(t.nbytes())), 0);
  }
}

// The reference library's bytes for the same content.
TEST(Safetensors, BytesAreThoseOfTheReference) {
  Tensor f = make_tensor({2}, DType::F32), i = make_tensor({1}, DType::I64), b = make_tensor({3}, DType::Bool);
  f.data<float>()[0] = 1, f.data<float>()[1] = -2;
  i.data<int64_t>()[0] = 7;
  for (int k = 0; k < 3; ++k) b.data<bool>()[k] = k != 1;
  std::string bytes = safe_bytes({{"b", b}, {"f", f}, {"i", i}}, {{"format", "pt"}});
  std::string header =
      R"({"__metadata__":{"format":"pt"},"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("f":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[16,19]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(bytes, file_of(header, std::string("\7\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xc0\1\0\1", 19)));
}

TEST(Safetensors, StridedTensorsAreWrittenInOrder) {
  Tensor t = counting({2, 3}, DType::U8), turned = t.alias({3, 2}, {1, 3}, 0);
  std::string bytes = safe_bytes({{"t", turned}});
  EXPECT_EQ(bytes.substr(bytes.size() - 6), std::string("\1\4\2\5\3\6"));
}

TEST(Safetensors, SharedMemoryAndOddNamesAreRefused) {
  Tensor t = counting({4}, DType::F32), half = t.alias({2}, {1}, 2), first = t.alias({2}, {1}, 0);
  EXPECT_THROW(check_separate({{"a", t}, {"b", half}}), Error);
  EXPECT_NO_THROW(check_separate({{"a", first}, {"b", half}}));
  EXPECT_THROW(SafeWriter({{"a", t}, {"a", half}}, {}), Error);
  EXPECT_THROW(SafeWriter({{"__metadata__", t}}, {}), Error);
  EXPECT_THROW(SafeWriter({{"a\xff", t}}, {}), Error);
  EXPECT_THROW(SafeWriter({{"c", counting({1}, DType::C128)}}, {}), Error);
  EXPECT_THROW(SafeWriter({{"m", make_tensor({1}, DType::F32, Device{}, true)}}, {}), Error);
}

TEST(Safetensors, DamagedFilesSayWhatIsWrong) {
  std::string four(4, 'x'), good = entry("F32", "[1]", "[0,4]");
  EXPECT_EQ(refusal(file_of(good, four)), "");
  EXPECT_EQ(refusal(file_of(good + "  \n\t", four)), "");
  EXPECT_EQ(refusal(file_of("{}")), "");
  const struct {
    std::string header, data, part;
  } cases[] = {
      {"", "", "neither"},
      {"[1]", "", "neither"},
      {" " + good, four, "neither"},
      {"{", "", "ends too early"},
      {good + "x", four, "follows its end"},
      {good + "{}", four, "follows its end"},
      {good.substr(0, good.size() - 1), four, "ends too early"},
      {good, "", "do not fit"},
      {good, "xxx", "do not fit"},
      {good, "xxxxx", "1 bytes follow"},
      {entry("F99", "[1]", "[0,4]"), four, "dtype F99"},
      {entry("f32", "[1]", "[0,4]"), four, "dtype f32"},
      {entry("F32", "[2]", "[0,4]"), four, "do not fit"},
      {entry("F32", "[-1]", "[0,4]"), four, "0 or more"},
      {entry("F32", "[1.0]", "[0,4]"), four, "0 or more"},
      {entry("F32", "[1e0]", "[0,4]"), four, "0 or more"},
      {entry("F32", "[01]", "[0,4]"), four, "begins with 0"},
      {entry("F32", "[\"1\"]", "[0,4]"), four, "whole number"},
      {entry("F32", "1", "[0,4]"), four, "expected '['"},
      {entry("F32", "[1,]", "[0,4]"), four, "expected a value"},
      {entry("F32", "[9223372036854775808]", "[0,4]"), four, "impossible"},
      {entry("F32", "[99999999999999999999]", "[0,4]"), four, "whole number"},
      {entry("F32", "[4294967296,4294967296,4294967296]", "[0,4]"), four, "do not fit"},
      {entry("F32", "[4611686018427387904]", "[0,0]"), "", "do not fit"},
      {entry("F32", "[0,4611686018427387904,4]", "[0,0]"), "", "64 bits"},
      {entry("F32", "[1]", "[4,0]"), four, "do not fit"},
      {entry("F32", "[1]", "[4,8]"), four + four, "hole"},
      {entry("F32", "[1]", "[0,4,4]"), four, "two numbers"},
      {entry("F32", "[1]", "[4]"), four, "two numbers"},
      {entry("F32", "[1]", "[]"), four, "two numbers"},
      {entry("F32", "[1]", "[18446744073709551612,18446744073709551615]"), four, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", four, "needs dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", four, "none of"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four, "twice"},
      {R"({"a":1})", four, "expected '{'"},
      {R"({"a":null})", four, "expected '{'"},
      {R"({"__metadata__":1})", "", "expected '{'"},
      {R"({"__metadata__":{"a":1}})", "", "strings only"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "", "stands twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "stands twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       "xx", "stands twice"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "xxx", "overlap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       "xxx", "hole"},
      {R"({"\ud800":1})", "", "surrogate"},
      {R"({"\udc00":1})", "", "surrogate"},
      {R"({"\u12g4":1})", "", "hexadecimal"},
      {R"({"\x":1})", "", "escape"},
      {"{\"a\nb\":1}", "", "control character"},
      {"{\"a\xff\":1}", "", "UTF-8"},
      {"{\"\xc0\xaf\":1}", "", "UTF-8"},
      {"{\"\xed\xa0\x80\":1}", "", "UTF-8"},
      {"{\"\xf4\x90\x80\x80\":1}", "", "UTF-8"},
      {"{\"\xe2\x82\":1}", "", "UTF-8"},
      {R"({"a":{"dtype":"F32","shape":[[[[[[[[[1]]]]]]]]],"data_offsets":[0,4]}})", four, "whole number"},
      {R"({'a':1})", "", "expected a string"},
      {R"({"a" 1})", "", "expected ':'"},
      {R"({"a":1,})", "", "expected '{'"},
      {"{,}", "", "expected a string"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.header);
    expect_refused(file_of(c.header, c.data), c.part);
  }
  std::string dims = "[1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  expect_refused(file_of(entry("F32", dims + "]", "[0,4]"), four), "impossible");
}

TEST(Safetensors, HeaderLengthsAreChecked) {
  auto with_length = [](uint64_t n) {
    std::string s;
    append(s, n);
    return s + "{}";
  };
  EXPECT_EQ(refusal(with_length(2)), "");
  for (uint64_t n : {uint64_t(0), uint64_t(1), uint64_t(3), kMaxSafeHeader, kMaxSafeHeader + 1, uint64_t(1) << 32,
                     uint64_t(1) << 63, UINT64_MAX, UINT64_MAX - 7})
    EXPECT_NE(refusal(with_length(n)), "") << n;
  auto direct = [](const std::string& bytes) {
    EXPECT_THROW(read_safetensors_header(*Source::memory(bytes, "file")), Error);
  };
  for (size_t n = 0; n < 9; ++n) direct(std::string(n, '\0'));
  direct(with_length(0));
  direct(with_length(kMaxSafeHeader + 1));
}

TEST(Safetensors, CutAtEveryByte) {
  std::string bytes =
      safe_bytes({{"weight", counting({3, 2}, DType::F32)}, {"flag", counting({3}, DType::Bool)}}, {{"k", "v"}});
  EXPECT_EQ(refusal(bytes), "");
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(refusal(bytes.substr(0, n)), "") << n;
  EXPECT_NE(refusal(bytes + "x"), "");
}

TEST(Safetensors, EveryFlippedBitLoadsOrRaises) {
  std::string bytes =
      safe_bytes({{"weight", counting({3, 2}, DType::F32)}, {"flag", counting({3}, DType::Bool)}}, {{"k", "v"}});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= char(1 << bit % 8);
    refusal(damaged);
  }
}

TEST(Json, NumbersAndText) {
  auto reader = [](std::string_view text) {
    return JsonReader(text, 8, [](const std::string& what) { throw_error(ErrorKind::Runtime, what); });
  };
  for (double d : {0.0, -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, 123456789012345680.0, -1e-7}) {
    std::string s;
    write_json_real(s, d);
    JsonReader::Number n = reader(s).number();
    EXPECT_FALSE(n.whole) << s;
    EXPECT_EQ(std::memcmp(&n.real, &d, 8), 0) << s;
  }
  EXPECT_EQ(reader("-9223372036854775808").signed_int(), INT64_MIN);
  EXPECT_EQ(reader("18446744073709551615").unsigned_int(), UINT64_MAX);
  EXPECT_THROW(reader("18446744073709551616").unsigned_int(), Error);
  EXPECT_THROW(reader("9223372036854775808").signed_int(), Error);
  EXPECT_THROW(reader("1e999").number(), Error);
  EXPECT_EQ(reader("1e-999").number().real, 0.0);
  for (const char* bad : {"", "-", ".5", "1.", "1e", "+1", "0x1", "nan", "Infinity"})
    EXPECT_THROW(
        {
          auto r = reader(bad);
          r.number();
          r.end();
        },
        Error)
        << bad;
  EXPECT_EQ(reader(R"("\u00e4\ud834\udd1e\/\u0000")").string(), std::string("\xc3\xa4\xf0\x9d\x84\x9e/\0", 8));
  for (uint32_t c = 0; c < 128; ++c) {
    std::string text(1, char(c)), json;
    write_json_string(json, text);
    EXPECT_EQ(reader(json).string(), text);
  }
  JsonReader deep = reader("[[[[[[[[[");
  for (int i = 0; i < 8; ++i) deep.begin_array();
  EXPECT_THROW(deep.begin_array(), Error);
}

}  // namespace
}  // namespace strata::io
