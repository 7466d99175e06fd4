// How the CPU divides a launch of a space kernel: among threads, and into blocks.
#include <algorithm>
#include <atomic>
#include <bit>
#include <tuple>
#include <utility>

#include "core/parallel.h"
#include "run/space_launch.h"

namespace strata::eager {
namespace {

constexpr int64_t kGrain = 16384;    // elements that are worth a thread
constexpr int64_t kBlock = 1 << 22;  // elements between two looks for an interrupt
constexpr int64_t kLine = 64;        // bytes that come from memory together
constexpr int64_t kFetched = 8192;   // bytes that are fetched at a time
constexpr int64_t kTurns = 2048;     // indices that a thread looks through at a time
constexpr int kMostOwners = 64;

// Reads a byte of each line, one after the other: the way in which memory is fast.
void fetch(const char* from, int64_t bytes) {
  for (int64_t k = 0; k < bytes; k += kLine) (void)*static_cast<const volatile char*>(from + k);
}

}  // namespace

struct SpaceLaunch::Call {
  Call(const SpaceLaunch& of, const Loops& loops, const void* scalars)
      : of(of), args{memory, offset, of.extent_, loops.stride, scalars, begin, end, &status} {
    for (int k = 0; k < of.form_.operands; ++k) memory[k] = of.operand_[k].memory;
    for (int l = 0; l < loops.count; ++l) std::tie(begin[l], end[l]) = of.turns(loops.range[l]);
  }
  // To a turn of the plain dims that are no range of the kernel.
  void walk(int64_t turn) {
    for (int k = 0; k < of.form_.operands; ++k) offset[k] = of.operand_[k].offset;
    for (int d = std::max(of.outer(), 0); d-- > 0; turn /= of.plain_size_[d])
      for (int k = 0; k < of.form_.operands; ++k)
        offset[k] += turn % of.plain_size_[d] * of.operand_[k].plain[d] * of.operand_[k].width;
  }
  void run(int loop, int64_t from, int64_t to) {
    if (loop >= 0) begin[loop] = from, end[loop] = to;
    of.form_.fn(&args);
  }

  const SpaceLaunch& of;
  void* memory[kMaxOperands];
  int64_t offset[kMaxOperands], begin[kMaxRanges], end[kMaxRanges];
  int32_t status = 0;
  StrataNestArgs args;
};

std::pair<int64_t, int64_t> SpaceLaunch::turns(int range) const {
  const bool limited = turns_to_ >= 0 && range == form_.operand[index_].range[0];
  return limited ? std::pair{turns_from_, turns_to_} : std::pair{int64_t(0), extent_[range]};
}

// The one range along which a tensor names places; -1 where there is none, or are several.
int SpaceLaunch::named_range() const {
  int named = -1;
  for (int r = 0; r < form_.ranges; ++r)
    if (form_.range[r].named && std::exchange(named, r) >= 0) return -1;
  return named;
}

void SpaceLaunch::plan(Loops& loops, int threads) {
  lay_out(loops.stride);
  // A loop that threads share evenly, or nearly so. The outermost one leaves each of them operands of its own.
  const auto shared = [&](int r) { return extent_[r] >= 16 || (extent_[r] > 1 && extent_[r] % threads == 0); };
  for (int r = 0; r < form_.ranges; ++r) {
    if (!form_.range[r].runs) continue;
    const auto [from, to] = turns(r);
    loops.volume *= to - from;
    const bool ordered = form_.range[r].runs >= 2;
    int& split = loops.split;
    if (!ordered && (split < 0 || (!shared(loops.range[split]) && extent_[r] > extent_[loops.range[split]])))
      split = loops.count;
    loops.range[loops.count++] = r;
  }
  for (int d = 0; d < outer(); ++d) loops.times *= plain_size_[d];
}

// The first input that is read at places which a tensor names, along rows of its own for each turn of the loop that
// is divided, where rows are short and most of their lines will be read.
SpaceLaunch::Row SpaceLaunch::row_to_fetch(const Loops& loops) const {
  const int64_t turns = loops.split < 0 ? 1 : extent_[loops.range[loops.split]];
  for (int k = outputs(); loops.split >= 0 && k < form_.operands; ++k) {
    const StrataSpaceOperand& o = form_.operand[k];
    if (o.dims != 2 || o.range[0] != loops.range[loops.split] || !form_.range[o.range[1]].named) continue;
    const int64_t *stride = loops.stride, width = operand_[k].width, bytes = extent_[o.range[1]] * width;
    for (int j = 0; j < k; ++j) stride += form_.operand[j].dims;
    if (stride[1] != 1 || bytes == 0 || bytes > 2 * kFetched || loops.volume / turns * kLine < bytes) continue;
    return {k, bytes, stride[0] * width, std::max<int64_t>(1, kFetched / std::max(bytes, kLine))};
  }
  return {};
}

bool SpaceLaunch::is_inside(const Loops& loops, int loop) const {
  const StrataSpaceRange& range = form_.range[loops.range[loop]];
  return range.kind == STRATA_DIM_PLAIN && range.component == 1;
}

// Lines stay whole where all threads have such of their own: another loop is divided then.
void SpaceLaunch::keep_lines(Loops& loops, int threads) const {
  if (loops.split < 0 || !is_inside(loops, loops.split)) return;
  for (int l = 0; l < loops.count; ++l) {
    const int64_t units = extent_[loops.range[l]] * loops.times;
    if (form_.range[loops.range[l]].runs == 1 && !is_inside(loops, l) &&
        (units % threads == 0 || units >= 4 * threads)) {
      loops.split = l;
      return;
    }
  }
}

// The outermost loop of a scatter whose order matters: a thread runs it in blocks, between which it can be interrupted.
// -1 where there is no such loop, or nothing to divide.
int SpaceLaunch::ordered_loop(const Loops& loops) const {
  for (int l = 0; l < loops.count && scatters_ && loops.split >= 0; ++l)
    if (form_.range[loops.range[l]].runs == 2 && extent_[loops.range[l]] > 1) return l;
  return -1;
}

int32_t SpaceLaunch::run(const void* scalars) {
  const int threads = in_parallel_region() ? 1 : num_threads();
  Loops loops;
  plan(loops, threads);
  if (loops.volume == 0 || loops.times == 0) return 0;
  int64_t first[kMostOwners + 1];
  if (own_places(loops, first, threads)) return run_by_place(scalars, loops, first, threads);
  keep_lines(loops, threads);
  // A scatter without a plain dim is one thread's, in blocks, so that it can be interrupted.
  const bool serial = loops.split < 0 && scatters_ && loops.count > 0;
  if (serial) loops.split = 0;
  const int64_t units = loops.split < 0 ? 1 : extent_[loops.range[loops.split]];
  const int ordered = serial ? -1 : ordered_loop(loops);
  const Row row = ordered >= 0 ? Row{} : row_to_fetch(loops);
  std::atomic<int32_t> status{0};
  // Elements that a unit reads, those of its reductions counted.
  const double work = std::max(1.0, double(loops.volume) / double(units) * reads_);
  auto part = [&](int64_t from, int64_t to) {
    Call call(*this, loops, scalars);
    while (from < to) {
      const int64_t low = from % units, high = std::min(units, low + to - from);
      call.walk(from / units);
      if (ordered >= 0) {
        const double each = double(loops.volume) / double(units * extent_[loops.range[ordered]]) * double(high - low);
        const int64_t block = std::max<int64_t>(1, int64_t(double(kBlock) / each));
        for (int64_t i = call.begin[ordered], past = call.end[ordered]; i < past; i += block) {
          call.begin[ordered] = i, call.end[ordered] = std::min(past, i + block);
          call.run(loops.split, low, high);
          check_interrupt();
        }
        std::tie(call.begin[ordered], call.end[ordered]) = turns(loops.range[ordered]);
      } else if (row.operand < 0) {
        call.run(loops.split, low, high);
      }
      for (int64_t at = low; row.operand >= 0 && at < high; at += row.block) {
        const int64_t past = std::min(high, at + row.block);
        const char* rows = operand_[row.operand].memory + call.offset[row.operand];
        for (int64_t r = at; r < past; ++r) fetch(rows + r * row.step, row.bytes);
        call.run(loops.split, at, past);
      }
      from += high - low;
    }
    if (call.status) status.fetch_or(call.status, std::memory_order_relaxed);
  };
  if (!serial) {
    int64_t grain = std::max<int64_t>(1, int64_t(double(form_.operands == 2 ? 2 * kGrain : kGrain) / work));
    // Memory brings lines, which are wide: of a scatter's a thread takes its columns together.
    if (loops.split >= 0 && is_inside(loops, loops.split))
      grain = std::max(grain, ordered >= 0 ? (units + threads - 1) / threads : kLine / operand_[0].width);
    parallel_for(0, loops.times * units, grain, part);
  } else {
    const int64_t block = std::max<int64_t>(1, int64_t(double(kBlock) / work));
    for (int64_t from = 0; from < loops.times * units; from += block) {
      check_interrupt();
      part(from, std::min(from + block, loops.times * units));
    }
  }
  return status.load();
}

// Whether a scatter of lines, to places that a one-dimensional index names, is divided by these places: then each
// thread adds whole lines, which memory brings and caches keep better than parts of all lines. Of thread t are the
// places from first[t] to first[t + 1].
bool SpaceLaunch::own_places(const Loops& loops, int64_t* first, int threads) const {
  if (!scatters_ || index_ < 0 || threads < 2 || threads > kMostOwners || loops.split < 0) return false;
  const StrataSpaceOperand& index = form_.operand[index_];
  if (index.dims != 1 || operand_[index_].width != sizeof(int64_t) || !is_inside(loops, loops.split)) return false;
  for (int r = 0; r < form_.ranges; ++r)
    if (form_.range[r].runs >= 2 && r != index.range[0]) return false;
  const int named = named_range();
  const int64_t line = extent_[loops.range[loops.split]] * operand_[0].width;
  if (named < 0 || line < kLine || line > 4 * kFetched || loops.volume * loops.times < 2 * kGrain) return false;
  const auto [from, to] = this->turns(index.range[0]);
  const int64_t turns = to - from, places = extent_[named], step = operand_[index_].stride[0];
  const auto* value = reinterpret_cast<const int64_t*>(operand_[index_].memory + operand_[index_].offset);
  uint32_t count[256] = {};
  if (places < threads || turns > UINT32_MAX) return false;
  const int shift = std::max(0, int(std::bit_width(uint64_t(places - 1))) - 8);
  for (int64_t i = from; i < to; ++i) {
    const auto at = uint64_t(value[i * step]);
    if (at >= uint64_t(places)) return false;  // negative, or an error
    ++count[at >> shift];
  }
  int64_t seen = 0, taken = 0;
  int t = 0;
  first[0] = 0;
  for (int64_t b = 0; b < 256 && t < threads - 1; ++b) {
    seen += count[b];
    if (seen * threads < turns * (t + 1)) continue;
    if ((seen - taken) * threads > turns + turns / 4) return false;  // the division would not be even
    taken = seen;
    first[++t] = (b + 1) << shift;
  }
  first[threads] = places;
  return t == threads - 1 && (turns - taken) * threads <= turns + turns / 4;
}

// Each thread goes through all turns, and sees an index outside of everything in place of those that are not its own.
int32_t SpaceLaunch::run_by_place(const void* scalars, Loops& loops, const int64_t* first, int threads) {
  constexpr int64_t kNobody = INT64_MIN / 4;  // negative when a size is added, too
  const int range = form_.operand[index_].range[0];
  const int loop = int(std::find(loops.range, loops.range + loops.count, range) - loops.range);
  const auto [start, stop] = turns(range);
  const int64_t step = operand_[index_].stride[0];
  const auto* value = reinterpret_cast<const int64_t*>(operand_[index_].memory + operand_[index_].offset);
  int64_t* stride = loops.stride;
  for (int k = 0; k < index_; ++k) stride += form_.operand[k].dims;
  *stride = 1;
  std::atomic<int32_t> status{0};
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    Call call(*this, loops, scalars);
    int64_t mine[kTurns];
    call.memory[index_] = mine;
    for (int64_t t = begin; t < end; ++t)
      for (int64_t turn = 0; turn < loops.times; ++turn) {
        call.walk(turn);
        for (int64_t from = start; from < stop; from += kTurns) {
          const int64_t to = std::min(stop, from + kTurns);
          for (int64_t i = from; i < to; ++i) {
            const int64_t at = value[i * step];
            mine[i - from] = at >= first[t] && at < first[t + 1] ? at : kNobody;
          }
          call.offset[index_] = -from * int64_t(sizeof(int64_t));
          call.run(loop, from, to);
          check_interrupt();
        }
      }
    constexpr int32_t kOutside = 2;  // of the others' indices
    if (call.status & ~kOutside) status.fetch_or(call.status & ~kOutside, std::memory_order_relaxed);
  });
  return status.load();
}

}  // namespace strata::eager
