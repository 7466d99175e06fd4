// Mathematics for C++ by the text that kernels inline (src/lower/math): the same bits on every machine, which libm does
// not give. Of numbers that come one at a time; tensors have operators. See Note [No libm].
#pragma once
#include <complex>

namespace strata::math {

double exp(double x);
double log(double x);
float log(float x);
std::complex<double> log(std::complex<double> x);
double log1p(double x);
double pow(double x, double y);
double power_of_ten(double exponent);  // a whole number from 0 on; up to 22 exact
double sin(double x);
double cos(double x);
double acos(double x);
float abs(std::complex<float> x);
double abs(std::complex<double> x);

}  // namespace strata::math
