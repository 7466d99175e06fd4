#include "grad/formulas.h"
#include "strata/generated/ops/activation.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

// d sgn(z): the part of grad that is orthogonal to z, over |z|. 0 for real tensors.
Tensor sgn_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (!self.is_complex()) return ops::zeros_like(grad);
  Tensor length = ops::abs(self);
  Tensor along = ops::real(grad * ops::_conjugate(result));
  Tensor r = (grad - along * result) / length;
  return ops::where(ops::eq(length, Scalar(0)), ops::zeros_like(r), r);
}

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  if (!self.is_complex()) return ops::zeros_like(grad);
  Tensor squared = ops::abs(self) * ops::abs(self);
  // d/dz of atan2(im, re), as PyTorch's convention for gradients of complex inputs has it: i z / |z|^2.
  Tensor i = ops::full_like(self, Scalar(std::complex<double>(0, 1)));
  return grad * (i * self / squared);
}

// sqrt(z * z - 1) would leave the branch of acosh where z is complex.
Tensor acosh_backward(const Tensor& grad, const Tensor& self) {
  Scalar one(1);
  if (!self.is_complex()) return grad * ops::rsqrt(self * self - one);
  return grad * ops::_conjugate(ops::rsqrt(self + one) * ops::rsqrt(self - one));
}

Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  Tensor slope = grad / (self * (Scalar(1) - self));
  if (!eps) return slope;
  Tensor outside = ops::logical_or(ops::lt(self, Scalar(*eps)), ops::gt(self, Scalar(1.0 - *eps)));
  return ops::where(outside, ops::zeros_like(slope), slope);
}

Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  if (exponent.equals(0)) return ops::zeros_like(self);
  if (exponent.equals(2)) return grad * ops::_conjugate(self * exponent);
  return grad * ops::_conjugate(ops::pow(self, exponent - Scalar(1)) * exponent);
}

Tensor pow_backward_self(const Tensor& grad, const Tensor& self, const Tensor& exponent) {
  Tensor slope = exponent * ops::pow(self, exponent - Scalar(1));
  Tensor r = grad * ops::_conjugate(slope);
  return ops::where(ops::eq(exponent, Scalar(0)), ops::zeros_like(r), r);
}

Tensor pow_backward_exponent(const Tensor& grad, const Tensor& self, const Tensor& exponent, const Tensor& result) {
  Tensor r = grad * ops::_conjugate(result * ops::log(self));
  Tensor zero_base = ops::eq(self, Scalar(0));
  Tensor flat = exponent.is_complex() ? zero_base : ops::logical_and(zero_base, ops::ge(exponent, Scalar(0)));
  return ops::where(flat, ops::zeros_like(r), r);
}

Tensor pow_backward_base(const Tensor& grad, const Scalar& base, const Tensor& exponent, const Tensor& result) {
  if (base.equals(0)) {
    Tensor r = grad * (result * Scalar(-INFINITY));
    return ops::where(ops::ge(exponent, Scalar(0)), ops::zeros_like(r), r);
  }
  Scalar slope = base.is_complex() ? Scalar(std::log(base.to_complex())) : Scalar(std::log(base.to_double()));
  return grad * ops::_conjugate(result * slope);
}

Tensor copysign_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  Tensor ratio = result / self;
  return grad * ops::where(ops::eq(self, Scalar(0)), ops::zeros_like(ratio), ratio);
}

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max) {
  Tensor inside;
  if (min) inside = ops::ge(self, *min);
  if (max) inside = inside.defined() ? ops::logical_and(inside, ops::le(self, *max)) : ops::le(self, *max);
  return ops::where(inside, grad, ops::zeros_like(grad));
}

Tensor mish_grad(const Tensor& grad, const Tensor& self) {
  Tensor t = ops::tanh(ops::softplus(self, Scalar(1), Scalar(20)));
  return grad * (t + self * ops::sigmoid(self) * (Scalar(1) - t * t));
}

Tensor gelu_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate) {
  Tensor scale = grad * grad_output;
  if (approximate == "none") {
    Tensor density = ops::exp(self * self * Scalar(-0.5)) * Scalar(0.3989422804014327);
    return scale * density * (Scalar(2) - self * self);
  }
  const double c = 0.7978845608028654, k = 0.044715;
  Tensor t = ops::tanh((self + self * self * self * Scalar(k)) * Scalar(c));
  Tensor du = (self * self * Scalar(3 * k) + Scalar(1)) * Scalar(c), ddu = self * Scalar(6 * k * c);
  Tensor dt = (Scalar(1) - t * t) * du;
  Tensor ddt = (Scalar(1) - t * t) * ddu - t * dt * du * Scalar(2);
  return scale * (dt + self * ddt * Scalar(0.5));
}

}  // namespace strata::formulas
