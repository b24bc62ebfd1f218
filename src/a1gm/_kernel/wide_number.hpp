// A number of any size: mantissa and power of two apart, for products and quotients
// that leave the range of double on the way.
#pragma once

#include <cmath>
#include <cstdint>

namespace a1gm {

struct Wide {
  double mantissa = 0.0;  // 0, NaN, infinite, or within [0.5, 1)
  int64_t exponent = 0;

  Wide() = default;
  Wide(double x, int64_t power = 0) {  // NOLINT: a double is one of these numbers
    int shift = 0;
    mantissa = std::frexp(x, &shift);
    exponent = power + (std::isfinite(x) ? shift : 0);
  }
};

inline Wide operator*(const Wide& a, const Wide& b) {
  return {a.mantissa * b.mantissa, a.exponent + b.exponent};
}
inline Wide operator/(const Wide& a, const Wide& b) {
  return {a.mantissa / b.mantissa, a.exponent - b.exponent};
}

// Whether a result has all its digits.
inline bool keeps_digits(double x) { return std::isnormal(x); }
inline bool keeps_digits(const Wide&) { return true; }

}  // namespace a1gm
