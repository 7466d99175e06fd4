// core/: dtypes, conversions, promotion, devices, storage reuse, random streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/pool.h"
#include "core/generator.h"
#include "core/generator_scope.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "core/tensor.h"

namespace strata {

TEST(DType, HalfRoundTripsEveryValue) {
  for (uint32_t b = 0; b < 65536; ++b) {
    float f = to_float(Half{uint16_t(b)});
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(to_float(to_half(f))));
    } else {
      EXPECT_EQ(to_half(f).bits, b);
    }
    float g = to_float(BFloat16{uint16_t(b)});
    if (!std::isnan(g)) EXPECT_EQ(to_bfloat16(g).bits, b);
  }
}

TEST(DType, HalfRoundsToNearestEven) {
  EXPECT_EQ(to_half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0);
  EXPECT_EQ(to_half(0x1.8p-25f).bits, 1);
  EXPECT_EQ(to_half(1.0f + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(to_bfloat16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.0f + 0x1.8p-8f).bits, 0x3f81);
}

TEST(Promote, FollowsCategories) {
  EXPECT_EQ(promote_types(DType::U8, DType::I8), DType::I16);
  EXPECT_EQ(promote_types(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(promote_types(DType::F64, DType::C64), DType::C128);
  EXPECT_THROW(promote_types(DType::U16, DType::I32), Error);
  ResultType r;
  r.add(make_tensor({2}, DType::I32));
  r.add(Scalar(2.5));
  EXPECT_EQ(r.get(), DType::F32);
  ResultType s;
  s.add(make_tensor({2}, DType::BF16));
  s.add(make_tensor({}, DType::F64));
  EXPECT_EQ(s.get(), DType::BF16);
}

TEST(Device, NamesAreParsedAndInterned) {
  EXPECT_TRUE(parse_device("cpu").is_cpu());
  EXPECT_EQ(to_string(parse_device("cpu:0")), "cpu:0");
  EXPECT_THROW(parse_device("cpu:x"), Error);
  EXPECT_THROW(parse_device("nosuchdevice"), Error);
}

TEST(Allocator, LargeBlocksAreReused) {
#ifdef STRATA_SANITIZED
  GTEST_SKIP() << "sanitizer builds go to the heap each time";
#endif
  void* first;
  {
    Tensor t = make_tensor({int64_t(64) << 20}, DType::U8);
    first = t.data_ptr();
  }
  Tensor again = make_tensor({int64_t(64) << 20}, DType::U8);
  EXPECT_EQ(again.data_ptr(), first);
}

#ifndef STRATA_SANITIZED
size_t resident() {
  size_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * 4096;
}

// Blocks below 2 MiB share regions: each has bytes of its own, and what is idle goes back though another's stays.
TEST(Allocator, EmptyCacheGivesBackWhatIsIdle) {
  Allocator& a = cpu_allocator();
  cpu_empty_cache();
  const size_t before = resident();
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t i = 0; i < 300; ++i) {
    const size_t bytes = 5000 + 700 * i;
    auto* p = static_cast<unsigned char*>(a.allocate(bytes));
    EXPECT_EQ(uintptr_t(p) % 64, 0u);
    std::memset(p, int(i % 251), bytes);
    blocks.emplace_back(p, bytes);
  }
  auto holds = [&](size_t i) {
    const auto [p, bytes] = blocks[i];
    return std::all_of(p, p + bytes, [&](unsigned char c) { return c == i % 251; });
  };
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_TRUE(holds(i)) << i;
  EXPECT_GT(resident(), before + (size_t(25) << 20));
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i != 150) a.free(blocks[i].first, blocks[i].second);
  cpu_empty_cache();
  EXPECT_LT(resident(), before + (size_t(4) << 20));
  EXPECT_EQ(cpu_memory_stats().cached_bytes, 0u);
  EXPECT_TRUE(holds(150));
  a.free(blocks[150].first, blocks[150].second);
  cpu_empty_cache();
  EXPECT_LT(resident(), before + (size_t(2) << 20));
}
#endif

TEST(Allocator, ImpossibleSizesRaise) {
  EXPECT_THROW(make_tensor({int64_t(1) << 62}, DType::F64), Error);
  try {
    make_tensor({int64_t(1) << 50}, DType::U8);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
  }
}

TEST(Tensor, GeometryFlags) {
  Tensor t = make_tensor_strided({2, 3, 4, 5}, channels_last_strides({2, 3, 4, 5}), DType::F32);
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(t.is_non_overlapping_and_dense());
  Tensor many = make_tensor({1, 2, 1, 2, 1, 2, 1, 2, 1}, DType::F32);
  EXPECT_EQ(many.dim(), 9);
  EXPECT_EQ(many.numel(), 16);
}

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Generator, ATapeSaysWhatWasDrawn) {
  Generator a = Generator::make({}, 3), b = Generator::make({}, 4);
  DrawTape none;
  EXPECT_FALSE(none.drawn().any);
  a.reserve(9);
  DrawTape two;
  a.reserve(5);
  a.reserve(4);
  EXPECT_TRUE(two.drawn().any && !two.drawn().torn && !none.drawn().torn);
  EXPECT_EQ(two.drawn().begin.offset, 3u);
  EXPECT_EQ(none.drawn().begin.offset, 0u);
  DrawTape other;
  b.reserve(1);
  EXPECT_TRUE(!other.drawn().torn && two.drawn().torn) << "of another generator";
  {
    DrawTape meanwhile;
    a.reserve(1);
    a.set_state({3, 100});  // as when another thread draws
    a.reserve(1);
    EXPECT_TRUE(meanwhile.drawn().torn);
  }
}

TEST(Generator, PhiloxKnownAnswers) {
  uint32_t out[4];
  philox(0, 0, out);
  EXPECT_EQ(out[0], 0x6627e8d5u);
  EXPECT_EQ(out[1], 0xe169c58du);
  EXPECT_EQ(out[2], 0xbc57ac4cu);
  EXPECT_EQ(out[3], 0x9b00dbd8u);
}

TEST(Generator, WordsDoNotDependOnTheCut) {
  PhiloxState s{1234, 7};
  uint32_t whole[23], part[23];
  philox_words(s, 0, 23, whole);
  philox_words(s, 0, 5, part);
  philox_words(s, 5, 18, part + 5);
  EXPECT_EQ(std::memcmp(whole, part, sizeof whole), 0);
}

TEST(Parallel, RangesCoverAndErrorsArrive) {
  int threads = num_threads();
  set_num_threads(2);
  std::vector<int> seen(1000, 0);
  parallel_for(0, 1000, 7, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) ++seen[i];
  });
  for (int n : seen) EXPECT_EQ(n, 1);
  EXPECT_THROW(parallel_for(0, 100, 1, [](int64_t, int64_t) { throw_error(ErrorKind::Value, "from a thread"); }),
               Error);
  EXPECT_THROW(set_num_threads(0), Error);
  set_num_threads(threads);
}

}  // namespace strata
