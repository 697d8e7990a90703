// mma.sync and ldmatrix.
#pragma once

#include "copies.hpp"
#include "products.hpp"

namespace rise_emulation {

// The arguments of a lane to ldmatrix.
template <class T, Fault fault>
struct Rows {
  LocalPointer<T, fault> registers;
  Pointer<T> row;
};

template <class T, int count, bool transposed, Fault fault>
struct Matrices {
  static void load(void** operands, int line) {
    constexpr int chunk = 16 / static_cast<int>(sizeof(T)), run = 4 / static_cast<int>(sizeof(T));
    static_assert(!transposed || sizeof(T) == 2, "only 16-bit elements can be transposed");
    static T matrix[count][8][chunk];
    for (int number = 0; number < count; number++) {
      uint32_t rows[8];
      for (int i = 0; i < 8; i++) {
        int lane = number * 8 + i;
        const Rows<T, fault>& own = *static_cast<const Rows<T, fault>*>(operands[lane]);
        Access start = own.row.at(0, first_lane() + lane, line);
        if (!start.memory || !start.memory->shared)
          RISE_FAULT(Undefined, line, "load_matrices must load from shared memory into registers");
        check_alignment(start, 16, "load_matrices");
        for (int e = 0; e < chunk; e++)
          __builtin_memcpy(&matrix[number][i][e], checked_read(part(start, e)), sizeof(T));
        rows[i] = static_cast<uint32_t>(start.byte());
      }
      count_conflicts(rows, line);
    }
    for (int lane = 0; lane < lanes_per_warp; lane++) {
      const Rows<T, fault>& own = *static_cast<const Rows<T, fault>*>(operands[lane]);
      for (int number = 0; number < count; number++)
        for (int e = 0; e < run; e++) {
          int row = lane / 4, column = run * (lane % 4) + e;
          T value = transposed ? matrix[number][column][row] : matrix[number][row][column];
          own.registers.at(run * number + e, line).write(value);
        }
    }
  }
};

template <int count, bool transposed, class T, Fault fault>
static inline void load_matrices_of(const LocalPointer<T, fault>& registers, Pointer<T> row,
                                    const char* name, int line) {
  check_whole_warp(name, line);
  Rows<T, fault> own{registers, row};
  meet(name, line, Matrices<T, count, transposed, fault>::load, &own);
}

template <int count, class T, Fault fault>
static inline void load_matrices(const LocalPointer<T, fault>& registers,
                                 typename std::common_type<Pointer<T>>::type row,
                                 int line = __builtin_LINE()) {
  load_matrices_of<count, false>(registers, row, "load_matrices", line);
}

template <int count, class T, Fault fault>
static inline void load_matrices_transposed(
    const LocalPointer<T, fault>& registers,
    typename std::common_type<Pointer<T>>::type row, int line = __builtin_LINE()) {
  load_matrices_of<count, true>(registers, row, "load_matrices_transposed", line);
}

// A swizzled array in shared memory: 16-byte chunks are permuted within each row of `bytes`.
template <class T, int bytes>
struct Swizzled {
  Pointer<T> first;
  Reference<T> operator[](Index index) const {
    constexpr int64_t chunk = 16 / sizeof(T), chunks = bytes / 16;
    index.value ^= index.value / (chunk * 8) % chunks * chunk;
    return first[index];
  }
};

template <class T, int bytes>
static inline Swizzled<T, bytes> swizzled_memory(int64_t offset, int line = __builtin_LINE()) {
  if (offset % (8 * bytes) != 0)
    RISE_FAULT(Misaligned, line, "a swizzled array starts at byte %lld, not a multiple of %d",
               static_cast<long long>(offset), 8 * bytes);
  return {shared_memory<T>(offset, line)};
}

// The arguments of a lane to shuffle_xor, and its result.
template <class T>
struct Exchange {
  T number;
  int bits;
};

template <class T>
static inline void perform_exchange(void** operands, int line) {
  T numbers[lanes_per_warp];
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    const Exchange<T>& own = *static_cast<const Exchange<T>*>(operands[lane]);
    const Exchange<T>& first = *static_cast<const Exchange<T>*>(operands[0]);
    if (own.bits != first.bits)
      RISE_FAULT(DivergentCollective, line, "divergent collective: lanes pass different bits to shuffle_xor");
    numbers[lane] = own.number;
  }
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    Exchange<T>& own = *static_cast<Exchange<T>*>(operands[lane]);
    own.number = numbers[lane ^ own.bits];
  }
}

// The number of the lane whose number differs in these bits.
template <class T>
static inline T shuffle_xor(T number, int bits, int line = __builtin_LINE()) {
  check_whole_warp("shuffle_xor", line);
  Exchange<T> own{number, bits};
  meet("shuffle_xor", line, perform_exchange<T>, &own);
  return own.number;
}

}  // namespace rise_emulation

namespace mma {

using nvcuda::wmma::accumulator;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using rise_emulation::fill_fragment;

// The elements of a lane for the rows of an accumulator that it holds.
template <int n, class T>
struct column {
  using element_type = T;
  enum { num_elements = n };
  rise_emulation::LocalArray<T, n, rise_emulation::UninitialisedFragment> x;
};

template <class Use, int m, int n, int k>
using Extent = nvcuda::wmma::Extent<Use, m, n, k>;

// Accumulators have one layout for all element types.
template <class Use, int m, int n, int k, class T>
struct Places {
  using type = rise_emulation::Places<0, Extent<Use, m, n, k>::number, sizeof(T), k, 0>;
};
template <int m, int n, int k, class T>
struct Places<accumulator, m, n, k, T> {
  using type = rise_emulation::Places<0, 3, 0, 0, 0>;
};

template <class Use, int m, int n, int k, class T>
struct fragment : rise_emulation::KnownFragment<typename Places<Use, m, n, k, T>::type, Extent<Use, m, n, k>,
                                                m / 16, n / 8, T> {
  static_assert(m % 16 == 0 && n % 8 == 0 && fragment::num_elements * 32 == fragment::rows * fragment::columns,
                "the hardware does not have this fragment");
};

template <int m, int n, int k, class S, class D>
static inline void mma_sync(fragment<accumulator, m, n, k, D>& d,
                            const fragment<matrix_a, m, n, k, S>& a,
                            const fragment<matrix_b, m, n, k, S>& b,
                            const fragment<accumulator, m, n, k, D>& c,
                            int line = __builtin_LINE()) {
  rise_emulation::mma_sync(d, a, b, c, line);
}

}  // namespace mma
