// Volta's products: each of the four quad-pairs of a warp executes m8n8k4, together a 16×16×4 product. Two of
// these make the 16×16×8 product of paper 000, eight the 32×32×8 one. Operands have their memory layout.
#pragma once

namespace volta {

using ::fill_fragment;

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;

// The registers of a lane; two lanes hold each element of an operand.
template <class Use, int m, int n>
struct Elements;
template <int m, int n>
struct Elements<matrix_a, m, n> {
  enum { number = m / 2 };
};
template <int m, int n>
struct Elements<matrix_b, m, n> {
  enum { number = n / 2 };
};
template <int m, int n>
struct Elements<accumulator, m, n> {
  enum { number = m * n / 32 };
};

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  enum { num_elements = Elements<Use, m, n>::number };
  alignas(16) T x[num_elements];
};

template <class D, class A, class B>
struct Product;

#define RISE_PRODUCT(D, A, a_layout, B, b_layout, types, ...)                                              \
  template <>                                                                                              \
  struct Product<D, A, B> {                                                                                \
    RISE_MMA(D, unsigned, "mma.sync.aligned.m8n8k4." a_layout "." b_layout "." types, __VA_ARGS__)         \
  };
#define RISE_VOLTA(...)                                                      \
  RISE_PRODUCT(float, __VA_ARGS__, "f32.f16.f16.f32", float, "f", 8, 2, 2)   \
  RISE_PRODUCT(half, __VA_ARGS__, "f16.f16.f16.f16", unsigned, "r", 4, 2, 2)

RISE_VOLTA(row_major, "row", row_major, "row")
RISE_VOLTA(row_major, "row", col_major, "col")
RISE_VOLTA(col_major, "col", row_major, "row")
RISE_VOLTA(col_major, "col", col_major, "col")

#undef RISE_VOLTA
#undef RISE_PRODUCT

// d = a * b + c, by all lanes of a warp: 16×16 tiles, each in two steps of k.
template <int m, int n, class D, class A, class B>
__device__ __forceinline__ void mma_sync(fragment<accumulator, m, n, 8, D>& d,
                                         const fragment<matrix_a, m, n, 8, half, A>& a,
                                         const fragment<matrix_b, m, n, 8, half, B>& b,
                                         const fragment<accumulator, m, n, 8, D>& c) {
  const unsigned* left = reinterpret_cast<const unsigned*>(a.x);
  const unsigned* right = reinterpret_cast<const unsigned*>(b.x);
#pragma unroll
  for (int i = 0; i < m / 16; i += 1) {
#pragma unroll
    for (int j = 0; j < n / 16; j += 1) {
      const int tile = 8 * (i * (n / 16) + j);
      Product<D, A, B>::run(d.x + tile, left + 4 * i, right + 4 * j, c.x + tile);
      Product<D, A, B>::run(d.x + tile, left + 4 * i + 2, right + 4 * j + 2, d.x + tile);
    }
  }
}

}  // namespace volta
