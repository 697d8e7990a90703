// Collectives of a warp: election of a thread, and stores of 8 x 8 matrices (stmatrix).
#pragma once

#include "blocks.hpp"

namespace rise_emulation {

RISE_CODE void nothing(void**, int) {}

// True for one thread of the warp: always the same one, but kernels must not rely on which.
RISE_CODE bool elect_one(int line = __builtin_LINE()) {
  check_whole_warp("elect_one", line);
  meet("elect_one", line, nothing, nullptr);
  return machine.current % lanes_per_warp == static_cast<int>((machine.seed * 0x9e3779b97f4a7c15u) >> 59);
}

template <class T>
struct StoredRows {
  const T* registers;
  Pointer<T> row;
};

// Lane 8 j + i gives the address of row i of matrix j, and holds two elements of row lane / 4 of each matrix.
template <class T, int count, bool transposed>
static inline void perform_store_matrices(void** operands, int line) {
  for (int number = 0; number < count; number++) {
    uint32_t rows[8];
    for (int i = 0; i < 8; i++) {
      int owner = number * 8 + i;
      const StoredRows<T>& own = *static_cast<const StoredRows<T>*>(operands[owner]);
      Access start = own.row.at(0, first_lane() + owner, line);
      if (!start.memory || !start.memory->shared)
        RISE_FAULT(Undefined, line, "store_matrices must store from registers into shared memory");
      check_alignment(start, 16, "store_matrices");
      rows[i] = static_cast<uint32_t>(start.byte());
      for (int e = 0; e < 8; e++) {
        int lane = transposed ? e * 4 + i / 2 : i * 4 + e / 2;
        const T* registers = static_cast<const StoredRows<T>*>(operands[lane])->registers;
        T value = registers[2 * number + (transposed ? i : e) % 2];
        __builtin_memcpy(checked_write(part(start, e)), &value, sizeof value);
      }
    }
    count_conflicts(rows, line);
  }
}

template <class T, int length, Fault fault>
static inline const T* written_elements(const LocalPointer<T, fault>& pointer, int line) {
  for (int i = 0; i < length; i++) pointer.at(i, line).read();
  return pointer.place;
}

template <int count, bool transposed, class T, Fault fault>
static inline void store_matrices_of(Pointer<T> row, const LocalPointer<T, fault>& registers, const char* name,
                                     int line) {
  static_assert(count == 1 || count == 2 || count == 4, "stmatrix stores 1, 2 or 4 matrices");
  static_assert(sizeof(T) == 2, "stmatrix stores 16-bit elements");
  check_whole_warp(name, line);
  StoredRows<T> own{written_elements<T, 2 * count>(registers, line), row};
  meet(name, line, perform_store_matrices<T, count, transposed>, &own);
}

template <int count, class T, Fault fault>
static inline void store_matrices(typename std::common_type<Pointer<T>>::type row,
                                  const LocalPointer<T, fault>& registers, int line = __builtin_LINE()) {
  store_matrices_of<count, false, T>(row, registers, "store_matrices", line);
}

template <int count, class T, Fault fault>
static inline void store_matrices_transposed(typename std::common_type<Pointer<T>>::type row,
                                             const LocalPointer<T, fault>& registers,
                                             int line = __builtin_LINE()) {
  store_matrices_of<count, true, T>(row, registers, "store_matrices_transposed", line);
}

}  // namespace rise_emulation
