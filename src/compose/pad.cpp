// pad: which operator a mode and a number of dims mean.
#include "core/tensor.h"
#include "strata/generated/by_hand/shape.h"
#include "strata/generated/ops/shape.h"

namespace strata::eager {

Tensor pad_by_mode(const Tensor& self, IntArrayRef pad, std::string_view mode, std::optional<double> value) {
  STRATA_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  STRATA_CHECK(int64_t(pad.size()) <= 2 * self.dim(),
               "Padding length should be less than or equal to two times the input "
               "dimension but got padding length ",
               pad.size(), " and input of dimension ", self.dim());
  if (mode == "constant") return ops::constant_pad_nd(self, pad, value ? Scalar(*value) : Scalar(0));
  STRATA_CHECK(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  size_t n = pad.size();
  int64_t count = int64_t(n) / 2;
  bool fits = (n == 2 || n == 4 || n == 6) && (self.dim() == count + 1 || self.dim() == count + 2);
  if (mode == "reflect" && fits)
    return n == 2   ? ops::reflection_pad1d(self, pad)
           : n == 4 ? ops::reflection_pad2d(self, pad)
                    : ops::reflection_pad3d(self, pad);
  if (mode == "replicate" && fits)
    return n == 2   ? ops::replication_pad1d(self, pad)
           : n == 4 ? ops::replication_pad2d(self, pad)
                    : ops::replication_pad3d(self, pad);
  if (mode == "circular" && fits) return ops::_pad_circular(self, pad);
  STRATA_CHECK_NOT_IMPLEMENTED(
      mode != "reflect" && mode != "replicate" && mode != "circular", "Padding size ", n, " is not supported for ",
      self.dim(),
      "D input tensor.\nSupported combinations for "
      "non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D "
      "input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads "
      "last 3 dimensions)");
  throw_error(ErrorKind::NotImplemented,
              str_cat("Unrecognised padding mode ", mode, "; expected constant, reflect, replicate or circular"));
}

}  // namespace strata::eager
