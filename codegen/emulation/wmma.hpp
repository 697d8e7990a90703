// Fragments with an unspecified layout: loads, stores, products.
#pragma once

#include "products.hpp"

namespace rise_emulation {

// The arguments of a lane to a load or store; `T` is const for a load.
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
      RISE_FAULT(LeadingDimension, line, "%s with leading dimension %u, not a multiple of %u",
                 operation, stride, multiple);
    Access corner = element(0, 0, line);
    if (corner.memory && corner.byte() % 32 != 0)
      RISE_FAULT(Misaligned, line, "%s of a tile at %s, not aligned to 32 bytes", operation,
                 corner.name().characters);
  }
};

template <class F, class T>
static inline const Tile<F, T>& common_tile(void** operands, F** lanes, const char* operation, int line) {
  const Tile<F, T>& first = *static_cast<const Tile<F, T>*>(operands[0]);
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    const Tile<F, T>& tile = *static_cast<const Tile<F, T>*>(operands[lane]);
    first.check_same(tile, lane, line);
    lanes[lane] = tile.fragment;
  }
  first.check_legal(operation, line);
  return first;
}

// The loads and stores of a warp.
template <class F>
struct Whole {
  static void load(void** operands, int line) {
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

  static void store(void** operands, int line) {
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
};

template <class F>
static inline void load(F& fragment, Pointer<const Type<F>> source, unsigned stride, layout_t layout,
                 int line) {
  check_whole_warp("load_matrix_sync", line);
  Tile<F, const Type<F>> tile{&fragment, source, stride, layout};
  meet("load_matrix_sync", line, Whole<F>::load, &tile);
}

}  // namespace rise_emulation

namespace nvcuda {
namespace wmma {

using rise_emulation::fill_fragment;

template <class Use, int m, int n, int k, class T, class Layout>
static inline void load_matrix_sync(
    fragment<Use, m, n, k, T, Layout>& target,
    typename std::common_type<rise_emulation::Pointer<const T>>::type source, unsigned stride,
    int line = __builtin_LINE()) {
  static_assert(layout_number<Layout> != 0, "loads of accumulators need a layout");
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
  rise_emulation::meet("store_matrix_sync", line, rise_emulation::Whole<F>::store, &tile);
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
  rise_emulation::mma_sync(d, a, b, c, line);
}

}  // namespace wmma
}  // namespace nvcuda
