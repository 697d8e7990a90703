// Tensor-core fragments. CUDA does not specify which lane holds which element, so the elements are
// distributed at random, in one way for each fragment type and seed: a kernel that relies on a distribution
// fails; one that treats equal fragments element by element does not.
#pragma once

#include "half.hpp"
#include "memory.hpp"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k>
struct Extent;
template <int m, int n, int k>
struct Extent<matrix_a, m, n, k> {
  static constexpr int rows = m, columns = k, number = 1;
};
template <int m, int n, int k>
struct Extent<matrix_b, m, n, k> {
  static constexpr int rows = k, columns = n, number = 2;
};
template <int m, int n, int k>
struct Extent<accumulator, m, n, k> {
  static constexpr int rows = m, columns = n, number = 3;
};

template <class Layout>
constexpr int layout_number = std::is_same<Layout, row_major>::value   ? 1
                              : std::is_same<Layout, col_major>::value ? 2
                                                                       : 0;

// Which fragments the hardware has.
template <class Use, int m, int n, int k, class T, class Layout>
constexpr bool exists =
    ((m == 16 && n == 16 && k == 16) || (m == 32 && n == 8 && k == 16) ||
     (m == 8 && n == 32 && k == 16)) &&
    (std::is_same<Use, accumulator>::value
         ? (std::is_same<T, float>::value || std::is_same<T, half>::value) &&
               std::is_same<Layout, void>::value
         : (std::is_same<T, bfloat16>::value || std::is_same<T, half>::value) &&
               layout_number<Layout> != 0);

// Elements per lane. A and B of half have 16 in all shapes: each element occurs up to four times.
template <class Use, int m, int n, int k, class T>
constexpr int elements_per_lane =
    !std::is_same<Use, accumulator>::value && std::is_same<T, half>::value
        ? 16
        : Extent<Use, m, n, k>::rows * Extent<Use, m, n, k>::columns / 32;

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static_assert(exists<Use, m, n, k, T, Layout>, "the hardware does not have this fragment");
  using element_type = T;
  static constexpr int rows = Extent<Use, m, n, k>::rows;
  static constexpr int columns = Extent<Use, m, n, k>::columns;
  static constexpr unsigned identity =
      static_cast<unsigned>(((Extent<Use, m, n, k>::number * 64 + m) * 64 + n) * 64 +
                            layout_number<Layout> * 8 + static_cast<int>(sizeof(T)) +
                            (std::is_same<T, bfloat16>::value ? 1 : 0));
  enum { num_elements = elements_per_lane<Use, m, n, k, T> };

  rise_emulation::LocalArray<T, num_elements, rise_emulation::UninitialisedFragment> x;
};

}  // namespace wmma
}  // namespace nvcuda

namespace rise_emulation {

using nvcuda::wmma::accumulator;
using nvcuda::wmma::fragment;
using nvcuda::wmma::layout_number;
using nvcuda::wmma::layout_t;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;

// The layout of a fragment type: slot `lane * num_elements + i` is `x[i]` of a lane.
template <class F>
struct Distribution {
  static constexpr int slots = F::num_elements * lanes_per_warp;
  static constexpr int elements = F::rows * F::columns;
  uint16_t element_of[slots];
  uint16_t slot_of[elements];  // of the copies of an element, the one that is used
  unsigned launch;

  static const Distribution& get() {
    static Distribution only;
    if (only.launch != machine.launches) only.deal();
    return only;
  }

  void deal() {
    uint16_t order[slots];
    for (int slot = 0; slot < slots; slot++) order[slot] = static_cast<uint16_t>(slot);
    Random random{machine.seed * 0x100000001b3u + F::identity};
    random.shuffle(order, slots);
    for (int place = slots - 1; place >= 0; place--) {
      element_of[order[place]] = static_cast<uint16_t>(place % elements);
      slot_of[place % elements] = order[place];
    }
    launch = machine.launches;
  }

  int lane_of(int element) const { return slot_of[element] / F::num_elements; }
};

template <class F>
using Type = typename F::element_type;

RISE_CODE int first_lane() { return machine.current / lanes_per_warp * lanes_per_warp; }

// The matrix that the lanes hold together.
template <class F>
static inline void gather(F* const* lanes, Type<F>* matrix, const char* operation, int line) {
  const Distribution<F>& places = Distribution<F>::get();
  for (int lane = 0; lane < lanes_per_warp; lane++)
    for (int i = 0; i < F::num_elements; i++)
      if (!lanes[lane]->x.written[i])
        RISE_FAULT(UninitialisedFragment, line, "%s of a fragment that %s has not written",
                   operation, place_name(first_lane() + lane).characters);
  for (int element = 0; element < places.elements; element++) {
    int slot = places.slot_of[element];
    matrix[element] = lanes[slot / F::num_elements]->x.values[slot % F::num_elements];
  }
}

template <class F>
static inline void scatter(F* const* lanes, const Type<F>* matrix) {
  const Distribution<F>& places = Distribution<F>::get();
  for (int slot = 0; slot < places.slots; slot++) {
    F& fragment = *lanes[slot / F::num_elements];
    fragment.x.values[slot % F::num_elements] = matrix[places.element_of[slot]];
    fragment.x.written[slot % F::num_elements] = true;
  }
}

}  // namespace rise_emulation
