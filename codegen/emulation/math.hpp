// The functions of CUDA that need no include. The C library computes them, so the last bit may differ
// from a GPU's.
#pragma once

#include "access.hpp"

#define RISE_UNARY(name)                                                                 \
  static inline float name##f(float x) { return __builtin_##name##f(x); }                \
  static inline float name(float x) { return __builtin_##name##f(x); }                   \
  static inline double name(double x) { return __builtin_##name(x); }                    \
  template <class I, typename std::enable_if<std::is_integral<I>::value, int>::type = 0> \
  static inline double name(I x) {                                                       \
    return __builtin_##name(static_cast<double>(x));                                     \
  }
#define RISE_BINARY(name)                                                             \
  static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }    \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }

// They have a namespace of their own, since the C library has functions of the same names.
namespace rise_math {
RISE_UNARY(acos)
RISE_UNARY(asin)
RISE_UNARY(atan)
RISE_UNARY(cbrt)
RISE_UNARY(ceil)
RISE_UNARY(cos)
RISE_UNARY(cosh)
RISE_UNARY(erf)
RISE_UNARY(erfc)
RISE_UNARY(exp)
RISE_UNARY(exp2)
RISE_UNARY(expm1)
RISE_UNARY(fabs)
RISE_UNARY(floor)
RISE_UNARY(log)
RISE_UNARY(log10)
RISE_UNARY(log1p)
RISE_UNARY(log2)
RISE_UNARY(rint)
RISE_UNARY(round)
RISE_UNARY(sin)
RISE_UNARY(sinh)
RISE_UNARY(sqrt)
RISE_UNARY(tan)
RISE_UNARY(tanh)
RISE_UNARY(trunc)
RISE_BINARY(atan2)
RISE_BINARY(copysign)
RISE_BINARY(fmod)
RISE_BINARY(pow)

static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float rsqrtf(float x) { return static_cast<float>(1.0 / __builtin_sqrt(x)); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float __expf(float x) { return __builtin_expf(x); }
static inline float __logf(float x) { return __builtin_logf(x); }
static inline float __fdividef(float x, float y) { return x / y; }

// CUDA's overloads take two of one type, or a signed and an unsigned one: as in `c ? a : b`.
template <class A, class B>
static inline auto min(const A& left, const B& right) {
  auto a = rise_emulation::value(left);
  auto b = rise_emulation::value(right);
  return b < a ? b : a;
}
template <class A, class B>
static inline auto max(const A& left, const B& right) {
  auto a = rise_emulation::value(left);
  auto b = rise_emulation::value(right);
  return a < b ? b : a;
}

// max and min ignore a NaN, and -0 is below 0, as for the instructions but not in the C library.
template <class T>
static inline T smaller(T a, T b) {
  if (a == b) return __builtin_signbit(a) ? a : b;
  return a < b || b != b ? a : b;
}
template <class T>
static inline T larger(T a, T b) {
  if (a == b) return __builtin_signbit(a) ? b : a;
  return a > b || b != b ? a : b;
}
static inline float fminf(float a, float b) { return smaller(a, b); }
static inline float fmin(float a, float b) { return smaller(a, b); }
static inline double fmin(double a, double b) { return smaller(a, b); }
static inline float fmaxf(float a, float b) { return larger(a, b); }
static inline float fmax(float a, float b) { return larger(a, b); }
static inline double fmax(double a, double b) { return larger(a, b); }
}  // namespace rise_math
#undef RISE_UNARY
#undef RISE_BINARY

using namespace rise_math;
