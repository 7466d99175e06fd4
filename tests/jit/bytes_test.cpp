// Numbers and texts as bytes: what was written is read back, and bytes that were cut are told.
#include "jit/compile/bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace strata::jit::test {
namespace {

TEST(Bytes, AreReadBackAsWritten) {
  std::vector<int64_t> numbers = {0, 1, -1, 63, 64, -64, -65, 8191, 8192, INT64_MAX, INT64_MIN};
  for (int bit = 0; bit < 63; ++bit) numbers.insert(numbers.end(), {int64_t(1) << bit, -(int64_t(1) << bit)});
  const std::vector<double> reals = {0.0, -0.0, 0.1, -1e308, std::numeric_limits<double>::infinity(), NAN};
  const std::vector<std::string> texts = {"", "a", std::string("\0b", 2), std::string(300, 'x')};
  ByteWriter writer;
  for (int64_t n : numbers) writer.number(n);
  for (double r : reals) writer.real(r);
  for (const std::string& t : texts) writer.text(t);
  const std::string bytes = writer.take();
  auto read = [&](std::string_view from, bool whole) {
    ByteReader reader(from);
    for (int64_t n : numbers) EXPECT_TRUE(reader.number() == n || !whole);
    for (double r : reals) {
      const double got = reader.real();
      EXPECT_TRUE(!whole || (got == r && std::signbit(got) == std::signbit(r)) || (got != got && r != r));
    }
    for (const std::string& t : texts) EXPECT_TRUE(reader.text() == t || !whole);
    return reader.good() && reader.at_end();
  };
  EXPECT_TRUE(read(bytes, true));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read(std::string_view(bytes).substr(0, length), false)) << length;
}

TEST(Bytes, CountsAreBelievedWithinWhatIsLeft) {
  ByteWriter writer;
  writer.number(1 << 30);
  writer.number(2);
  const std::string bytes = writer.take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.count(), 0u);
  EXPECT_FALSE(reader.good());
  const std::string endless(20, '\xff');
  ByteReader over(endless);
  EXPECT_EQ(over.number(), 0);
  EXPECT_FALSE(over.good());
}

}  // namespace
}  // namespace strata::jit::test
