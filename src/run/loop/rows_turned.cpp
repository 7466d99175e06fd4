#include "run/loop/rows_turned.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/parallel.h"
#include "run/loop/cast.h"
#include "run/loop/rows_join.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kLanes = 16, kChunk = 1024, kChunks = kPart / kChunk, kGroups = kChunk / kLanes;
constexpr int64_t kNearBytes = 32 << 10;  // elements at hand, which stay in the first-level cache,
constexpr int64_t kFarBytes = 512 << 10;  // or in the second
constexpr int64_t kMostBytes = 4 << 20;
constexpr int64_t kLineBytes = 64, kPageBytes = 4096;
constexpr int64_t kWidest = 16;
constexpr int64_t kTilesAtOnce = 64;  // parts, whose accumulators stay in the second-level cache

}  // namespace

// What a group of parts has for itself.
struct TurnedRow::Room {
  char* read;          // elements as they are,
  char* elements;      // as the kernel takes them: chunk after chunk, of each the positions at hand
  char* made;          // what became of those in one part
  char* accumulators;  // [groups of 16 positions][parts][16]
};

size_t turned_dim(const RowsLoop& loop, const RowOperand& o) {
  for (size_t d = loop.reduced_sizes.size() - 1; d-- > 0;)
    if (o.reduced[d] == itemsize(o.kernel)) return d + 1;
  return 0;
}

void turn_blocks(const RowsLoop& loop, const RowOperand& o, const char* p, size_t inside, int64_t block, char* buffer,
                 int64_t many) {
  const DimVec& sizes = loop.reduced_sizes;
  const int64_t width = itemsize(o.kernel), run = sizes.back();
  for (int64_t i = 0; i < block; i += run) {
    const char* from = p;
    int64_t rest = i / run;
    for (size_t d = sizes.size() - 1; d-- > inside; rest /= sizes[d]) from += rest % sizes[d] * o.reduced[d];
    transpose(width, from, o.reduced.back(), buffer + i * width, block * width, run, many);
  }
}

TurnedRow::TurnedRow(const RowsLoop& loop, char* const* operands) : l_(loop) {
  if (!fit(operands) || !choose()) parts_ = 0;
}

bool TurnedRow::fit(char* const* operands) {
  const StrataKernelEntry& e = *l_.entry;
  const size_t dims = l_.reduced_sizes.size();
  if (dims < 2 || !e.pass[0].columns || e.pass[0].reductions != 1 || e.reduction[0].combine > STRATA_COMBINE_MUL)
    return false;
  for (size_t i = e.outputs; i < l_.operands.size(); ++i) {
    if (l_.operands[i].per_row) continue;
    if (input_) return false;
    input_ = i;
  }
  if (!input_) return false;
  const RowOperand& o = l_.operands[input_];
  width_ = itemsize(o.dtype);
  if (o.maker || width_ > 8 || o.reduced[dims - 2] != width_) return false;
  kernel_width_ = itemsize(o.kernel);
  accumulator_ = itemsize(static_cast<DType>(e.reduction[0].accumulator));
  base_ = operands[input_];
  rows_ = l_.reduced_sizes[dims - 1];
  columns_ = l_.reduced_sizes[dims - 2];
  int64_t all = 1;
  for (int64_t n : l_.reduced_sizes) all *= n;
  parts_ = all / kPart;
  const auto accumulator = static_cast<DType>(e.reduction[0].accumulator);
  if (dims == 2 && parts_ >= kTurnedLanes && e.pass[0].plain && o.dtype == accumulator && o.kernel == accumulator &&
      (accumulator == DType::F32 || accumulator == DType::F64))
    tiles_ = turned_tiles(e.reduction[0].combine == STRATA_COMBINE_MUL, width_, rows_);
  if (tiles_) parts_ -= parts_ % kTurnedLanes;
  return parts_ > 0 && columns_ * width_ >= kLineBytes / 2;
}

// How much is read at a time: whole lines of the cache, several side by side where there is room.
bool TurnedRow::choose() {
  common_ = std::gcd(rows_, kChunk);
  const auto bytes = [&](int64_t positions, int64_t parts) {
    return parts * kPart / common_ * positions * std::max(width_, kernel_width_);
  };
  const int64_t least = std::min(common_, kLanes);
  for (int64_t line = kWidest * kLineBytes; line >= kLineBytes; line /= 2) {
    const int64_t columns = std::min(columns_, line / width_);
    parts_at_once_ = std::clamp<int64_t>((columns * rows_ + kPart - 1) / kPart, 1, parts_);
    together_ = least;
    if (bytes(least, parts_at_once_) <= (line > kLineBytes ? kFarBytes : kMostBytes)) {
      while (common_ >= 2 * together_ && together_ < 4 * kLanes && bytes(2 * together_, parts_at_once_) <= kNearBytes)
        together_ *= 2;
      return true;
    }
  }
  return false;
}

void TurnedRow::run(Value* partial) const {
  if (tiles_) return by_tiles(partial);
  const int64_t each = std::min(parts_at_once_, std::max<int64_t>(1, parts_ / num_threads()));
  parallel_for(0, (parts_ + each - 1) / each, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) group(i * each, std::min(each, parts_ - i * each), partial);
  });
}

// Each thread joins what it has made: only the results of some positions go from one to another.
void TurnedRow::by_tiles(Value* partial) const {
  const Joiner joiner = joiner_of(l_.entry->reduction[0]);
  const int64_t rows = std::min(rows_, kChunk), classes = kChunk / rows;
  const int64_t height = std::clamp(rows / 8, kLanes, 4 * kLanes), blocks = rows / height;
  for (int64_t first = 0; first < parts_; first += kTilesAtOnce) {
    const int64_t count = std::min(kTilesAtOnce, parts_ - first), run = kLanes * count, bytes = run * accumulator_;
    const int64_t joined = classes * blocks * bytes, made = height / kLanes * bytes;
    const auto memory = [&] { return part_workspace().get(size_t(joined + classes * made)); };
    char* all = memory();
    const char* from = base_ + first * (kPart / rows_) * width_;
    parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      char* own = memory() + joined;
      for (int64_t i = begin; i < end; ++i) {
        tiles_({from, l_.operands[input_].reduced.back(), count, i * height, (i + 1) * height, own});
        for (int64_t k = 0; k < classes; ++k) {
          join_pairs(joiner, own + k * made, height / kLanes, bytes, run);
          std::memcpy(all + (k * blocks + i) * bytes, own + k * made, size_t(bytes));
        }
      }
    });
    join_pairs(joiner, all, classes * blocks, bytes, run);
    joiner.lanes(all, count);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(partial[first + i].bytes, all + i * accumulator_, size_t(accumulator_));
  }
}

void TurnedRow::group(int64_t first, int64_t count, Value* partial) const {
  const int64_t elements = count * kPart / common_ * together_, columns = kChunk / common_ * together_;
  const bool casts = width_ != kernel_width_ || l_.operands[input_].dtype != l_.operands[input_].kernel;
  const int64_t slot = kLanes * accumulator_, run = count * slot;
  char* memory = part_workspace().get(size_t(elements * (kernel_width_ + (casts ? width_ : 0)) + kChunk * accumulator_ +
                                             kGroups * run + 4 * kLineBytes));
  auto take = [&](int64_t bytes) {
    char* p = memory;
    memory += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    return p;
  };
  Room room{};
  room.elements = take(elements * kernel_width_);
  room.read = casts ? take(elements * width_) : room.elements;
  room.made = take(kChunk * accumulator_);
  room.accumulators = take(kGroups * run);
  const StrataKernelEntry& e = *l_.entry;
  char* ptr[kMaxRowOperands] = {};
  int64_t step[kMaxRowOperands] = {};
  step[input_] = columns * kernel_width_;
  StrataColumnArgs args{ptr, step, l_.params, room.made, nullptr, 0, 0, columns, kChunks, 1, kPart, 1, 1};
  for (int64_t position = 0; position < common_; position += together_) {
    read(first * kPart, (first + count) * kPart, position, room);
    for (int64_t part = 0; part < count; ++part) {
      ptr[input_] = room.elements + part * kChunks * step[input_];
      e.pass[0].columns(&args);
      for (int64_t c = 0; c < columns; c += kLanes) {
        const int64_t p = c / together_ * common_ + position + c % together_;  // the position in its chunk
        std::memcpy(room.accumulators + p / kLanes * run + part * slot, room.made + c * accumulator_, size_t(slot));
      }
    }
  }
  const Joiner joiner = joiner_of(e.reduction[0]);
  char* all = room.accumulators;
  join_pairs(joiner, all, kGroups, run, count * kLanes);
  for (int64_t part = 0; part < count; ++part, all += slot) {
    for (int64_t h = kLanes / 2; h > 0; h /= 2) joiner.join(all, all, all + h * accumulator_, h);
    std::memcpy(partial[first + part].bytes, all, size_t(accumulator_));
  }
}

// The elements of [first, last) whose positions are `position` and the next ones, modulo `common_`, in order.
void TurnedRow::read(int64_t first, int64_t last, int64_t position, const Room& room) const {
  if (together_ < common_) {
    const int64_t strips = rows_ / common_;
    for (int64_t s = 0; s < strips; ++s) block(s * common_ + position, together_, first, last, room.read);
  } else {
    // The first and the last column may begin and end anywhere: between these rows all have the same columns.
    int64_t cuts[] = {0, first % rows_, last % rows_, rows_};
    std::sort(cuts, cuts + 4);
    for (int i = 0; i < 3; ++i)
      if (cuts[i] < cuts[i + 1]) block(cuts[i], cuts[i + 1] - cuts[i], first, last, room.read);
  }
  if (room.read == room.elements) return;
  const RowOperand& o = l_.operands[input_];
  const int64_t elements = (last - first) / common_ * together_;
  cast_fn(o.dtype, o.kernel)(room.read, width_, room.elements, kernel_width_, elements);
}

// `height` rows from `row` on, in all columns in which they are of [first, last); `together_` of `common_` are kept.
void TurnedRow::block(int64_t row, int64_t height, int64_t first, int64_t last, char* to) const {
  const size_t dims = l_.reduced_sizes.size();
  const RowOperand& o = l_.operands[input_];
  const auto column_at = [&](int64_t element) { return (element - row + rows_ - 1) / rows_; };
  const auto kept = [&](int64_t element) { return element / common_ * together_ + element % common_ % together_; };
  for (int64_t c = column_at(first), end = column_at(last); c < end;) {
    const int64_t inside = c % columns_, many = std::min(end - c, columns_ - inside);
    const char* from = base_ + row * o.reduced[dims - 1] + inside * width_;
    int64_t rest = c / columns_;
    for (size_t d = dims - 2; d-- > 0; rest /= l_.reduced_sizes[d]) from += rest % l_.reduced_sizes[d] * o.reduced[d];
    // Columns of the buffer a page apart meet in one set of the cache: they are written a line at a time.
    const int64_t apart = kept(rows_) * width_;
    const auto turn = apart % (kPageBytes / 2) == 0 ? transpose : transpose_near;
    turn(width_, from, o.reduced[dims - 1], to + kept(c * rows_ + row - first) * width_, apart, height, many);
    c += many;
  }
}

}  // namespace strata::eager
