// Operations on numbers with the semantics of the language, where C++ leaves cases undefined.
#pragma once

#include "half.hpp"
#include "undefined.hpp"

#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif

namespace rise_emulation {

template <class T>
constexpr bool is_signed = T(-1) < T(0);
template <class T>
constexpr T lowest = is_signed<T> ? T(1ull << (8 * sizeof(T) - 1)) : T(0);
template <class T>
constexpr T highest = T(~lowest<T>);

}  // namespace rise_emulation

// The low bits of a number.
template <class T>
static inline T narrowed(unsigned number) {
  return static_cast<T>(number);
}

// A power of two; 0 below the smallest normal number.
static inline float power_of_two(float number) {
  float power = __builtin_exp2f(number);
  return power < 0x1p-126f ? 0 : power;
}

// One over a number; numbers below the smallest normal one are taken for 0.
static inline float reciprocal(float number) {
  const auto normal = [](float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; };
  return normal(1 / normal(number));
}
static inline double reciprocal(double number) { return 1 / number; }

// Truncates a number; saturates beyond the range of T, and maps NaN to 0.
template <class T, class A>
static inline T truncated(A operand) {
  const double number = rise_emulation::value(operand);
  if (number != number) return 0;
  // the first number above the range, which a double can represent
  const double above = 2.0 * static_cast<double>(rise_emulation::highest<T> / 2 + 1);
  if (number >= above) return rise_emulation::highest<T>;
  if (number <= static_cast<double>(rise_emulation::lowest<T>)) return rise_emulation::lowest<T>;
  return static_cast<T>(number);
}

// Rounds an integer to odd: towards zero, with the last bit set if the result is inexact. Rounding such a
// float to fewer digits gives the same result as rounding the integer.
template <class T>
static inline float rounded_to_odd(T number) {
  const bool negative = number < 0;
  uint64_t left = negative ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  if (left == 0) return 0;
  int dropped = 40 - __builtin_clzll(left);  // of 64 digits the first 24 are left
  if (dropped > 0) {
    const bool lost = left & ((uint64_t{1} << dropped) - 1);
    left = (left >> dropped | lost) << dropped;
  }
  const float exact = static_cast<float>(left);
  return negative ? -exact : exact;
}

// The absolute value; the lowest number, whose absolute value does not exist, stays.
template <class T>
static inline T magnitude(T number) {
  return number < 0 ? static_cast<T>(0ull - static_cast<unsigned long long>(number)) : number;
}

// Quotient and remainder of signed integers; those of the lowest number and -1 wrap.
template <class T>
static inline T quotient_of(T number, T divisor, int line = __builtin_LINE()) {
  if (divisor == 0) rise_emulation::undefined_at(line, "division by zero");
  return static_cast<T>(divisor == -1 ? 0ull - static_cast<unsigned long long>(number) : number / divisor);
}
template <class T>
static inline T remainder_of(T number, T divisor, int line = __builtin_LINE()) {
  if (divisor == 0) rise_emulation::undefined_at(line, "division by zero");
  return divisor == -1 ? T(0) : static_cast<T>(number % divisor);
}

// The power of an integer, which wraps; truncated if the exponent is negative.
template <class T>
static inline T power_of(T number, T exponent, int line = __builtin_LINE()) {
  if (exponent < 0 && number == 0) rise_emulation::undefined_at(line, "0 to a negative power");
  if (exponent < 0 && number != 1 && number != -1) return 0;
  unsigned long long result = 1, square = static_cast<unsigned long long>(number);
  for (unsigned long long left = static_cast<unsigned long long>(magnitude<T>(exponent)); left; left >>= 1) {
    if (left & 1) result *= square;
    square *= square;
  }
  return T(result);
}
