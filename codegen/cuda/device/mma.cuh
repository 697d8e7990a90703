// Fragments with a known layout, and their products by mma.sync (sm_80 and later).
// A fragment of several 16×8 tiles holds their registers tile by tile.
#pragma once

// Registers as operands of an instruction.
#define RISE_REGISTERS_1(constraint, r) constraint((r)[0])
#define RISE_REGISTERS_2(constraint, r) constraint((r)[0]), constraint((r)[1])
#define RISE_REGISTERS_4(constraint, r) RISE_REGISTERS_2(constraint, r), RISE_REGISTERS_2(constraint, (r) + 2)
#define RISE_REGISTERS_8(constraint, r) RISE_REGISTERS_4(constraint, r), RISE_REGISTERS_4(constraint, (r) + 4)

// d = a * b + c, where d and c have `sums` registers of type `Register`, a has `left` ones and b `right`.
#define RISE_MMA(D, S, instruction, Register, constraint, sums, left, right)                               \
  static __device__ __forceinline__ void run(D* d, const S* a, const S* b, const D* c) {                   \
    Register* target = reinterpret_cast<Register*>(d);                                                     \
    const unsigned* x = reinterpret_cast<const unsigned*>(a);                                              \
    const unsigned* y = reinterpret_cast<const unsigned*>(b);                                              \
    const Register* sum = reinterpret_cast<const Register*>(c);                                            \
    asm volatile(instruction " " RISE_MMA_##sums##_##left##_##right ";"                                    \
                 : RISE_REGISTERS_##sums("=" constraint, target)                                           \
                 : RISE_REGISTERS_##left("r", x), RISE_REGISTERS_##right("r", y),                          \
                   RISE_REGISTERS_##sums(constraint, sum));                                                \
  }
#define RISE_MMA_4_4_2 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13}"
#define RISE_MMA_4_2_2 "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}"
#define RISE_MMA_4_2_1 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10}"
#define RISE_MMA_2_4_2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9}"
#define RISE_MMA_2_2_1 "{%0,%1}, {%2,%3}, {%4}, {%5,%6}"
#define RISE_MMA_8_2_2 \
  "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%12,%13,%14,%15,%16,%17,%18,%19}"

// A float with 10 bits of fraction, 19 bits in all: the low 13 are zero.
struct tf32 {
  float number;
};

// Rounds to nearest, ties away from zero. The instruction leaves the low bits unspecified.
__device__ __forceinline__ tf32 to_tf32(float number) {
#if __CUDA_ARCH__ >= 800
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(number));
#else
  unsigned bits = number != number ? 0x7fffffffu : __float_as_uint(number) + 0x1000u;
#endif
  return {__uint_as_float(bits & 0xffffe000u)};
}
__device__ __forceinline__ float from_tf32(tf32 number) { return number.number; }

// All elements that a lane holds of a fragment with a known layout.
template <class Fragment, class T>
__device__ __forceinline__ void fill_fragment(Fragment& target, T number) {
#pragma unroll
  for (int i = 0; i < target.num_elements; i += 1) target.x[i] = number;
}

// The number of the lane whose number differs in these bits.
template <class T>
__device__ __forceinline__ T shuffle_xor(T number, int bits) {
  return __shfl_xor_sync(~0u, number, bits);
}

namespace mma {

using ::fill_fragment;

struct matrix_a;
struct matrix_b;
struct accumulator;

template <class Use, int m, int n, int k>
struct Elements;
template <int m, int n, int k>
struct Elements<matrix_a, m, n, k> {
  enum { number = m * k / 32 };
};
template <int m, int n, int k>
struct Elements<matrix_b, m, n, k> {
  enum { number = k * n / 32 };
};
template <int m, int n, int k>
struct Elements<accumulator, m, n, k> {
  enum { number = m * n / 32 };
};

// The registers of a lane for a tile. 6 halves, for n = 24 and k = 8, are 12 bytes: aligned to 4.
template <class Use, int m, int n, int k, class T>
struct fragment {
  enum { num_elements = Elements<Use, m, n, k>::number, bytes = num_elements * sizeof(T) };
  alignas(bytes < 16 ? bytes & -bytes : 16) T x[num_elements];
};

// The elements of a lane for the rows of an accumulator that it holds.
template <int n, class T>
struct column {
  enum { num_elements = n };
  T x[n];
};

// One instruction on the registers of a lane: d, a, b, c.
template <int k, class D, class S>
struct Product;

#define RISE_PRODUCT(k, D, S, types, ...)                                       \
  template <>                                                                   \
  struct Product<k, D, S> {                                                     \
    RISE_MMA(D, S, "mma.sync.aligned.m16n8k" #k ".row.col." types, __VA_ARGS__) \
  };

RISE_PRODUCT(16, float, half, "f32.f16.f16.f32", float, "f", 4, 4, 2)
RISE_PRODUCT(16, float, bfloat16, "f32.bf16.bf16.f32", float, "f", 4, 4, 2)
RISE_PRODUCT(8, float, tf32, "f32.tf32.tf32.f32", float, "f", 4, 4, 2)
RISE_PRODUCT(32, int, signed char, "s32.s8.s8.s32", int, "r", 4, 4, 2)
RISE_PRODUCT(8, float, half, "f32.f16.f16.f32", float, "f", 4, 2, 1)
RISE_PRODUCT(8, float, bfloat16, "f32.bf16.bf16.f32", float, "f", 4, 2, 1)
// two half accumulators share a register
RISE_PRODUCT(16, half, half, "f16.f16.f16.f16", unsigned, "r", 2, 4, 2)
RISE_PRODUCT(8, half, half, "f16.f16.f16.f16", unsigned, "r", 2, 2, 1)

#undef RISE_PRODUCT

// d = a * b + c, by all lanes of a warp, tile by tile.
template <int m, int n, int k, class S, class D>
__device__ __forceinline__ void mma_sync(fragment<accumulator, m, n, k, D>& d,
                                         const fragment<matrix_a, m, n, k, S>& a,
                                         const fragment<matrix_b, m, n, k, S>& b,
                                         const fragment<accumulator, m, n, k, D>& c) {
#pragma unroll
  for (int i = 0; i < m / 16; i += 1) {
#pragma unroll
    for (int j = 0; j < n / 8; j += 1) {
      const int tile = 4 * (i * (n / 8) + j);
      Product<k, D, S>::run(d.x + tile, a.x + i * (k / 2), b.x + j * (k / 4), c.x + tile);
    }
  }
}

}  // namespace mma

// Loads `count` matrices of 8 rows of 16 bytes from shared memory; lane 8j + i gives the address of row i of
// matrix j, and gets 4 bytes of row lane / 4 of each.
#define RISE_LOAD_MATRICES(name, form)                                                                   \
  template <int count, class T>                                                                          \
  __device__ __forceinline__ void name(T* registers, const T* row) {                                     \
    unsigned* target = reinterpret_cast<unsigned*>(registers);                                           \
    const unsigned place = shared_address(row);                                                          \
    if constexpr (count == 4)                                                                            \
      asm volatile("ldmatrix.sync.aligned.m8n8.x4" form ".shared.b16 {%0,%1,%2,%3}, [%4];"               \
                   : RISE_REGISTERS_4("=r", target) : "r"(place));                                       \
    else if constexpr (count == 2)                                                                       \
      asm volatile("ldmatrix.sync.aligned.m8n8.x2" form ".shared.b16 {%0,%1}, [%2];"                     \
                   : RISE_REGISTERS_2("=r", target) : "r"(place));                                       \
    else                                                                                                 \
      asm volatile("ldmatrix.sync.aligned.m8n8.x1" form ".shared.b16 {%0}, [%1];"                        \
                   : RISE_REGISTERS_1("=r", target) : "r"(place));                                       \
  }

RISE_LOAD_MATRICES(load_matrices, "")
// the same, transposing each matrix of 16-bit elements
RISE_LOAD_MATRICES(load_matrices_transposed, ".trans")

#undef RISE_LOAD_MATRICES
