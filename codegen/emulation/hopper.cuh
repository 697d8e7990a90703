// The header of kernels for Hopper GPUs: rise.cuh, and mbarriers, bulk copies, wgmma, clusters and the
// register pool, emulated with checks. docs/hopper-machine.md lists the checks.
#pragma once

#include "rise.cuh"
#include "hopper/cluster.hpp"
#include "hopper/runs.hpp"

#define RISE_EMULATION
#define __grid_constant__
#define __cluster_dims__(...)

using rise_emulation::await_previous_grid;
using rise_emulation::Barrier;
using rise_emulation::bulk_commit;
using rise_emulation::cluster_rank;
using rise_emulation::cluster_sync;
using rise_emulation::elect_one;
using rise_emulation::further;
using rise_emulation::pin_registers;
using rise_emulation::registers_decrease;
using rise_emulation::registers_increase;
using rise_emulation::shared_descriptor;
using rise_emulation::shared_of_block;
using rise_emulation::start_next_grid;
using rise_emulation::store_matrices;
using rise_emulation::store_matrices_transposed;
using rise_emulation::TensorMap;
using rise_emulation::wgmma;
using rise_emulation::wgmma_commit;
using rise_emulation::wgmma_fence;
using rise_emulation::wgmma_wait;

#define RISE_LINE int line = __builtin_LINE()

RISE_CODE void barrier_init(Shared<Barrier> bar, int count, RISE_LINE) {
  rise_emulation::barrier_init(bar, count, line);
}
RISE_CODE void barrier_expect(Shared<Barrier> bar, int bytes, RISE_LINE) {
  rise_emulation::barrier_expect(bar, bytes, line);
}
RISE_CODE void barrier_arrive(Shared<Barrier> bar, RISE_LINE) { rise_emulation::barrier_arrive(bar, line); }
RISE_CODE void barrier_arrive_remote(Shared<Barrier> bar, int rank, RISE_LINE) {
  rise_emulation::barrier_arrive_remote(bar, rank, line);
}
RISE_CODE void barrier_wait(Shared<Barrier> bar, int parity, RISE_LINE) {
  rise_emulation::barrier_wait(bar, parity, line);
}
RISE_CODE void fence_barrier_init(RISE_LINE) { rise_emulation::fence_barrier_init(line); }
RISE_CODE void fence_async_shared(RISE_LINE) {
  rise_emulation::fence_barrier_init(line);
  rise_emulation::fence_clocks(rise_emulation::running_agent());
}
RISE_CODE void named_barrier(int number, int threads, RISE_LINE) {
  rise_emulation::named_barrier(number, threads, line);
}
RISE_CODE void prefetch_map(const TensorMap&) {}

// An element outside of its array is noticed as if it were read.
template <class Source>
static inline void prefetch_line(const Source& source, int line = __builtin_LINE()) {
  rise_emulation::element(source, 0, line).read();
}

// The line of a call; a type of its own, so that it is not taken for a coordinate.
struct CallLine {
  int number;
  explicit CallLine(int number) : number(number) {}
};

// Loads and stores of boxes: coordinates are those of the first element, innermost first.
#define RISE_CALL CallLine line = CallLine(__builtin_LINE())
#define RISE_BULK(rank, parameters, ...)                                                           \
  template <class T>                                                                               \
  static inline void bulk_load(Shared<T> target, const TensorMap& map, Shared<Barrier> bar,        \
                               parameters, RISE_CALL) {                                            \
    unsigned own = 1u << cluster_rank();                                                           \
    rise_emulation::bulk_load(target, {map, {__VA_ARGS__}}, rank, bar, own, "bulk_load", line.number); \
  }                                                                                                \
  template <class T>                                                                               \
  static inline void bulk_load_multicast(Shared<T> target, const TensorMap& map,                   \
                                         Shared<Barrier> bar, unsigned mask, parameters,           \
                                         RISE_CALL) {                                              \
    rise_emulation::bulk_load(target, {map, {__VA_ARGS__}}, rank, bar, mask,                       \
                              "bulk_load_multicast", line.number);                                 \
  }                                                                                                \
  template <class T>                                                                               \
  static inline void bulk_store(const TensorMap& map, Shared<T> source, parameters, RISE_CALL) {   \
    rise_emulation::bulk_store({map, {__VA_ARGS__}}, rank, source, line.number);                   \
  }
#define RISE_PARAMETERS(...) __VA_ARGS__

RISE_BULK(1, int x, x)
RISE_BULK(2, RISE_PARAMETERS(int x, int y), x, y)
RISE_BULK(3, RISE_PARAMETERS(int x, int y, int z), x, y, z)
RISE_BULK(4, RISE_PARAMETERS(int x, int y, int z, int u), x, y, z, u)
RISE_BULK(5, RISE_PARAMETERS(int x, int y, int z, int u, int v), x, y, z, u, v)
#undef RISE_BULK
#undef RISE_CALL
#undef RISE_PARAMETERS

// In this phase of `bar`, so many elements get no data: they become NaN, so that a use of them is noticed.
template <class T>
static inline void leave_undefined(Shared<T> target, Shared<Barrier> bar, int count, RISE_LINE) {
  rise_emulation::leave_undefined(target, bar, count, line);
}

// Loads and stores of runs of adjacent elements.
template <class T>
static inline void bulk_load_run(Global<const T> array, Shared<T> target, int64_t start, int64_t length, int64_t total,
                                 Shared<Barrier> bar, RISE_LINE) {
  rise_emulation::bulk_load_run(array, target, start, length, total, bar, line);
}
template <class T>
static inline void bulk_store_run(Global<T> array, Shared<T> source, int64_t start, int64_t length, int64_t total,
                                  RISE_LINE) {
  rise_emulation::bulk_store_run(array, source, start, length, total, line);
}

// Waits until at most `pending` of the thread's groups of bulk stores are pending, or have unread boxes.
template <int pending>
static inline void bulk_wait(RISE_LINE) {
  rise_emulation::wait_for_stores(pending, true, line);
}
template <int pending>
static inline void bulk_wait_read(RISE_LINE) {
  rise_emulation::wait_for_stores(pending, false, line);
}
#undef RISE_LINE

namespace group {

// The registers of a thread for 64 × n accumulators.
template <int n, class T>
struct fragment {
  enum { num_elements = n / 2 };
  Local<T, num_elements> x;
};

template <int n, class T>
static inline void fill_fragment(fragment<n, T>& target, typename std::common_type<T>::type number) {
  for (int i = 0; i < target.num_elements; i++) target.x[i] = number;
}

}  // namespace group
