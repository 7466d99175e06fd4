// A small operator table for the tests of lower/: every feature of the expression language, under the real mathematics.
#include <cstdint>

#include "core/dtype.h"
#include "lower/desc.h"

namespace strata::lower {
namespace {

constexpr uint32_t bit(DType t) { return 1u << int(t); }
constexpr uint32_t kBool = bit(DType::Bool);
constexpr uint32_t kInts = bit(DType::U8) | bit(DType::I8) | bit(DType::U16) | bit(DType::I16) | bit(DType::U32) |
                           bit(DType::I32) | bit(DType::U64) | bit(DType::I64);
constexpr uint32_t kFloats = bit(DType::F16) | bit(DType::BF16) | bit(DType::F32) | bit(DType::F64);
constexpr uint32_t kComplex = bit(DType::C64) | bit(DType::C128);
constexpr uint32_t kReal = kInts | kFloats, kNumbers = kReal | kComplex, kAll = kNumbers | kBool;
constexpr KernelKind P = KernelKind::Pointwise, R = KernelKind::Rows;

}  // namespace

extern const KernelDesc test_kernels[] = {
    {"add", "pointwise", P, "self other", "alpha", "result", "self + alpha * other", kAll, "test: add.Tensor"},
    {"mul", "pointwise", P, "self other", "", "result", "self * other", kAll, "test: mul.Tensor"},
    {"div", "pointwise", P, "self other", "", "result", "self / other", kFloats | kComplex, "test: div.Tensor"},
    {"sigmoid", "pointwise", P, "self", "", "result", "sigmoid(self)", kFloats, "test: sigmoid"},
    {"sincos", "pointwise", P, "self", "", "result", "s = sin(self)\nc = cos(self)\nfma(s, s, c * c)", kFloats,
     "test: sin^2 + cos^2"},
    {"gelu", "pointwise", P, "self", "", "result", "self * normcdf(self)", kFloats, "test: gelu"},
    {"where", "pointwise", P, "c:bool self other", "", "result", "c ? self : other", kAll, "test: where.self"},
    {"less", "pointwise", P, "self other", "", "result:bool", "self < other", kReal | kBool, "test: lt.Tensor"},
    {"eq_or_nan", "pointwise", P, "self other", "", "result:bool",
     "self == other || (self != self && !(other == other))", kReal, "test: equal or NaN"},
    {"remainder", "pointwise", P, "self other", "", "result", "remainder(self, other)", kReal, "test: remainder"},
    {"floor_divide", "pointwise", P, "self other", "", "result", "floordiv(self, other)", kReal, "test: floor_divide"},
    {"truncdiv", "pointwise", P, "self other", "", "a b", "a = truncdiv(self, other)\nb = fmod(self, other)", kReal,
     "test: truncated division"},
    {"shifts", "pointwise", P, "self other", "", "l r", "l = self << other\nr = self >> other", kInts, "test: shifts"},
    {"int_pow", "pointwise", P, "self other", "", "result", "pow(self, other)", kInts, "test: pow of integers"},
    {"euclid", "pointwise", P, "self other", "", "result",
     "repeat(a, b != 0, a, self, b, b, other, fmod(a, where(b == 0, 1, b)))", kInts, "test: repeat until it is done"},
    {"nested_turns", "pointwise", P, "self", "", "result",
     "n = abs(self) < 8 ? floor(abs(self)) : 7\n"
     "repeat(s, j < n, j, 0, j + 1, s, 0, repeat(s + t, k < j, k, 0, k + 1, t, self, t * 0.5 + 1))",
     kFloats, "test: repeat inside of repeat"},
    {"logic", "pointwise", P, "self other", "", "a o x n",
     "a = self & other\no = self | other\nx = self ^ other\nn = ~self", kInts | kBool, "test: bitwise"},
    {"extrema", "pointwise", P, "self other", "", "a b c d",
     "a = maximum(self, other)\nb = minimum(self, other)\nc = fmax(self, other)\nd = fmin(self, other)", kReal,
     "test: maximum, minimum, fmax, fmin"},
    {"round", "pointwise", P, "self", "", "f c t r", "f = floor(self)\nc = ceil(self)\nt = trunc(self)\nr = rint(self)",
     kReal, "test: rounding"},
    {"classify", "pointwise", P, "self", "", "a:bool b:bool c:bool d:bool e",
     "a = isnan(self)\nb = isinf(self)\nc = isfinite(self)\nd = signbit(self)\ne = sign(self)", kReal,
     "test: classify"},
    {"casts", "pointwise", P, "self", "",
     "f:float32 h:float16 b:bfloat16 i:int32 l:int64 s:int8 u:uint8 w:uint32 z:uint64 t:bool",
     "f = self\nh = self\nb = self\ni = self\nl = self\ns = self\nu = self\nw = self\nz = self\nt = self",
     kReal | kBool, "test: conversions"},
    {"adamw", "pointwise", P, "param grad m v", "lr beta1 beta2 eps decay correction1 correction2", "param_ m_ v_",
     "p = param - lr * decay * param\n"
     "m_ = fma(grad - m, 1 - beta1, m)\n"
     "v_ = beta2 * v + (1 - beta2) * grad * grad\n"
     "param_ = p - lr / correction1 * m_ / (sqrt(v_) / sqrt(correction2) + eps)",
     kFloats, "test: adamw"},
    {"dropout", "pointwise", P, "self r:word", "p", "result mask:bool",
     "keep = f32(r >> 8) * 0x1p-24 >= p\nmask = keep\nresult = keep ? self / (1 - p) : 0", kFloats, "test: dropout"},
    {"slow", "pointwise", P, "self", "", "result",
     "big = abs(self) > 100\nx = rare(big, exp(self / (1 + abs(self))), self)\ny = rare(big, exp(-abs(self)), self * "
     "self)\nx + y",
     kFloats, "test: rare"},
    {"fill", "pointwise", P, "", "value", "result", "value", kAll, "test: fill"},
    {"nested", "pointwise", P, "self", "", "a b",
     "big = abs(self) > 1\nhuge = abs(self) > 2\ns = self * self\n"
     "inner = rare(huge, s * 3 + exp(-s), s - 1)\nother = rare(huge, s * 5, s)\n"
     "a = rare(big, inner * inner + s, self)\nb = rare(big, inner + 2, s) + other",
     kFloats, "test: rare within rare"},
    {"cmul", "pointwise", P, "self other", "", "result", "self * conj(other)", kComplex, "test: complex product"},
    {"cfun", "pointwise", P, "self other", "", "e l s p",
     "e = exp(self)\nl = log(self)\ns = sqrt(self)\np = pow(self, other)", kComplex, "test: complex functions"},
    {"ctrig", "pointwise", P, "self", "", "a b c d e f g h i j k m",
     "a = sin(self)\nb = cos(self)\nc = tan(self)\nd = sinh(self)\ne = cosh(self)\nf = tanh(self)\ng = asin(self)\n"
     "h = acos(self)\ni = atan(self)\nj = asinh(self)\nk = acosh(self)\nm = atanh(self)",
     kComplex, "test: complex circular and hyperbolic functions"},
    {"cother", "pointwise", P, "self", "", "a b c d e f g h",
     "a = reciprocal(self)\nb = rsqrt(self)\nc = expm1(self)\nd = log1p(self)\ne = log2(self)\nf = log10(self)\ng = "
     "sgn(self)\n"
     "h = sigmoid(self)",
     kComplex, "test: more complex functions"},
    {"cabs", "pointwise", P, "self", "", "a:real b:real", "a = abs(self)\nb = angle(self)", kComplex,
     "test: complex abs"},

    {"row_div", "reduce", R, "self other", "", "result:row:int64 each",
     "result = sum(remainder(self, other))\neach = floordiv(self, other) - max(self)", kInts,
     "test: division of integers in rows"},
    {"sum", "reduce", R, "self", "", "result:row", "sum(self)", kFloats | kComplex, "test: sum"},
    {"int_sum", "reduce", R, "self", "", "result:row:int64 p:row:int64", "result = sum(self)\np = prod(self)",
     kInts | kBool, "test: sum of integers"},
    {"mean", "reduce", R, "self", "", "result:row", "sum(self) / n", kFloats | kComplex, "test: mean"},
    {"prod", "reduce", R, "self", "", "result:row", "prod(self)", kFloats | kComplex, "test: prod"},
    {"max", "reduce", R, "self", "", "a:row b:row", "a = max(self)\nb = min(self)", kReal, "test: amax, amin"},
    {"argmax", "reduce", R, "self", "", "a:row:int64 b:row:int64", "a = argmax(self)\nb = argmin(self)", kReal,
     "test: argmax"},
    {"any_all", "reduce", R, "self", "", "a:row:bool b:row:bool", "a = any(self)\nb = all(self)", kAll,
     "test: any, all"},
    {"var", "reduce", R, "self", "correction", "result:row mean_:row",
     "mean_ = sum(self) / n\nd = self - mean_\nresult = sum(d * d) / maximum(n - correction, 0)", kFloats, "test: var"},
    {"norm", "reduce", R, "self", "p", "result:row", "pow(sum(pow(abs(self), p)), 1 / p)", kFloats, "test: norm"},
    {"logsumexp", "reduce", R, "self", "", "result:row",
     "m = max(self)\nm0 = isinf(m) ? 0 : m\nlog(sum(exp(self - m0))) + m0", kFloats, "test: logsumexp"},
    {"softmax", "reduce", R, "self", "", "result", "m = max(self)\ne = exp(self - m)\nr = 1 / sum(e)\ne * r", kFloats,
     "test: softmax"},
    {"log_softmax", "reduce", R, "self", "", "result", "m = max(self)\nd = self - m\nd - log(sum(exp(d)))", kFloats,
     "test: log_softmax"},
    {"layer_norm", "reduce", R, "self weight bias", "eps", "result mean:row rstd:row",
     "mean = sum(self) / n\nd = self - mean\nrstd = 1 / sqrt(sum(d * d) / n + eps)\nresult = d * rstd * weight + bias",
     kFloats, "test: layer_norm"},
    {"softmax_backward", "reduce", R, "grad result_", "", "result", "(grad - sum(grad * result_)) * result_", kFloats,
     "test: softmax backward"},
    {"ones", "reduce", R, "self", "", "result:row count:row:int64", "result = sum(1)\ncount = sum(index * 0 + 1)",
     kFloats, "test: sums of values that do not vary"},
    {"nll", "reduce", R, "self target:row:int64", "", "result:row", "sum(index == target ? -self : 0)", kFloats,
     "test: nll of a row"},
};
extern const int64_t test_kernel_count = sizeof test_kernels / sizeof *test_kernels;

}  // namespace strata::lower
