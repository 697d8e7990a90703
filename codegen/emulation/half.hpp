// The two 16-bit float types. As on a GPU, each operation rounds to nearest, ties to even;
// computing in float first is exact enough for that, as float has more than twice the digits.
#pragma once

#include "access.hpp"

namespace rise_emulation {

template <class To, class From>
static inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "only the type may change");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// Drops the low bits of a number, rounding to nearest, ties to even.
RISE_CODE uint32_t round_off(uint32_t bits, unsigned dropped) {
  uint32_t half = uint32_t{1} << (dropped - 1);
  return (bits + half - 1 + ((bits >> dropped) & 1)) >> dropped;
}

RISE_CODE uint16_t half_bits(float number) {
  uint32_t bits = bit_cast<uint32_t>(number);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return 0x7fff;  // the one NaN that conversions on a GPU give
  if (bits >= 0x47800000) return sign | 0x7c00;
  if (bits >= 0x38800000)  // a normal half: the exponent's bias changes; a carry may give infinity
    return static_cast<uint16_t>(sign | round_off(bits - 0x38000000, 13));
  if (bits < 0x33000000) return sign;  // below half of the smallest subnormal
  unsigned shift = 126 - (bits >> 23);
  return static_cast<uint16_t>(sign | round_off((bits & 0x7fffff) | 0x800000, shift));
}

RISE_CODE float half_number(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)  // infinity, NaN
    return bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  float number = static_cast<float>(magnitude) * 0x1p-24f;
  return sign ? -number : number;
}

RISE_CODE uint16_t bfloat16_bits(float number) {
  uint32_t bits = bit_cast<uint32_t>(number);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>(round_off(bits, 16));
}

RISE_CODE float bfloat16_number(uint16_t bits) {
  return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// A double as a float, rounded to odd: rounding the float to 16 bits gives the same as rounding the double.
RISE_CODE float rounded_to_odd(double number) {
  float near = static_cast<float>(number);
  double back = near;
  if (back == number || number != number) return near;
  uint32_t bits = bit_cast<uint32_t>(near);
  if (__builtin_fabs(back) > __builtin_fabs(number)) bits--;
  return bit_cast<float>(bits | 1);
}

// The sum of two numbers, rounded to odd, so that it can be rounded again correctly (Knuth).
RISE_CODE double sum_to_odd(double a, double b) {
  double total = a + b, part = total - a;
  double rest = (a - (total - part)) + (b - part);
  uint64_t bits = bit_cast<uint64_t>(total);
  if (!(rest - rest == 0) || rest == 0 || (bits & 1)) return total;
  return bit_cast<double>((rest > 0) == (total > 0) ? bits + 1 : bits - 1);
}

// Whether an element converts to a number of a class: it is one, or of a built-in type.
template <class A, class Name>
constexpr bool converts() {
  if constexpr (is_accessor<A>) {
    using Value = decltype(std::declval<A>().read());
    return std::is_same<Value, Name>::value || std::is_arithmetic<Value>::value;
  } else {
    return false;
  }
}

// Whether an element is a number of a class.
template <class A, class Name>
constexpr bool is_one() {
  if constexpr (is_accessor<A>)
    return std::is_same<decltype(std::declval<A>().read()), Name>::value;
  else
    return false;
}

template <class A, class Name>
using IfIs = typename std::enable_if<is_one<A, Name>(), int>::type;

template <class A, class Name>
using IfConverts = typename std::enable_if<converts<A, Name>(), int>::type;

}  // namespace rise_emulation

#define RISE_NUMBER(Name, to_bits, to_number)                                          \
  struct Name {                                                                        \
    uint16_t bits;                                                                     \
                                                                                       \
    Name() = default;                                                                  \
    Name(float number) : bits(rise_emulation::to_bits(number)) {}                      \
    Name(double number) : Name(rise_emulation::rounded_to_odd(number)) {}              \
    Name(int number) : Name(static_cast<double>(number)) {}                            \
    Name(unsigned number) : Name(static_cast<double>(number)) {}                       \
    Name(long long number) : Name(static_cast<double>(number)) {}                      \
    template <class A, rise_emulation::IfConverts<A, Name> = 0>                        \
    Name(const A& element) : Name(element.read()) {}                                   \
                                                                                       \
    operator float() const { return rise_emulation::to_number(bits); }                 \
    Name& operator+=(Name other) { return *this = *this + other; }                     \
    Name& operator-=(Name other) { return *this = *this - other; }                     \
    Name& operator*=(Name other) { return *this = *this * other; }                     \
    Name& operator/=(Name other) { return *this = *this / other; }                     \
    Name operator-() const { return from_bits(static_cast<uint16_t>(bits ^ 0x8000)); } \
                                                                                       \
    static Name from_bits(uint16_t bits) {                                             \
      Name result;                                                                     \
      result.bits = bits;                                                              \
      return result;                                                                   \
    }                                                                                  \
    friend Name operator+(Name a, Name b) { return Name(float(a) + float(b)); }        \
    friend Name operator-(Name a, Name b) { return Name(float(a) - float(b)); }        \
    friend Name operator*(Name a, Name b) { return Name(float(a) * float(b)); }        \
    friend Name operator/(Name a, Name b) { return Name(float(a) / float(b)); }        \
    friend bool operator==(Name a, Name b) { return float(a) == float(b); }            \
    friend bool operator!=(Name a, Name b) { return float(a) != float(b); }            \
    friend bool operator<(Name a, Name b) { return float(a) < float(b); }              \
    friend bool operator>(Name a, Name b) { return float(a) > float(b); }              \
    friend bool operator<=(Name a, Name b) { return float(a) <= float(b); }            \
    friend bool operator>=(Name a, Name b) { return float(a) >= float(b); }            \
  };

RISE_NUMBER(__half, half_bits, half_number)
RISE_NUMBER(__nv_bfloat16, bfloat16_bits, bfloat16_number)
#undef RISE_NUMBER

using half = __half;
using bfloat16 = __nv_bfloat16;

RISE_CODE float __half2float(half number) { return number; }
RISE_CODE half __float2half(float number) { return number; }
RISE_CODE half __float2half_rn(float number) { return number; }
RISE_CODE half __double2half(double number) { return number; }
RISE_CODE half __int2half_rn(int number) { return number; }
RISE_CODE half __ushort_as_half(unsigned short bits) { return half::from_bits(bits); }
RISE_CODE unsigned short __half_as_ushort(half number) { return number.bits; }

RISE_CODE float from_bfloat16(bfloat16 number) { return number; }
RISE_CODE bfloat16 __float2bfloat16(float number) { return number; }
RISE_CODE bfloat16 __float2bfloat16_rn(float number) { return number; }
RISE_CODE bfloat16 __double2bfloat16(double number) { return number; }
RISE_CODE bfloat16 __int2bfloat16_rn(int number) { return number; }
RISE_CODE bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return bfloat16::from_bits(bits);
}
RISE_CODE unsigned short __bfloat16_as_ushort(bfloat16 number) { return number.bits; }

// A float with 10 bits of fraction: its low 13 bits are zero. It supports only conversions.
struct tf32 {
  float number;

  tf32() = default;
  explicit tf32(double exact) : number(static_cast<float>(exact)) {}
  template <class A, rise_emulation::IfIs<A, tf32> = 0>
  tf32(const A& element) : tf32(element.read()) {}
  explicit operator float() const { return number; }
};

// Rounds to nearest, ties away from zero: magnitudes are ordered like their bits.
RISE_CODE tf32 to_tf32(float number) {
  uint32_t bits = rise_emulation::bit_cast<uint32_t>(number);
  bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  tf32 result;
  result.number = rise_emulation::bit_cast<float>((is_nan ? 0x7fffffffu : bits + 0x1000u) & 0xffffe000u);
  return result;
}
RISE_CODE float from_tf32(tf32 number) { return number.number; }

// Maximum and minimum ignore a NaN on one side; __hfma rounds once: its product is exact in double, and
// its sum rounded to odd.
#define RISE_NUMBER_FUNCTIONS(Name)                                                        \
  static inline Name __hadd(Name a, Name b) { return a + b; }                              \
  static inline Name __hsub(Name a, Name b) { return a - b; }                              \
  static inline Name __hmul(Name a, Name b) { return a * b; }                              \
  static inline Name __hdiv(Name a, Name b) { return a / b; }                              \
  static inline Name __hneg(Name a) { return -a; }                                         \
  static inline Name __hmax(Name a, Name b) { return Name(__builtin_fmaxf(a, b)); }        \
  static inline Name __hmin(Name a, Name b) { return Name(__builtin_fminf(a, b)); }        \
  static inline Name __habs(Name a) { return Name(__builtin_fabsf(a)); }                   \
  static inline Name __hfma(Name a, Name b, Name c) {                                      \
    return Name(rise_emulation::sum_to_odd(double(float(a)) * float(b), float(c)));        \
  }                                                                                        \
  static inline Name hexp(Name a) { return Name(__builtin_expf(a)); }                      \
  static inline Name hlog(Name a) { return Name(__builtin_logf(a)); }                      \
  static inline Name hsqrt(Name a) { return Name(__builtin_sqrtf(a)); }

RISE_NUMBER_FUNCTIONS(__half)
RISE_NUMBER_FUNCTIONS(__nv_bfloat16)
#undef RISE_NUMBER_FUNCTIONS

RISE_CODE bfloat16 fma_bfloat16(bfloat16 a, bfloat16 b, bfloat16 c) { return __hfma(a, b, c); }
