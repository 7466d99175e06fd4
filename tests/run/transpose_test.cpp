// run/loop/transpose.h: every element moves to its mirrored place and nothing else is written.
#include "run/loop/transpose.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace strata::eager {

TEST(Transpose, AllWidthsAndSizes) {
  constexpr int64_t kGap = 5;  // bytes beyond each row
  for (int64_t width : {1, 2, 4, 8, 16})
    for (int64_t rows : {0, 1, 3, 4, 7, 16, 33})
      for (int64_t columns : {0, 1, 2, 8, 15, 17, 32}) {
        const int64_t from = columns * width + kGap, to = rows * width + kGap;
        std::vector<char> src(rows * from + 1), dst(columns * to + 1, 'x'), want(dst);
        for (size_t i = 0; i < src.size(); ++i) src[i] = char(i * 131 + i / 251);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            std::memcpy(&want[c * to + r * width], &src[r * from + c * width], width);
        transpose(width, src.data(), from, dst.data(), to, rows, columns);
        EXPECT_EQ(dst, want) << width << " " << rows << " " << columns;
        std::vector<char> near(columns * to + 1, 'x');
        transpose_near(width, src.data(), from, near.data(), to, rows, columns);
        EXPECT_EQ(near, want) << width << " " << rows << " " << columns;
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
