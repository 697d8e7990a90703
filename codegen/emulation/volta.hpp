// Volta's fragments and products. The places of elements come from the compiler, as for mma.hpp; two lanes
// hold each element of an operand, and have to agree.
#pragma once

#include "mma.hpp"

namespace volta {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;

template <class Layout>
constexpr int layout_number = std::is_same<Layout, row_major>::value   ? 1
                              : std::is_same<Layout, col_major>::value ? 2
                                                                       : 0;

template <class Use, int m, int n, int k, class T, class Layout>
struct Form;
template <int m, int n, int k, class T, class Layout>
struct Form<matrix_a, m, n, k, T, Layout> {
  using P = rise_emulation::Places<1, 1, sizeof(T), k, layout_number<Layout>>;
  static constexpr int rows = m, columns = k;
};
template <int m, int n, int k, class T, class Layout>
struct Form<matrix_b, m, n, k, T, Layout> {
  using P = rise_emulation::Places<1, 2, sizeof(T), k, layout_number<Layout>>;
  static constexpr int rows = k, columns = n;
};
template <int m, int n, int k, class T>
struct Form<accumulator, m, n, k, T, void> {
  using P = rise_emulation::Places<1, 3, sizeof(T), 0, 0>;
  static constexpr int rows = m, columns = n;
};

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  using element_type = T;
  using L = Form<Use, m, n, k, T, Layout>;
  static constexpr int rows = L::rows, columns = L::columns;
  enum { num_elements = L::P::registers(m / 16, n / 16) };

  static int element(int lane, int r) {
    return L::P::row(m / 16, n / 16, lane, r) * columns + L::P::column(m / 16, n / 16, lane, r);
  }

  rise_emulation::LocalArray<T, num_elements, rise_emulation::UninitialisedFragment> x;
};

template <class Use, int m, int n, int k, class T, class Layout>
static inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& target,
                                 typename std::common_type<T>::type number) {
  for (int i = 0; i < target.num_elements; i++) {
    target.x.values[i] = number;
    target.x.written[i] = true;
  }
}

template <int m, int n, class D, class ALayout, class BLayout>
static inline void mma_sync(fragment<accumulator, m, n, 8, D>& d,
                            const fragment<matrix_a, m, n, 8, half, ALayout>& a,
                            const fragment<matrix_b, m, n, 8, half, BLayout>& b,
                            const fragment<accumulator, m, n, 8, D>& c, int line = __builtin_LINE()) {
  using A = const fragment<matrix_a, m, n, 8, half, ALayout>;
  using B = const fragment<matrix_b, m, n, 8, half, BLayout>;
  using C = const fragment<accumulator, m, n, 8, D>;
  using R = fragment<accumulator, m, n, 8, D>;
  rise_emulation::check_whole_warp("mma_sync", line);
  rise_emulation::Product<R, A, B, C> operands{&d, &a, &b, &c};
  rise_emulation::meet("mma_sync", line, rise_emulation::perform_known_product<R, A, B, C>,
                       &operands);
}

}  // namespace volta
