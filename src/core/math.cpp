// The functions that lower/ prints into host.c.
#include "core/math.h"

extern "C" {
double strata_exp_f64(double x);
double strata_log_f64(double x);
float strata_log_f32(float x);
void strata_log_c128(const double* x, double* result);
double strata_log1p_f64(double x);
double strata_pow_f64(double x, double y);
double strata_sin_f64(double x);
double strata_cos_f64(double x);
double strata_acos_f64(double x);
float strata_abs_c64(const float* x);
double strata_abs_c128(const double* x);
}

namespace strata::math {

double exp(double x) { return strata_exp_f64(x); }
double log(double x) { return strata_log_f64(x); }
float log(float x) { return strata_log_f32(x); }
std::complex<double> log(std::complex<double> x) {
  double parts[] = {x.real(), x.imag()}, result[2];
  strata_log_c128(parts, result);
  return {result[0], result[1]};
}
double log1p(double x) { return strata_log1p_f64(x); }
double pow(double x, double y) { return strata_pow_f64(x, y); }
double power_of_ten(double exponent) {
  if (exponent > 22) return pow(10, exponent);
  double power = 1;
  for (int k = 0; k < int(exponent); ++k) power *= 10;
  return power;
}
double sin(double x) { return strata_sin_f64(x); }
double cos(double x) { return strata_cos_f64(x); }
double acos(double x) { return strata_acos_f64(x); }
float abs(std::complex<float> x) {
  const float parts[] = {x.real(), x.imag()};
  return strata_abs_c64(parts);
}
double abs(std::complex<double> x) {
  const double parts[] = {x.real(), x.imag()};
  return strata_abs_c128(parts);
}

}  // namespace strata::math
