#include "run/loop/contiguous.h"

#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "core/parallel.h"
#include "run/loop/blocks.h"

namespace strata::eager {

namespace {

// The last elements, fewer than a block, through buffers.
[[gnu::noinline]] void run_rest(StrataPointwiseFn fn, char* const* ptr, const int64_t* size, const int64_t* step,
                                int outputs, int count, const void* params, int64_t blocks, int64_t rest,
                                int32_t* status) {
  alignas(64) char buffer[kMaxOperands][kBlock * 16];
  char* at[kMaxOperands];
  // Operands of one width follow one another: it is asked for once.
  const auto each = [&](int i, int end, auto&& f) {
    while (i < end)
      by_width(size[i], [&](auto w) {
        do f(w, i);
        while (++i < end && size[i] == sizeof(w));
      });
  };
  for (int i = 0; i < outputs; ++i) at[i] = buffer[i];
  each(outputs, count, [&](auto w, int i) {
    at[i] = step[i] == 0 ? ptr[i] : buffer[i];
    if (step[i] != 0) fill_block<decltype(w)>(ptr[i] + blocks * step[i], rest, buffer[i]);
  });
  fn(at, step, params, 1, 0, status);
  each(0, outputs, [&](auto w, int i) {
    char* to = ptr[i] + blocks * step[i];
#ifdef __clang__
#pragma clang loop vectorize(disable) unroll(disable)
#endif
    for (int64_t l = 0; l < rest; ++l) std::memcpy(to + l * sizeof(w), buffer[i] + l * sizeof(w), sizeof(w));
  });
}

// What is written where it was read lies in the cache already: streaming it takes half as long again.
[[gnu::noinline]] bool can_stream(char* const* ptr, int outputs, int count) {
  return std::all_of(ptr, ptr + outputs, [&](char* p) {
    return reinterpret_cast<uintptr_t>(p) % 64 == 0 && std::find(ptr + outputs, ptr + count, p) == ptr + count;
  });
}

}  // namespace

// A virtual machine of few processors names all that its server
// has, of which it gets more or less: what is read next is worth trusting it for three times what is a processor's
// share (64 MB on two of a server with 480: sums of what was streamed take 1.3 times as long, what reads and writes
// once 0.7).
int64_t cached_bytes(bool read_next) {
  constexpr int64_t kShare = int64_t{16} << 20, kUnknown = int64_t{32} << 20;
  static const int64_t l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), processors = sysconf(_SC_NPROCESSORS_ONLN);
  return l3 > 0 ? std::min(l3, std::max<int64_t>(processors, 1) * kShare * (read_next ? 3 : 1)) : kUnknown;
}

void copy_streamed(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kLine = 64, kAhead = 4096;
  const int64_t lead = std::min(bytes, -int64_t(reinterpret_cast<uintptr_t>(to)) & (kLine - 1));
  std::memcpy(to, from, size_t(lead));
  int64_t at = lead;
  for (; at + kLine <= bytes; at += kLine) {
    __builtin_prefetch(from + at + kAhead);
    for (int64_t i = at; i < at + kLine; i += 16)
      _mm_stream_ps(reinterpret_cast<float*>(to + i), _mm_loadu_ps(reinterpret_cast<const float*>(from + i)));
  }
  _mm_sfence();
  std::memcpy(to + at, from + at, size_t(bytes - at));
}

void run_span(StrataPointwiseFn fn, char* const* ptr, const int64_t* size, const int64_t* step, int outputs, int count,
              const void* params, int64_t n, int64_t flags, bool again, int32_t* status) {
  const int64_t blocks = n / kBlock, rest = n % kBlock;
  if (blocks) fn(ptr, step, params, blocks, flags, status);
  if (!rest) return;
  if (!again || !blocks) return run_rest(fn, ptr, size, step, outputs, count, params, blocks, rest, status);
  char* at[kMaxOperands];
  for (int i = 0; i < count; ++i) at[i] = ptr[i] + (step[i] ? (n - kBlock) * size[i] : 0);
  fn(at, step, params, 1, 0, status);
}

int32_t run_contiguous(StrataPointwiseFn fn, char* const* ptr, const int64_t* size, int outputs, int inputs,
                       const void* params, int64_t n, bool read_next) {
  int count = outputs + inputs;
  int64_t step[kMaxOperands];
  for (int i = 0; i < count; ++i) step[i] = size[i] * kBlock;
  std::atomic<int32_t> status{0};
  const bool large = n > kPointwiseGrain && n * size[0] > cached_bytes(read_next);
  const int64_t flags = STRATA_UNLIKELY(large) ? can_stream(ptr, outputs, count) : 0;
  bool again = n % kBlock != 0 && n > kBlock;
  if (again) {
    const char* end[kMaxOperands];
    for (int i = 0; i < count; ++i) end[i] = ptr[i] + n * size[i];
    again = apart(ptr, end, outputs, count);
  }
  if (n <= kPointwiseGrain) {
    int32_t s = 0;
    run_span(fn, ptr, size, step, outputs, count, params, n, flags, again, &s);
    return s;
  }
  parallel_for(0, n, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    char* at[kMaxOperands];
    for (int i = 0; i < count; ++i) at[i] = ptr[i] + begin * size[i];
    int32_t s = 0;
    run_span(fn, at, size, step, outputs, count, params, end - begin, flags, again, &s);
    if (s) status.fetch_or(s);
  });
  return status;
}

}  // namespace strata::eager
