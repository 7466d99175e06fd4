// ConvLines of image elements, from which the generated convolutions gather their panels: a line is what one (channel,
// tap) pair meets over a run of positions of a grid, with zeros where it meets nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::eager {

// Positions of one grid (`size`, with a batch in front) and what a tap makes of them in an image. Forward: a position
// of the output reads input at position * stride - padding + tap * dilation. Inverse: a position of the input meets
// output (position + padding - tap * dilation) / stride where that is whole.
struct Walk {
  int64_t size[3], positions;
  int64_t kernel[3], stride[3], padding[3], dilation[3];
  int64_t extent[3], step[3], batch_step, channel_step;  // of the image that is read
  bool inverse;
  const char* image;
  int64_t bytes;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }

  // One axis: the image coordinate of position p under tap t, or -1.
  int64_t at(int d, int64_t p, int64_t t) const {
    int64_t x = inverse ? p + padding[d] - t * dilation[d] : p * stride[d] - padding[d] + t * dilation[d];
    if (inverse && x >= 0) x = x % stride[d] == 0 ? x / stride[d] : -1;
    return x >= 0 && x < extent[d] ? x : -1;
  }
};

// The line of every tap over positions [first, first + count): which elements of the image lie where in it. The same
// for all channels, so it is worked out once for a panel.
class ConvLines {
 public:
  void prepare(const Walk& walk, int64_t first, int64_t count);
  // Writes the line of (channel, tap), count elements.
  void write(int64_t channel, int64_t tap, char* to) const;
  // Writes the lines of k = channel * taps + tap for k in [k0, k0 + kc), row_length elements apart, zeros past count.
  void write_all(int64_t k0, int64_t kc, int64_t row_length, char* to) const;

 private:
  struct Piece {
    int64_t to, from, count, from_step;  // elements; the pieces' to_step_ is common
  };
  struct Tap {
    size_t begin, end;
    bool gaps;
  };

  template <class E>
  void write_channels(int64_t k0, int64_t kc, int64_t row_length, E* to) const;

  const Walk* walk_ = nullptr;
  int64_t count_ = 0, to_step_ = 1;
  std::vector<Piece> pieces_;
  std::vector<Tap> taps_;
};
}  // namespace strata::eager
