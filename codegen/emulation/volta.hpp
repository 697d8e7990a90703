// Volta's fragments and products. Two lanes hold each element of an operand, and must agree on it.
#pragma once

#include "products.hpp"

namespace volta {

using nvcuda::wmma::accumulator;
using nvcuda::wmma::col_major;
using nvcuda::wmma::layout_number;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using nvcuda::wmma::row_major;
using rise_emulation::fill_fragment;

template <class Use, int m, int n, int k>
using Extent = nvcuda::wmma::Extent<Use, m, n, k>;

template <class Use, int m, int n, int k, class T, class Layout>
struct Places {
  using type = rise_emulation::Places<1, Extent<Use, m, n, k>::number, sizeof(T), k, layout_number<Layout>>;
};
template <int m, int n, int k, class T>
struct Places<accumulator, m, n, k, T, void> {
  using type = rise_emulation::Places<1, 3, sizeof(T), 0, 0>;
};

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment : rise_emulation::KnownFragment<typename Places<Use, m, n, k, T, Layout>::type,
                                                Extent<Use, m, n, k>, m / 16, n / 16, T> {};

template <int m, int n, class D, class ALayout, class BLayout>
static inline void mma_sync(fragment<accumulator, m, n, 8, D>& d,
                            const fragment<matrix_a, m, n, 8, half, ALayout>& a,
                            const fragment<matrix_b, m, n, 8, half, BLayout>& b,
                            const fragment<accumulator, m, n, 8, D>& c, int line = __builtin_LINE()) {
  rise_emulation::mma_sync(d, a, b, c, line);
}

}  // namespace volta
