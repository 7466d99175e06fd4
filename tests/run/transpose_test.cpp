// run/loop/transpose.h: every element moves to its mirrored place and nothing else is written.
#include "run/loop/transpose.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace strata::eager {

TEST(Transpose, AllWidthsAndSizes) {
  const std::vector<int64_t> sizes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 31, 32, 33};
  for (int64_t width : {1, 2, 4, 8, 16})
    for (int64_t rows : sizes)
      for (int64_t columns : sizes)
        for (int64_t gaps : {0, 1, 2, 3}) {  // bytes beyond each row of the source, of the result
          const int64_t from = columns * width + gaps % 2 * 5, to = rows * width + gaps / 2 * 5;
          std::vector<char> src(rows * from), dst(columns * to + 16, 'x'), want(dst);
          for (size_t i = 0; i < src.size(); ++i) src[i] = char(i * 131 + i / 251);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              std::memcpy(&want[c * to + r * width], &src[r * from + c * width], width);
          transpose(width, src.data(), from, dst.data(), to, rows, columns);
          EXPECT_EQ(dst, want) << width << " " << rows << " " << columns << " " << gaps;
          std::vector<char> near(columns * to + 16, 'x');
          transpose_near(width, src.data(), from, near.data(), to, rows, columns);
          EXPECT_EQ(near, want) << width << " " << rows << " " << columns << " " << gaps;
        }
}

// Strides of the cache's own size take other ways through the matrix.
TEST(Transpose, StridesThatMeetInTheCache) {
  for (int64_t width : {1, 2, 4, 8, 16})
    for (int64_t to : {512, 4096})
      for (int64_t from : {600, 1024}) {
        constexpr int64_t rows = 21, columns = 35;
        std::vector<char> src(rows * from), dst(columns * to, 'x'), want(dst), near(dst);
        for (size_t i = 0; i < src.size(); ++i) src[i] = char(i * 131 + i / 251);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            std::memcpy(&want[c * to + r * width], &src[r * from + c * width], width);
        transpose(width, src.data(), from, dst.data(), to, rows, columns);
        EXPECT_EQ(dst, want) << width << " " << from << " " << to;
        transpose_near(width, src.data(), from, near.data(), to, rows, columns);
        EXPECT_EQ(near, want) << width << " " << from << " " << to;
      }
}

}  // namespace strata::eager
