// Products by a warp: each lane passes its operands, and the last to arrive computes for all. The operands
// are checked as the hardware requires.
#pragma once

#include "known.hpp"
#include "scheduler.hpp"

namespace rise_emulation {

RISE_CODE void check_whole_warp(const char* operation, int line) {
  int lanes = machine.warps[machine.current / lanes_per_warp].lanes;
  if (lanes != lanes_per_warp)
    RISE_FAULT(DivergentCollective, line, "%s calls %s (line %d) in a warp of only %d threads",
               place_name(machine.current).characters, operation, line, lanes);
}

RISE_COLD void not_uniform(const char* what, int lane, int line) {
  RISE_FAULT(DivergentCollective, line,
             "divergent collective: %s passes another %s than %s of its warp",
             place_name(first_lane() + lane).characters, what,
             thread_name(first_lane()).characters);
}

// All lanes pass the same variable: it has the same offset in the stacks of all.
RISE_CODE void check_same_variable(int lane, const void* first, const void* other, int line) {
  size_t thread = static_cast<size_t>(first_lane());
  ptrdiff_t expected = static_cast<const char*>(first) - machine.stacks[thread];
  ptrdiff_t found = static_cast<const char*>(other) -
                    machine.stacks[thread + static_cast<size_t>(lane)];
  if (expected != found) not_uniform("fragment", lane, line);
}

// The arguments of a lane to mma_sync, and what the warp does.
template <class D, class A, class B, class C>
struct Product {
  D* d;
  A* a;
  B* b;
  C* c;

  static void perform(void** operands, int line);
};

// Products of 16-bit numbers are exact in float; a sum is rounded to the accumulator type at its end.
template <int m, int n, int k, class Number>
static inline void multiply(const Number* a, const Number* b, Number* sum) {
  for (int row = 0; row < m; row++)
    for (int step = 0; step < k; step++)
      for (int column = 0; column < n; column++)
        sum[row * n + column] += a[row * k + step] * b[step * n + column];
}

template <class F, class Number>
static inline void gather_numbers(F* const* lanes, Number* numbers, int line) {
  if constexpr (is_known<F>) {
    gather_known(lanes, numbers, line);
  } else {
    Type<F> matrix[F::rows * F::columns];
    gather(lanes, matrix, "mma_sync", line);
    for (int element = 0; element < F::rows * F::columns; element++)
      numbers[element] = matrix[element];
  }
}

template <class F, class Number>
static inline void scatter_numbers(F* const* lanes, const Number* numbers) {
  Type<F> rounded[F::rows * F::columns];
  for (int element = 0; element < F::rows * F::columns; element++)
    rounded[element] = Type<F>(numbers[element]);
  if constexpr (is_known<F>)
    scatter_known(lanes, rounded);
  else
    scatter(lanes, rounded);
}

template <class D, class A, class B, class C>
void Product<D, A, B, C>::perform(void** operands, int line) {
  D* all_d[lanes_per_warp];
  A* all_a[lanes_per_warp];
  B* all_b[lanes_per_warp];
  C* all_c[lanes_per_warp];
  const Product& first = *static_cast<const Product*>(operands[0]);
  for (int lane = 0; lane < lanes_per_warp; lane++) {
    const Product& own = *static_cast<const Product*>(operands[lane]);
    check_same_variable(lane, first.d, all_d[lane] = own.d, line);
    check_same_variable(lane, first.a, all_a[lane] = own.a, line);
    check_same_variable(lane, first.b, all_b[lane] = own.b, line);
    check_same_variable(lane, first.c, all_c[lane] = own.c, line);
  }
  // sums of integers are exact in 64 bits, and wrap when they are converted to results
  using Number = typename std::conditional<std::is_same<Type<D>, int>::value, int64_t, float>::type;
  Number left[A::rows * A::columns], right[B::rows * B::columns], sum[D::rows * D::columns];
  gather_numbers(all_a, left, line);
  gather_numbers(all_b, right, line);
  gather_numbers(all_c, sum, line);
  multiply<A::rows, B::columns, A::columns>(left, right, sum);
  scatter_numbers(all_d, sum);
}

// d = a * b + c, by all lanes of a warp.
template <class D, class A, class B, class C>
static inline void mma_sync(D& d, const A& a, const B& b, const C& c, int line) {
  check_whole_warp("mma_sync", line);
  Product<D, const A, const B, const C> operands{&d, &a, &b, &c};
  meet("mma_sync", line, operands.perform, &operands);
}

template <class F>
static inline void fill_fragment(F& target, Type<F> number) {
  for (int i = 0; i < target.num_elements; i++) {
    target.x.values[i] = number;
    target.x.written[i] = true;
  }
}

}  // namespace rise_emulation
