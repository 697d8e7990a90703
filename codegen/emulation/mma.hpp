// Fragments whose elements' places are known, and products of them: mma.sync and ldmatrix. The places
// come from the compiler (`Places`, before this text), so that text and machine cannot disagree.
#pragma once

#include "copies.hpp"
#include "wmma.hpp"

namespace mma {

struct matrix_a;
struct matrix_b;
struct accumulator;

}  // namespace mma

namespace rise_emulation {

// Where the elements of a fragment are; `rows` and `columns` are those of its tile.
template <class Use, int m, int n, int k, class T>
struct Layout;
template <int m, int n, int k, class T>
struct Layout<mma::matrix_a, m, n, k, T> {
  using P = Places<0, 1, sizeof(T), k, 0>;
  static constexpr int rows = m, columns = k;
};
template <int m, int n, int k, class T>
struct Layout<mma::matrix_b, m, n, k, T> {
  using P = Places<0, 2, sizeof(T), k, 0>;
  static constexpr int rows = k, columns = n;
};
template <int m, int n, int k, class T>
struct Layout<mma::accumulator, m, n, k, T> {
  using P = Places<0, 3, 0, 0, 0>;
  static constexpr int rows = m, columns = n;
};

}  // namespace rise_emulation

namespace mma {

template <class Use, int m, int n, int k, class T>
struct fragment {
  using element_type = T;
  using L = rise_emulation::Layout<Use, m, n, k, T>;
  static constexpr int rows = L::rows, columns = L::columns;
  enum { num_elements = L::P::registers(m / 16, n / 8) };
  static_assert(m % 16 == 0 && n % 8 == 0 && num_elements * 32 == rows * columns,
                "there is no such fragment");

  static int element(int lane, int r) {
    return L::P::row(m / 16, n / 8, lane, r) * columns + L::P::column(m / 16, n / 8, lane, r);
  }

  rise_emulation::LocalArray<T, num_elements, rise_emulation::UninitialisedFragment> x;
};

}  // namespace mma

namespace rise_emulation {

template <class F, class Number>
static void gather_known(F* const* lanes, Number* matrix, int line) {
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

template <class D, class A, class B, class C>
static void perform_known_product(void** operands, int line) {
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
  // sums of whole numbers are exact in double
  using Number = typename std::conditional<std::is_same<Type<D>, int>::value, double, float>::type;
  Number left[A::rows * A::columns], right[B::rows * B::columns], sum[D::rows * D::columns];
  gather_known(a, left, line);
  gather_known(b, right, line);
  gather_known(c, sum, line);
  multiply<A::rows, B::columns, A::columns>(left, right, sum);
  for (int lane = 0; lane < lanes_per_warp; lane++)
    for (int r = 0; r < D::num_elements; r++) {
      d[lane]->x.values[r] = Type<D>(sum[D::element(lane, r)]);
      d[lane]->x.written[r] = true;
    }
}

// What a lane passes to ldmatrix.
template <class T, Fault fault>
struct Rows {
  LocalPointer<T, fault> registers;
  Pointer<T> row;
};

template <class T, int count, bool transposed, Fault fault>
static void perform_matrices(void** operands, int line) {
  constexpr int chunk = 16 / static_cast<int>(sizeof(T)), run = 4 / static_cast<int>(sizeof(T));
  static_assert(!transposed || sizeof(T) == 2, "elements of 16 bits are transposed");
  static T matrix[count][8][chunk];
  for (int number = 0; number < count; number++) {
    uint32_t rows[8];
    for (int i = 0; i < 8; i++) {
      int lane = number * 8 + i;
      const Rows<T, fault>& own = *static_cast<const Rows<T, fault>*>(operands[lane]);
      Access start = own.row.at(0, first_lane() + lane, line);
      if (!start.memory || !start.memory->shared)
        RISE_FAULT(Undefined, line, "load_matrices goes from shared memory into registers");
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

template <int count, bool transposed, class T, Fault fault>
static inline void load_matrices_of(const LocalPointer<T, fault>& registers, Pointer<T> row,
                                    const char* name, int line) {
  check_whole_warp(name, line);
  Rows<T, fault> own{registers, row};
  meet(name, line, perform_matrices<T, count, transposed, fault>, &own);
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

// An array in shared memory whose chunks of 16 bytes change places within each row of `bytes`.
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
    RISE_FAULT(Misaligned, line, "a swizzled array starts at byte %lld, no multiple of %d",
               static_cast<long long>(offset), 8 * bytes);
  return {shared_memory<T>(offset, line)};
}

}  // namespace rise_emulation

namespace mma {

template <class Use, int m, int n, int k, class T>
static inline void fill_fragment(fragment<Use, m, n, k, T>& target,
                                 typename std::common_type<T>::type number) {
  for (int i = 0; i < target.num_elements; i++) {
    target.x.values[i] = number;
    target.x.written[i] = true;
  }
}

template <int m, int n, int k, class S, class D>
static inline void mma_sync(fragment<accumulator, m, n, k, D>& d,
                            const fragment<matrix_a, m, n, k, S>& a,
                            const fragment<matrix_b, m, n, k, S>& b,
                            const fragment<accumulator, m, n, k, D>& c,
                            int line = __builtin_LINE()) {
  using A = const fragment<matrix_a, m, n, k, S>;
  using B = const fragment<matrix_b, m, n, k, S>;
  using C = const fragment<accumulator, m, n, k, D>;
  using R = fragment<accumulator, m, n, k, D>;
  rise_emulation::check_whole_warp("mma_sync", line);
  rise_emulation::Product<R, A, B, C> operands{&d, &a, &b, &c};
  rise_emulation::meet("mma_sync", line, rise_emulation::perform_known_product<R, A, B, C>,
                       &operands);
}

}  // namespace mma
