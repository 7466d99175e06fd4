#include "ops/conv/lines.h"

#include <algorithm>
#include <cstring>

namespace strata::eager {

void ConvLines::prepare(const Walk& walk, int64_t first, int64_t count) {
  walk_ = &walk;
  count_ = count;
  // Along the innermost axis the image coordinate advances evenly over every to_step_-th position.
  to_step_ = walk.inverse ? walk.stride[2] : 1;
  const int64_t advance = walk.inverse ? 1 : walk.stride[2];
  pieces_.clear();
  taps_.clear();
  for (int64_t tap = 0; tap < walk.taps(); ++tap) {
    const int64_t t2 = tap % walk.kernel[2], t1 = tap / walk.kernel[2] % walk.kernel[1];
    const int64_t t0 = tap / (walk.kernel[2] * walk.kernel[1]);
    const size_t begin = pieces_.size();
    int64_t covered = 0;
    for (int64_t done = 0; done < count;) {
      const int64_t x = (first + done) % walk.size[2], row = (first + done) / walk.size[2];
      const int64_t length = std::min(count - done, walk.size[2] - x);
      const int64_t n = row / (walk.size[1] * walk.size[0]);
      const int64_t iy = walk.at(1, row % walk.size[1], t1), iz = walk.at(0, row / walk.size[1] % walk.size[0], t0);
      int64_t low = 0;
      while (low < length && walk.at(2, x + low, t2) < 0) ++low;
      if (iy >= 0 && iz >= 0 && low < length) {
        const int64_t ix = walk.at(2, x + low, t2);
        const int64_t inside = (walk.extent[2] - 1 - ix) / advance + 1, room = (length - 1 - low) / to_step_ + 1;
        const int64_t from = n * walk.batch_step + iz * walk.step[0] + iy * walk.step[1] + ix * walk.step[2];
        pieces_.push_back({done + low, from, std::min(inside, room), advance * walk.step[2]});
        covered += pieces_.back().count;
      }
      done += length;
    }
    taps_.push_back({begin, pieces_.size(), covered < count});
  }
}

namespace {

template <class E>
void copy_run(const char* from, int64_t from_step, int64_t count, char* to, int64_t to_step) {
  const E* source = reinterpret_cast<const E*>(from);
  E* target = reinterpret_cast<E*>(to);
  if (from_step == 1 && to_step == 1) {
    for (int64_t i = 0; i < count; ++i) target[i] = source[i];
  } else {
    for (int64_t i = 0; i < count; ++i) target[i * to_step] = source[i * from_step];
  }
}

struct Wide {
  uint64_t low, high;
};

}  // namespace

void ConvLines::write(int64_t channel, int64_t tap, char* to) const {
  const int64_t bytes = walk_->bytes;
  const char* base = walk_->image + channel * walk_->channel_step * bytes;
  const Tap& t = taps_[tap];
  if (t.gaps) std::memset(to, 0, count_ * bytes);
  for (size_t i = t.begin; i < t.end; ++i) {
    const Piece& p = pieces_[i];
    const char* from = base + p.from * bytes;
    char* at = to + p.to * bytes;
    switch (bytes) {
      case 1:
        copy_run<uint8_t>(from, p.from_step, p.count, at, to_step_);
        break;
      case 2:
        copy_run<uint16_t>(from, p.from_step, p.count, at, to_step_);
        break;
      case 4:
        copy_run<uint32_t>(from, p.from_step, p.count, at, to_step_);
        break;
      case 8:
        copy_run<uint64_t>(from, p.from_step, p.count, at, to_step_);
        break;
      default:
        copy_run<Wide>(from, p.from_step, p.count, at, to_step_);
        break;
    }
  }
}

// Tap by tap, so that what a tap costs is not paid for each channel: right where a position's channels lie together.
template <class E>
void ConvLines::write_channels(int64_t k0, int64_t kc, int64_t row_length, E* to) const {
  const int64_t taps = walk_->taps();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t first = std::max<int64_t>(0, (k0 - tap + taps - 1) / taps), last = (k0 + kc - tap + taps - 1) / taps;
    for (size_t i = taps_[tap].begin; i < taps_[tap].end; ++i) {
      const Piece& p = pieces_[i];
      const E* from = reinterpret_cast<const E*>(walk_->image) + p.from;
      for (int64_t channel = first; channel < last; ++channel) {
        E* at = to + (channel * taps + tap - k0) * row_length + p.to;
        const E* source = from + channel * walk_->channel_step;
        for (int64_t j = 0; j < p.count; ++j) at[j * to_step_] = source[j * p.from_step];
      }
    }
  }
}

void ConvLines::write_all(int64_t k0, int64_t kc, int64_t row_length, char* to) const {
  const int64_t bytes = walk_->bytes, taps = walk_->taps();
  if (walk_->channel_step == 1) {
    std::memset(to, 0, kc * row_length * bytes);
    switch (bytes) {
      case 1:
        return write_channels(k0, kc, row_length, reinterpret_cast<uint8_t*>(to));
      case 2:
        return write_channels(k0, kc, row_length, reinterpret_cast<uint16_t*>(to));
      case 4:
        return write_channels(k0, kc, row_length, reinterpret_cast<uint32_t*>(to));
      case 8:
        return write_channels(k0, kc, row_length, reinterpret_cast<uint64_t*>(to));
      default:
        return write_channels(k0, kc, row_length, reinterpret_cast<Wide*>(to));
    }
  }
  for (int64_t k = k0; k < k0 + kc; ++k, to += row_length * bytes) {
    write(k / taps, k % taps, to);
    for (int64_t j = count_ * bytes; j < row_length * bytes; ++j) to[j] = 0;
  }
}

}  // namespace strata::eager
