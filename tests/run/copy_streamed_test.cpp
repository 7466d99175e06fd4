#include <gtest/gtest.h>

#include <vector>

#include "run/loop/contiguous.h"

namespace strata::eager {

// Of any length between any places, and nothing beside them.
TEST(CopyStreamed, CopiesBytesFromAnywhereToAnywhere) {
  std::vector<char> from(700), to(700);
  for (size_t i = 0; i < from.size(); ++i) from[i] = char(i * 7 + 1);
  for (int64_t bytes : {0, 1, 15, 63, 64, 65, 127, 200, 511})
    for (int64_t source : {0, 1, 16, 63})
      for (int64_t place : {0, 1, 8, 33, 64}) {
        std::fill(to.begin(), to.end(), 0);
        copy_streamed(to.data() + place, from.data() + source, bytes);
        for (int64_t i = 0; i < int64_t(to.size()); ++i) {
          const bool copied = i >= place && i < place + bytes;
          ASSERT_EQ(to[size_t(i)], copied ? from[size_t(source + i - place)] : 0) << bytes << ' ' << source << ' ' << i;
        }
      }
}

TEST(CopyStreamed, WhatIsReadNextStaysInTheCacheLonger) {
  EXPECT_GT(cached_bytes(false), 0);
  EXPECT_GE(cached_bytes(true), cached_bytes(false));
}

}  // namespace strata::eager
