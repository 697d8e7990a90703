// Operations on numbers with the semantics of the language, where C++ leaves cases undefined.
#pragma once

// Constants, where a quotient of zero would be computed when the kernel runs.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

// The bounds of an integer type: `scalars::lowest<short>`.
namespace scalars {
template <class T>
constexpr bool is_signed = T(-1) < T(0);
template <class T>
constexpr T lowest = is_signed<T> ? T(1ull << (8 * sizeof(T) - 1)) : T(0);
template <class T>
constexpr T highest = T(~lowest<T>);
}  // namespace scalars

// The low bits of a number. The asm hides their origin from the compiler, which would otherwise compute in 16
// bits: GPUs then widen the negated lowest 16-bit number to a positive one.
template <class T>
__device__ __forceinline__ T narrowed(unsigned number) {
  asm("" : "+r"(number));
  return T(number);
}

// One instruction: within 2 units in the last place, and 0 for results below the smallest normal number.
__device__ __forceinline__ float power_of_two(float number) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(number));
  return power;
}

// One instruction: within a unit in the last place; numbers below the smallest normal one are taken for 0.
__device__ __forceinline__ float reciprocal(float number) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(number));
  return result;
}
__device__ __forceinline__ double reciprocal(double number) { return 1 / number; }

// Truncates a number; saturates beyond the range of T, and maps NaN to 0. The instructions do the same,
// except that some map NaN to the lowest number, and that none has 8- or 16-bit results.
template <class T>
__device__ __forceinline__ T truncated(float number) {
  if constexpr (sizeof(T) == 8) {
    if (number != number) return 0;
    if constexpr (scalars::is_signed<T>)
      return __float2ll_rz(number);
    else
      return __float2ull_rz(number);
  } else if constexpr (scalars::is_signed<T>) {
    const int whole = __float2int_rz(number);
    return sizeof(T) == 4 ? whole : max(min(whole, int(scalars::highest<T>)), int(scalars::lowest<T>));
  } else {
    const unsigned whole = __float2uint_rz(number);
    return sizeof(T) == 4 ? whole : min(whole, unsigned(scalars::highest<T>));
  }
}
template <class T>
__device__ __forceinline__ T truncated(double number) {
  if (number != number) return 0;
  if constexpr (sizeof(T) == 8) {
    if constexpr (scalars::is_signed<T>)
      return __double2ll_rz(number);
    else
      return __double2ull_rz(number);
  } else if constexpr (scalars::is_signed<T>) {
    const int whole = __double2int_rz(number);
    return sizeof(T) == 4 ? whole : max(min(whole, int(scalars::highest<T>)), int(scalars::lowest<T>));
  } else {
    const unsigned whole = __double2uint_rz(number);
    return sizeof(T) == 4 ? whole : min(whole, unsigned(scalars::highest<T>));
  }
}

// Rounds an integer to odd: towards zero, with the last bit set if the result is inexact. Rounding such a
// float to fewer digits gives the same result as rounding the integer.
__device__ __forceinline__ float rounded_to_odd(int number) {
  const float near = __int2float_rz(number);
  return __int_as_float(__float_as_int(near) | (__float2int_rz(near) != number));
}
__device__ __forceinline__ float rounded_to_odd(unsigned number) {
  const float near = __uint2float_rz(number);
  return __int_as_float(__float_as_int(near) | (__float2uint_rz(near) != number));
}
__device__ __forceinline__ float rounded_to_odd(long long number) {
  const float near = __ll2float_rz(number);
  return __int_as_float(__float_as_int(near) | (__float2ll_rz(near) != number));
}
__device__ __forceinline__ float rounded_to_odd(unsigned long long number) {
  const float near = __ull2float_rz(number);
  return __int_as_float(__float_as_int(near) | (__float2ull_rz(near) != number));
}

namespace scalars {
// The negative; the lowest number, whose negative does not exist, stays.
template <class T>
__device__ __forceinline__ T negative(T number) {
  if constexpr (sizeof(T) < 4)
    return narrowed<T>(0u - unsigned(number));
  else
    return T(0ull - number);
}
}  // namespace scalars

// The absolute value; the lowest number, whose absolute value does not exist, stays.
template <class T>
__device__ __forceinline__ T magnitude(T number) {
  return number < 0 ? scalars::negative(number) : number;
}

// Quotient and remainder of signed integers; those of the lowest number and -1 wrap. Division by zero is
// unspecified.
template <class T>
__device__ __forceinline__ T quotient_of(T number, T divisor) {
  return divisor == -1 ? scalars::negative(number) : T(number / divisor);
}
template <class T>
__device__ __forceinline__ T remainder_of(T number, T divisor) {
  return divisor == -1 ? T(0) : T(number % divisor);
}

// The power of an integer, which wraps; truncated if the exponent is negative. Then a base of zero is
// unspecified.
template <class T>
__device__ __forceinline__ T power_of(T number, T exponent) {
  if (exponent < 0 && number != 1 && number != -1) return 0;
  unsigned long long result = 1, square = number;
  for (unsigned long long left = exponent < 0 ? 0ull - exponent : exponent; left; left >>= 1) {
    if (left & 1) result *= square;
    square *= square;
  }
  return T(result);
}
