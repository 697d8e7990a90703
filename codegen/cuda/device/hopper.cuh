// The header of kernels for Hopper GPUs (sm_90a): rise.cuh, and mbarriers, bulk tensor copies, wgmma,
// clusters and the register pool, each a wrapper around one instruction. The emulator's header of the same
// name checks their use; docs/hopper-machine.md lists the rules.
#pragma once

#include "rise.cuh"

// --- mbarriers --------------------------------------------------------------------------------

using Barrier = unsigned long long;

// Initialised by one thread. A phase completes after `count` arrivals, once all expected bytes are there.
__device__ __forceinline__ void barrier_init(Shared<Barrier> bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

// After barrier_init, by the same thread: makes the barrier visible to the copy engine and to other blocks.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrive/expect-tx: arrives, and announces the bytes that copies will transfer in this phase.
__device__ __forceinline__ void barrier_expect(Shared<Barrier> bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_arrive(Shared<Barrier> bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

// Arrives at the barrier with the same address in another block of the cluster, or in this one. The memory
// that it releases was read by wgmmas that have been waited for, so no access of the generic proxy has to be
// released to the cluster; `.release.cluster` cost 40 % of a GEMM's time.
__device__ __forceinline__ void barrier_arrive_remote(Shared<Barrier> bar, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(shared_address(bar)),
      "r"(rank)
      : "memory");
}

// Waits until the phase of that parity is complete. The first phase has parity 0; until it completes, a
// preceding phase of parity 1 counts as complete.
__device__ __forceinline__ void barrier_wait(Shared<Barrier> bar, int parity) {
  unsigned ended;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(ended)
        : "r"(shared_address(bar)), "r"(parity)
        : "memory");
  } while (!ended);
}

// Makes the thread's earlier writes to shared memory visible to bulk copies and wgmma.
__device__ __forceinline__ void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Named barrier 1 to 15, for some whole warps of the block.
__device__ __forceinline__ void named_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// --- bulk tensor copies -----------------------------------------------------------------------

// A CUtensorMap: a parameter `const __grid_constant__ TensorMap map`.
struct alignas(64) TensorMap {
  char bytes[128];
};

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Brings the line of global memory with this element into the L2 cache.
template <class T>
__device__ __forceinline__ void prefetch_line(const T* element) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(element)));
}

// In this phase of `bar`, so many elements get no data. They may be read, but nobody uses what is computed from
// them: the emulator fills them with NaN.
template <class T>
__device__ __forceinline__ void leave_undefined(T*, Shared<Barrier>, int) {}

// A load signals all bytes of its box to `bar`, including zeros for elements outside the tensor. Multicast:
// to the same address, and the same barrier, in each block of the cluster that the mask names. A store drops
// elements outside the tensor. Coordinates are those of the first element, innermost first.
#define RISE_BULK(rank, parameters, first, second, third, ...)                                      \
  template <class T>                                                                                \
  __device__ __forceinline__ void bulk_load(T* target, const TensorMap& map, Shared<Barrier> bar,   \
                                            parameters) {                                           \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes" \
                 " [%0], [%1, {" first "}], [%2];" ::"r"(shared_address(target)),                   \
                 "l"(&map), "r"(shared_address(bar)), __VA_ARGS__                                   \
                 : "memory");                                                                       \
  }                                                                                                 \
  template <class T>                                                                                \
  __device__ __forceinline__ void bulk_load_multicast(T* target, const TensorMap& map,              \
                                                      Shared<Barrier> bar, unsigned mask,           \
                                                      parameters) {                                 \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes" \
                 ".multicast::cluster [%0], [%1, {" second "}], [%2], %3;" ::"r"(shared_address(target)), \
                 "l"(&map), "r"(shared_address(bar)), "h"(static_cast<unsigned short>(mask)),       \
                 __VA_ARGS__                                                                        \
                 : "memory");                                                                       \
  }                                                                                                 \
  template <class T>                                                                                \
  __device__ __forceinline__ void bulk_store(const TensorMap& map, const T* source, parameters) {   \
    asm volatile("cp.async.bulk.tensor." #rank "d.global.shared::cta.bulk_group"                    \
                 " [%0, {" third "}], [%1];" ::"l"(&map), "r"(shared_address(source)), __VA_ARGS__  \
                 : "memory");                                                                       \
  }
#define RISE_PARAMETERS(...) __VA_ARGS__

RISE_BULK(1, int x, "%3", "%4", "%2", "r"(x))
RISE_BULK(2, RISE_PARAMETERS(int x, int y), "%3, %4", "%4, %5", "%2, %3", "r"(x), "r"(y))
RISE_BULK(3, RISE_PARAMETERS(int x, int y, int z), "%3, %4, %5", "%4, %5, %6", "%2, %3, %4", "r"(x),
          "r"(y), "r"(z))
RISE_BULK(4, RISE_PARAMETERS(int x, int y, int z, int u), "%3, %4, %5, %6", "%4, %5, %6, %7",
          "%2, %3, %4, %5", "r"(x), "r"(y), "r"(z), "r"(u))
RISE_BULK(5, RISE_PARAMETERS(int x, int y, int z, int u, int v), "%3, %4, %5, %6, %7",
          "%4, %5, %6, %7, %8", "%2, %3, %4, %5, %6", "r"(x), "r"(y), "r"(z), "r"(u), "r"(v))
#undef RISE_BULK
#undef RISE_PARAMETERS

// Bulk copies of runs: `count` adjacent elements of an array, from element `start` on. A run has the same offset
// from a 16-byte boundary in shared memory as in global memory, so the copy engine moves whole chunks of 16 bytes.
// Of a run that reaches beyond the `total` elements of the array, those that exist are copied.
// A load copies all chunks that contain elements of the run, and announces their bytes to `bar` without arriving.
// The thread itself loads what is in the last chunk of the array, if that chunk is incomplete, and fences it.
// A store leaves the rest of its first and last chunk alone, so the thread itself stores the run's elements there.
template <class T>
__device__ __forceinline__ void bulk_load_run(const T* array, T* target, long long start, int length, long long total,
                                              Shared<Barrier> bar) {
  constexpr int chunk = 16 / sizeof(T);
  if (start >= total) return;
  const int count = total - start < length ? static_cast<int>(total - start) : length;
  const int before = static_cast<int>(start % chunk), whole = (before + count + chunk - 1) / chunk * chunk;
  const long long left = (total - (start - before)) / chunk * chunk;
  const int copied = left < whole ? static_cast<int>(left) : whole;
  const int bytes = copied * static_cast<int>(sizeof(T));
  if (bytes) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(target - before)),
                 "l"(__cvta_generic_to_global(array + (start - before))), "r"(bytes), "r"(shared_address(bar))
                 : "memory");
  }
#pragma unroll 1
  for (int i = copied - before < 0 ? 0 : copied - before; i < count; i += 1) target[i] = array[start + i];
  if (copied - before < count) fence_async_shared();  // the next run may be copied to the same place
}
template <class T>
__device__ __forceinline__ void bulk_store_run(T* array, const T* source, long long start, int length, long long total) {
  constexpr int chunk = 16 / sizeof(T);
  if (start >= total) return;
  const int count = total - start < length ? static_cast<int>(total - start) : length;
  const int beyond = static_cast<int>((chunk - start % chunk) % chunk), first = beyond < count ? beyond : count;
  const int copied = (count - first) / chunk * chunk;
  if (copied)
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(array + start + first)),
                 "r"(shared_address(source + first)), "r"(copied * static_cast<int>(sizeof(T)))
                 : "memory");
#pragma unroll 1
  for (int i = 0; i < first; i += 1) array[start + i] = source[i];
#pragma unroll 1
  for (int i = first + copied; i < count; i += 1) array[start + i] = source[i];
}

// Makes the stores that the thread issued since the last commit a commit group.
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until at most `pending` of the thread's groups of stores are pending.
template <int pending>
__device__ __forceinline__ void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// The same, but only until they have read their boxes, which may then be overwritten.
template <int pending>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

// --- wgmma ------------------------------------------------------------------------------------

enum class Swizzle { None = 0, B128 = 1, B64 = 2, B32 = 3 };
enum class Major { K = 0, MN = 1 };
using Descriptor = unsigned long long;

// The descriptor of an operand in shared memory. Rows along k: `stride` is the distance in bytes of groups
// of 8 rows, `leading` that of 16-byte columns, without a swizzle only. Rows along m or n: `stride` is the
// distance of groups of 8 k, `leading` that of swizzle widths; without a swizzle the two are exchanged.
template <class T>
__device__ __forceinline__ Descriptor shared_descriptor(const T* pointer, int leading, int stride,
                                                        Swizzle swizzle) {
  return static_cast<Descriptor>((shared_address(pointer) & 0x3ffff) >> 4) |
         static_cast<Descriptor>(leading >> 4) << 16 | static_cast<Descriptor>(stride >> 4) << 32 |
         static_cast<Descriptor>(swizzle) << 62;
}

// The operand `bytes` bytes further on; a multiple of 16.
__device__ __forceinline__ Descriptor further(Descriptor made, int bytes) {
  return (made & 0xffffffff00000000) | (static_cast<unsigned>(made) + static_cast<unsigned>(bytes >> 4));
}

// Broadcasts a warp-uniform number, so that it is computed once per warp. All threads of the warp call it.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(0xffffffff, value, 0); }

// A one-byte operand type that C++ does not have.
struct e4m3;

// One instruction: codegen/cuda/wgmma.py prints those that a kernel uses.
template <int n, class T, Major a_major, Major b_major, class D, class A>
struct Wgmma;

// d = a * b (+ d), 64 x n, by the 128 threads of a warpgroup; asynchronous until it is waited for.
template <int n, class T, Major a_major = Major::K, Major b_major = Major::K, class D>
__device__ __forceinline__ void wgmma(D (&d)[n / 2], Descriptor a, Descriptor b, bool scale = true) {
  Wgmma<n, T, a_major, b_major, D, Descriptor>::issue(d, a, b, scale);
}

// The same with A in registers, its rows along k: 16 bytes of each thread.
template <int n, class T, Major b_major = Major::K, class D, class R>
__device__ __forceinline__ void wgmma(D (&d)[n / 2], R (&a)[16 / sizeof(R)], Descriptor b, bool scale = true) {
  Wgmma<n, T, Major::K, b_major, D, unsigned*>::issue(d, reinterpret_cast<unsigned*>(a), b, scale);
}

// Keeps the compiler from moving uses of registers across this point.
__device__ __forceinline__ void pin_register(float& number) { asm volatile("" : "+f"(number)::"memory"); }
__device__ __forceinline__ void pin_register(tf32& number) { pin_register(number.number); }
__device__ __forceinline__ void pin_register(int& number) { asm volatile("" : "+r"(number)::"memory"); }
__device__ __forceinline__ void pin_register(unsigned& number) { asm volatile("" : "+r"(number)::"memory"); }
template <class T, int count>
__device__ __forceinline__ void pin_registers(T (&registers)[count]) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < count; i += 1) pin_register(registers[i]);
  } else {
    unsigned* packed = reinterpret_cast<unsigned*>(registers);
#pragma unroll
    for (int i = 0; i < count * static_cast<int>(sizeof(T)) / 4; i += 1)
      asm volatile("" : "+r"(packed[i])::"memory");
  }
}

// Before the first wgmma, and after other instructions have written the registers named.
template <class... Arrays>
__device__ __forceinline__ void wgmma_fence(Arrays&... arrays) {
  (pin_registers(arrays), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Makes the wgmmas issued since the last commit a commit group.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `pending` groups are pending; the registers named may then be used.
template <int pending, class... Arrays>
__device__ __forceinline__ void wgmma_wait(Arrays&... arrays) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
  (pin_registers(arrays), ...);
}

// --- warps, warpgroups, clusters --------------------------------------------------------------

// True for one thread of the warp, always the same one.
__device__ __forceinline__ bool elect_one() {
  unsigned chosen;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(chosen));
  return chosen;
}

// Registers of each thread of a warpgroup, released to the block's pool or taken from it.
template <int count>
__device__ __forceinline__ void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// The rank of the block in its cluster.
__device__ __forceinline__ int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// The array at the same place in the shared memory of a block of the cluster.
template <class T>
__device__ __forceinline__ T* shared_of_block(T* array, int rank) {
  T* found;
  asm("mapa.u64 %0, %1, %2;" : "=l"(found) : "l"(array), "r"(rank));
  return found;
}

// Waits for all threads of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Lets the next kernel of the stream start, as resources permit, if it was launched to overlap with this one;
// and waits until the preceding kernels have completed.
__device__ __forceinline__ void start_next_grid() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ __forceinline__ void await_previous_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// --- stores of matrices -----------------------------------------------------------------------

// Stores `count` 8×8 matrices of 16-bit elements; lane 8j + i gives the address of row i of matrix j, and
// holds two elements of row lane / 4 of each matrix.
#define RISE_STORE_MATRICES(name, form)                                                                  \
  template <int count, class T>                                                                          \
  __device__ __forceinline__ void name(T* row, const T* registers) {                                     \
    const unsigned* source = reinterpret_cast<const unsigned*>(registers);                               \
    const unsigned place = shared_address(row);                                                          \
    if constexpr (count == 4)                                                                            \
      asm volatile("stmatrix.sync.aligned.m8n8.x4" form ".shared.b16 [%0], {%1, %2, %3, %4};"           \
                   ::"r"(place),                                                                         \
                   RISE_REGISTERS_4("r", source)                                                         \
                   : "memory");                                                                          \
    else if constexpr (count == 2)                                                                       \
      asm volatile("stmatrix.sync.aligned.m8n8.x2" form ".shared.b16 [%0], {%1, %2};" ::"r"(place),      \
                   RISE_REGISTERS_2("r", source)                                                         \
                   : "memory");                                                                          \
    else                                                                                                 \
      asm volatile("stmatrix.sync.aligned.m8n8.x1" form ".shared.b16 [%0], {%1};" ::"r"(place),          \
                   RISE_REGISTERS_1("r", source)                                                         \
                   : "memory");                                                                          \
  }

RISE_STORE_MATRICES(store_matrices, "")
// the same, transposing each matrix
RISE_STORE_MATRICES(store_matrices_transposed, ".trans")

#undef RISE_STORE_MATRICES

// --- accumulators of a warpgroup ----------------------------------------------------------------

namespace group {

using ::fill_fragment;

// The registers of a thread for 64 × n accumulators.
template <int n, class T>
struct fragment {
  enum { num_elements = n / 2 };
  T x[num_elements];
};

}  // namespace group
