// Tensor-core fragments. CUDA leaves open which lane holds which element, so here the elements are
// dealt out at random, one way for each fragment type and seed: text that relies on a distribution
// fails, text that treats equal fragments element by element does not.
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

// Elements per lane. A and B of half have 16 in all shapes: each element is there up to four times.
template <class Use, int m, int n, int k, class T>
constexpr int elements_per_lane =
    !std::is_same<Use, accumulator>::value && std::is_same<T, half>::value
        ? 16
        : Extent<Use, m, n, k>::rows * Extent<Use, m, n, k>::columns / 32;

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static_assert(exists<Use, m, n, k, T, Layout>, "there is no such fragment");
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

// Where the elements of a fragment type are: slot `lane * num_elements + i` is `x[i]` of a lane.
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

static inline int first_lane() { return machine.current / lanes_per_warp * lanes_per_warp; }

static inline void check_whole_warp(const char* operation, int line) {
  int lanes = machine.warps[machine.current / lanes_per_warp].lanes;
  if (lanes != lanes_per_warp)
    RISE_FAULT(DivergentCollective, line, "%s calls %s (line %d) in a warp of only %d threads",
               place_name(machine.current).characters, operation, line, lanes);
}

__attribute__((noinline, cold)) static void not_uniform(const char* what, int lane, int line) {
  RISE_FAULT(DivergentCollective, line,
             "divergent collective: %s passes another %s than %s of its warp",
             place_name(first_lane() + lane).characters, what,
             thread_name(first_lane()).characters);
}

// All lanes pass the same variable: it is at the same place in the stacks of all.
static inline void check_same_variable(int lane, const void* first, const void* other, int line) {
  size_t thread = static_cast<size_t>(first_lane());
  ptrdiff_t expected = static_cast<const char*>(first) - machine.stacks[thread];
  ptrdiff_t found = static_cast<const char*>(other) -
                    machine.stacks[thread + static_cast<size_t>(lane)];
  if (expected != found) not_uniform("fragment", lane, line);
}

// The matrix that the lanes hold together.
template <class F>
static void gather(F* const* lanes, Type<F>* matrix, const char* operation, int line) {
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
static void scatter(F* const* lanes, const Type<F>* matrix) {
  const Distribution<F>& places = Distribution<F>::get();
  for (int slot = 0; slot < places.slots; slot++) {
    F& fragment = *lanes[slot / F::num_elements];
    fragment.x.values[slot % F::num_elements] = matrix[places.element_of[slot]];
    fragment.x.written[slot % F::num_elements] = true;
  }
}

// What a lane passes to a load or store; `T` is const for a load.
template <class F, class T>
struct Tile {
  F* fragment;
  Pointer<T> pointer;
  unsigned stride;
  layout_t layout;

  Access element(int number, int lane, int line) const {
    int64_t row = number / F::columns, column = number % F::columns;
    int64_t offset = layout == nvcuda::wmma::mem_row_major ? row * stride + column
                                                           : column * stride + row;
    return pointer.at(offset, first_lane() + lane, line);
  }

  void check_same(const Tile& other, int lane, int line) const {
    check_same_variable(lane, fragment, other.fragment, line);
    if (pointer.memory != other.pointer.memory || pointer.origin != other.pointer.origin ||
        pointer.index != other.pointer.index)
      not_uniform("pointer", lane, line);
    if (stride != other.stride) not_uniform("leading dimension", lane, line);
    if (layout != other.layout) not_uniform("layout", lane, line);
  }

  void check_legal(const char* operation, int line) const {
    constexpr unsigned multiple = 16 / sizeof(T);
    if (stride % multiple != 0)
      RISE_FAULT(LeadingDimension, line, "%s with leading dimension %u, no multiple of %u",
                 operation, stride, multiple);
    Access corner = element(0, 0, line);
    if (corner.memory && corner.byte() % 32 != 0)
      RISE_FAULT(Misaligned, line, "%s of a tile at %s, not aligned to 32 bytes", operation,
                 corner.name().characters);
  }
};

template <class F, class T>
static const Tile<F, T>& common_tile(void** operands, F** lanes, const char* operation, int line) {
  const Tile<F, T>& first = *static_cast<const Tile<F, T>*>(operands[0]);
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    const Tile<F, T>& tile = *static_cast<const Tile<F, T>*>(operands[lane]);
    first.check_same(tile, lane, line);
    lanes[lane] = tile.fragment;
  }
  first.check_legal(operation, line);
  return first;
}

template <class F>
static void perform_load(void** operands, int line) {
  using T = Type<F>;
  F* lanes[lanes_per_warp];
  const auto& tile = common_tile<F, const T>(operands, lanes, "load_matrix_sync", line);
  const Distribution<F>& places = Distribution<F>::get();
  T matrix[places.elements];
  for (int element = 0; element < places.elements; element++) {
    Access access = tile.element(element, places.lane_of(element), line);
    __builtin_memcpy(&matrix[element], checked_read(access), sizeof(T));
  }
  scatter(lanes, matrix);
}

template <class F>
static void perform_store(void** operands, int line) {
  using T = Type<F>;
  F* lanes[lanes_per_warp];
  const auto& tile = common_tile<F, T>(operands, lanes, "store_matrix_sync", line);
  const Distribution<F>& places = Distribution<F>::get();
  T matrix[places.elements];
  gather(lanes, matrix, "store_matrix_sync", line);
  for (int element = 0; element < places.elements; element++) {
    Access access = tile.element(element, places.lane_of(element), line);
    __builtin_memcpy(checked_write(access), &matrix[element], sizeof(T));
  }
}

template <class F>
static void load(F& fragment, Pointer<const Type<F>> source, unsigned stride, layout_t layout,
                 int line) {
  check_whole_warp("load_matrix_sync", line);
  Tile<F, const Type<F>> tile{&fragment, source, stride, layout};
  meet("load_matrix_sync", line, perform_load<F>, &tile);
}

// What a lane passes to mma_sync.
template <class D, class A, class B, class C>
struct Product {
  D* d;
  A* a;
  B* b;
  C* c;
};

// Products of 16-bit numbers are exact in float; a sum is rounded to the accumulator at its end.
template <int m, int n, int k>
static inline void multiply(const float* a, const float* b, float* sum) {
  for (int row = 0; row < m; row++)
    for (int step = 0; step < k; step++)
      for (int column = 0; column < n; column++)
        sum[row * n + column] += a[row * k + step] * b[step * n + column];
}

template <class F>
static void gather_floats(F* const* lanes, float* numbers, int line) {
  Type<F> matrix[F::rows * F::columns];
  gather(lanes, matrix, "mma_sync", line);
  for (int element = 0; element < F::rows * F::columns; element++)
    numbers[element] = matrix[element];
}

template <class D, class A, class B, class C>
static void perform_product(void** operands, int line) {
  using Operands = Product<D, A, B, C>;
  D* d[lanes_per_warp];
  A* a[lanes_per_warp];
  B* b[lanes_per_warp];
  C* c[lanes_per_warp];
  const Operands& first = *static_cast<const Operands*>(operands[0]);
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    const Operands& own = *static_cast<const Operands*>(operands[lane]);
    check_same_variable(lane, first.d, d[lane] = own.d, line);
    check_same_variable(lane, first.a, a[lane] = own.a, line);
    check_same_variable(lane, first.b, b[lane] = own.b, line);
    check_same_variable(lane, first.c, c[lane] = own.c, line);
  }
  float left[A::rows * A::columns], right[B::rows * B::columns], sum[D::rows * D::columns];
  gather_floats(a, left, line);
  gather_floats(b, right, line);
  gather_floats(c, sum, line);
  multiply<A::rows, B::columns, A::columns>(left, right, sum);
  Type<D> rounded[D::rows * D::columns];
  for (int element = 0; element < D::rows * D::columns; element++)
    rounded[element] = Type<D>(sum[element]);
  scatter(d, rounded);
}

}  // namespace rise_emulation

namespace nvcuda {
namespace wmma {

template <class Use, int m, int n, int k, class T, class Layout>
static inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& target,
                                 typename std::common_type<T>::type number) {
  for (int i = 0; i < target.num_elements; i++) {
    target.x.values[i] = number;
    target.x.written[i] = true;
  }
}

template <class Use, int m, int n, int k, class T, class Layout>
static inline void load_matrix_sync(
    fragment<Use, m, n, k, T, Layout>& target,
    typename std::common_type<rise_emulation::Pointer<const T>>::type source, unsigned stride,
    int line = __builtin_LINE()) {
  static_assert(layout_number<Layout> != 0, "an accumulator is loaded with a layout");
  layout_t layout = layout_number<Layout> == 1 ? mem_row_major : mem_col_major;
  rise_emulation::load(target, source, stride, layout, line);
}

template <int m, int n, int k, class T>
static inline void load_matrix_sync(
    fragment<accumulator, m, n, k, T>& target,
    typename std::common_type<rise_emulation::Pointer<const T>>::type source, unsigned stride,
    layout_t layout, int line = __builtin_LINE()) {
  rise_emulation::load(target, source, stride, layout, line);
}

template <int m, int n, int k, class T>
static inline void store_matrix_sync(
    typename std::common_type<rise_emulation::Pointer<T>>::type target,
    const fragment<accumulator, m, n, k, T>& source, unsigned stride, layout_t layout,
    int line = __builtin_LINE()) {
  using F = fragment<accumulator, m, n, k, T>;
  rise_emulation::check_whole_warp("store_matrix_sync", line);
  rise_emulation::Tile<F, T> tile{const_cast<F*>(&source), target, stride, layout};
  rise_emulation::meet("store_matrix_sync", line, rise_emulation::perform_store<F>, &tile);
}

template <int m, int n, int k, class T, class Sum, class Result, class ALayout, class BLayout>
static inline void mma_sync(fragment<accumulator, m, n, k, Result>& d,
                            const fragment<matrix_a, m, n, k, T, ALayout>& a,
                            const fragment<matrix_b, m, n, k, T, BLayout>& b,
                            const fragment<accumulator, m, n, k, Sum>& c,
                            int line = __builtin_LINE()) {
  static_assert(std::is_same<T, half>::value || (std::is_same<Sum, float>::value &&
                                                 std::is_same<Result, float>::value),
                "bfloat16 accumulates in float");
  using A = const fragment<matrix_a, m, n, k, T, ALayout>;
  using B = const fragment<matrix_b, m, n, k, T, BLayout>;
  using C = const fragment<accumulator, m, n, k, Sum>;
  using D = fragment<accumulator, m, n, k, Result>;
  rise_emulation::check_whole_warp("mma_sync", line);
  rise_emulation::Product<D, A, B, C> operands{&d, &a, &b, &c};
  rise_emulation::meet("mma_sync", line, rise_emulation::perform_product<D, A, B, C>, &operands);
}

}  // namespace wmma
}  // namespace nvcuda
