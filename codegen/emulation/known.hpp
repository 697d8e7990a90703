// Fragments with a known layout. The layout comes from the compiler (`Places`, before this text), so that
// text and machine cannot disagree.
#pragma once

#include "fragment.hpp"

namespace rise_emulation {

struct Known {};

template <class F>
constexpr bool is_known = std::is_base_of<Known, F>::value;

// `down` by `across` tiles of extent E together, whose elements have the layout P.
template <class P, class E, int down, int across, class T>
struct KnownFragment : Known {
  using element_type = T;
  static constexpr int rows = E::rows, columns = E::columns;
  enum { num_elements = P::registers(down, across) };

  static int element(int lane, int r) {
    return P::row(down, across, lane, r) * columns + P::column(down, across, lane, r);
  }

  LocalArray<T, num_elements, UninitialisedFragment> x;
};

template <class F, class Number>
static inline void gather_known(F* const* lanes, Number* matrix, int line) {
  bool known[F::rows * F::columns] = {};
  for (int lane = 0; lane < lanes_per_warp; lane++)
    for (int r = 0; r < F::num_elements; r++) {
      if (!lanes[lane]->x.written[r])
        RISE_FAULT(UninitialisedFragment, line, "mma_sync of a fragment that %s has not written",
                   place_name(first_lane() + lane).characters);
      Number number = static_cast<Number>(lanes[lane]->x.values[r]);
      int element = F::element(lane, r);
      if (known[element] && __builtin_memcmp(&matrix[element], &number, sizeof number) != 0)
        RISE_FAULT(DivergentCollective, line, "%s holds another value of element %d, %d than another lane",
                   place_name(first_lane() + lane).characters, element / F::columns,
                   element % F::columns);
      matrix[element] = number;
      known[element] = true;
    }
}

template <class F>
static inline void scatter_known(F* const* lanes, const Type<F>* matrix) {
  for (int lane = 0; lane < lanes_per_warp; lane++)
    for (int r = 0; r < F::num_elements; r++) {
      lanes[lane]->x.values[r] = matrix[F::element(lane, r)];
      lanes[lane]->x.written[r] = true;
    }
}

}  // namespace rise_emulation
