// What the library does to lines, with what surrounds it: results are scaled, and real lines of an even length become
// complex ones of half of it (real_line.h).
#pragma once
#include <optional>

#include "ops/fft/lines.h"
#include "ops/fft/real_line.h"

namespace strata::eager {

template <class R>
class LineTransform {
 public:
  // Of `count` lines at a time.
  LineTransform(const StrataFourier& library, const LinesPass& pass, int64_t count, const char* op);

  // The length of the lines that the library transforms.
  static int64_t length_of(const LinesPass& pass) { return halved(pass) ? pass.length / 2 : pass.length; }
  // Bytes that a call needs for its own use.
  int64_t own_bytes() const { return real_ ? count_ * length_ * int64_t(2 * sizeof(R)) : 0; }
  bool destroys_input() const { return half_ && !real_; }
  // Whether the library itself reads `in` and writes `out`, which are aligned for it then.
  bool reads() const { return !real_ || !half_; }
  bool writes() const { return !real_ || half_; }

  // The first `used` of the lines; they lie without gaps.
  void operator()(char* in, char* out, char* own, int64_t used = 1) const;

 private:
  static bool halved(const LinesPass& p) {
    return p.length % 2 == 0 && (p.kind == STRATA_FOURIER_REAL || p.kind == STRATA_FOURIER_HALF);
  }
  static StrataFourierKind kind_of(const LinesPass& p) {
    return !halved(p) ? p.kind : p.kind == STRATA_FOURIER_REAL ? STRATA_FOURIER_FORWARD : STRATA_FOURIER_BACKWARD;
  }
  void clear(R* in, int64_t parts, int64_t used) const;
  void multiply(R* values, int64_t count) const;

  int64_t length_, count_;
  bool half_;
  int64_t in_parts_, out_parts_;  // numbers of a line of the plan
  R scale_;
  FourierPlan plan_;
  std::optional<RealLine<R>> real_;
};

}  // namespace strata::eager
