// Fragments whose elements' places are known, and products of them by mma.sync (sm_80 and later).
// A fragment of several 16×8 tiles has the registers of one tile after the other.
#pragma once

// A float with 10 bits of fraction, 19 in all: the low 13 are zero.
struct tf32 {
  float number;
};

// Rounds to nearest, ties away from zero. Of what the instruction gives, the low bits are of no meaning.
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

namespace mma {

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

// What a lane holds of a tile. 6 halves, of n = 24 and k = 8, are 12 bytes: aligned to 4.
template <class Use, int m, int n, int k, class T>
struct fragment {
  enum { num_elements = Elements<Use, m, n, k>::number, bytes = num_elements * sizeof(T) };
  alignas(bytes < 16 ? bytes & -bytes : 16) T x[num_elements];
};

template <class Use, int m, int n, int k, class T>
__device__ __forceinline__ void fill_fragment(fragment<Use, m, n, k, T>& target, T number) {
#pragma unroll
  for (int i = 0; i < target.num_elements; i += 1) target.x[i] = number;
}

// One instruction: d, a, b, c are the lane's registers.
template <int k, class D, class S>
struct Product;

#define RISE_MMA_4_4_2(k, D, S, constraint, Register, types)                                      \
  template <>                                                                                     \
  struct Product<k, D, S> {                                                                       \
    static __device__ __forceinline__ void run(D* d, const S* a, const S* b, const D* c) {        \
      const unsigned* x = reinterpret_cast<const unsigned*>(a);                                   \
      const unsigned* y = reinterpret_cast<const unsigned*>(b);                                   \
      Register* target = reinterpret_cast<Register*>(d);                                          \
      const Register* sum = reinterpret_cast<const Register*>(c);                                 \
      asm volatile("mma.sync.aligned.m16n8k" #k ".row.col." types                                 \
                   " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                   \
                   : "=" constraint(target[0]), "=" constraint(target[1]),                        \
                     "=" constraint(target[2]), "=" constraint(target[3])                         \
                   : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]),            \
                     constraint(sum[0]), constraint(sum[1]), constraint(sum[2]),                  \
                     constraint(sum[3]));                                                         \
    }                                                                                             \
  };

#define RISE_MMA_4_2_1(k, D, S, constraint, Register, types)                                      \
  template <>                                                                                     \
  struct Product<k, D, S> {                                                                       \
    static __device__ __forceinline__ void run(D* d, const S* a, const S* b, const D* c) {        \
      const unsigned* x = reinterpret_cast<const unsigned*>(a);                                   \
      const unsigned* y = reinterpret_cast<const unsigned*>(b);                                   \
      Register* target = reinterpret_cast<Register*>(d);                                          \
      const Register* sum = reinterpret_cast<const Register*>(c);                                 \
      asm volatile("mma.sync.aligned.m16n8k" #k ".row.col." types                                 \
                   " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"                               \
                   : "=" constraint(target[0]), "=" constraint(target[1]),                        \
                     "=" constraint(target[2]), "=" constraint(target[3])                         \
                   : "r"(x[0]), "r"(x[1]), "r"(y[0]), constraint(sum[0]), constraint(sum[1]),     \
                     constraint(sum[2]), constraint(sum[3]));                                     \
    }                                                                                             \
  };

RISE_MMA_4_4_2(16, float, half, "f", float, "f32.f16.f16.f32")
RISE_MMA_4_4_2(16, float, bfloat16, "f", float, "f32.bf16.bf16.f32")
RISE_MMA_4_4_2(8, float, tf32, "f", float, "f32.tf32.tf32.f32")
RISE_MMA_4_4_2(32, int, signed char, "r", int, "s32.s8.s8.s32")
RISE_MMA_4_2_1(8, float, half, "f", float, "f32.f16.f16.f32")
RISE_MMA_4_2_1(8, float, bfloat16, "f", float, "f32.bf16.bf16.f32")

#undef RISE_MMA_4_4_2
#undef RISE_MMA_4_2_1

// Accumulators of half are two registers of two.
template <>
struct Product<16, half, half> {
  static __device__ __forceinline__ void run(half* d, const half* a, const half* b, const half* c) {
    const unsigned* x = reinterpret_cast<const unsigned*>(a);
    const unsigned* y = reinterpret_cast<const unsigned*>(b);
    unsigned* target = reinterpret_cast<unsigned*>(d);
    const unsigned* sum = reinterpret_cast<const unsigned*>(c);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
                 : "=r"(target[0]), "=r"(target[1])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(sum[0]),
                   "r"(sum[1]));
  }
};
template <>
struct Product<8, half, half> {
  static __device__ __forceinline__ void run(half* d, const half* a, const half* b, const half* c) {
    const unsigned* x = reinterpret_cast<const unsigned*>(a);
    const unsigned* y = reinterpret_cast<const unsigned*>(b);
    unsigned* target = reinterpret_cast<unsigned*>(d);
    const unsigned* sum = reinterpret_cast<const unsigned*>(c);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%5,%6};"
                 : "=r"(target[0]), "=r"(target[1])
                 : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(sum[0]), "r"(sum[1]));
  }
};

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

// Loads `count` matrices of 8 rows of 16 bytes from shared memory; lane 8j + i says where row i of
// matrix j is, and gets 4 bytes of row lane / 4 of each.
template <int count, class T>
__device__ __forceinline__ void load_matrices(T* registers, const T* row) {
  unsigned* target = reinterpret_cast<unsigned*>(registers);
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(target[0]), "=r"(target[1]), "=r"(target[2]), "=r"(target[3]) : "r"(place));
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(target[0]), "=r"(target[1]) : "r"(place));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(target[0]) : "r"(place));
}

// The same with rows and columns of each matrix of 16-bit elements exchanged.
template <int count, class T>
__device__ __forceinline__ void load_matrices_transposed(T* registers, const T* row) {
  unsigned* target = reinterpret_cast<unsigned*>(registers);
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (count == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(target[0]), "=r"(target[1]), "=r"(target[2]), "=r"(target[3]) : "r"(place));
  else if constexpr (count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(target[0]), "=r"(target[1]) : "r"(place));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(target[0]) : "r"(place));
}
