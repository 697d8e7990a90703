// The header that the printed CUDA text includes on a GPU. The emulator's header of the same name (in
// `emulation/`) defines the same names with checks; the include path chooses between the two.
// It uses only device code, and only headers that NVRTC has, too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

using bfloat16 = __nv_bfloat16;

// An array argument. Arrays do not overlap, unless both are const.
template <class T>
using Global = T* __restrict__;

// One that the kernel in front may write while this one runs: no read of it is moved before the wait.
template <class T>
using Awaited = T*;

// An array in shared memory.
template <class T>
using Shared = T*;

// A thread-private array: in registers, if its indices are constants after unrolling.
template <class T, int length>
using Local = T[length];

// The dynamic shared memory of the block, from a byte offset.
template <class T>
__device__ __forceinline__ Shared<T> shared_memory(int offset) {
  extern __shared__ __align__(1024) char rise_shared_bytes[];
  return reinterpret_cast<T*>(rise_shared_bytes + offset);
}

// An address in shared memory in the form that instructions take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// A swizzled array in shared memory: 16-byte chunks are permuted within each row of `bytes`, so that the same
// chunk of different rows is in different banks. It starts at a multiple of 8 * bytes.
template <class T, int bytes>
struct Swizzled {
  T* first;
  __device__ __forceinline__ T& operator[](int index) const {
    constexpr int chunk = 16 / sizeof(T), chunks = bytes / 16;
    return first[index ^ (index / (chunk * 8) % chunks * chunk)];
  }
};
template <class T, int bytes>
__device__ __forceinline__ Swizzled<T, bytes> swizzled_memory(int offset) {
  return {shared_memory<T>(offset)};
}

// A type of that many bytes, moved by one instruction.
template <int bytes>
struct Bits;
template <>
struct Bits<2> {
  using type = unsigned short;
};
template <>
struct Bits<4> {
  using type = unsigned int;
};
template <>
struct Bits<8> {
  using type = uint2;
};
template <>
struct Bits<16> {
  using type = uint4;
};

// Copies `count` elements, up to 16 bytes at once; both addresses are aligned to that width.
template <int count, class T>
__device__ __forceinline__ void copy_vector(T* target, const T* source) {
  constexpr int bytes = count * sizeof(T) < 16 ? count * sizeof(T) : 16;
  static_assert(count * sizeof(T) % bytes == 0, "vectors of more than 16 bytes are multiples of 16 bytes");
  using Vector = typename Bits<bytes>::type;
#pragma unroll
  for (int i = 0; i < count * sizeof(T) / bytes; i += 1)
    reinterpret_cast<Vector*>(target)[i] = reinterpret_cast<const Vector*>(source)[i];
}

// Starts to copy `count` elements, 4, 8 or 16 bytes, from global to shared memory.
template <int count, class T>
__device__ __forceinline__ void copy_async(T* target, const T* source) {
  constexpr int bytes = count * sizeof(T);
#if __CUDA_ARCH__ >= 800
  const unsigned shared = shared_address(target);
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(source) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(source), "n"(bytes)
                 : "memory");
#else
  copy_vector<count>(target, source);
#endif
}

// The same if `inside`; otherwise nothing is read, and the elements are zero-filled.
template <int count, class T>
__device__ __forceinline__ void copy_async_or_zero(T* target, const T* source, bool inside) {
  constexpr int bytes = count * sizeof(T);
#if __CUDA_ARCH__ >= 800
  unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(target));
  int read = inside ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(source), "r"(read)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(source), "n"(bytes),
                 "r"(read)
                 : "memory");
#else
  using Vector = typename Bits<bytes>::type;
  Vector zero = {};
  *reinterpret_cast<Vector*>(target) = inside ? *reinterpret_cast<const Vector*>(source) : zero;
#endif
}

// Makes the copies that the thread started since the last commit a commit group.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `pending` of the thread's groups are pending.
template <int pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// The same number. Unlike the function of cuda_bf16.h, it leaves loads of adjacent numbers to be one.
__device__ __forceinline__ float from_bfloat16(bfloat16 number) {
  float same;
  asm("mov.b32 %0, {%1, %2};" : "=f"(same) : "h"(static_cast<unsigned short>(0)), "h"(__bfloat16_as_ushort(number)));
  return same;
}

// a * b + c, rounded once. Before sm_80 it is computed in double: the product is exact there, and the sum is
// rounded to odd, so that rounding it to half is correct.
__device__ __forceinline__ bfloat16 fma_bfloat16(bfloat16 a, bfloat16 b, bfloat16 c) {
#if __CUDA_ARCH__ >= 800
  return __hfma(a, b, c);
#else
  double product = static_cast<double>(from_bfloat16(a)) * from_bfloat16(b);
  double added = from_bfloat16(c);
  double down = __dadd_rd(product, added), up = __dadd_ru(product, added);
  bool down_is_odd = __double_as_longlong(down) & 1;
  return __double2bfloat16(down != up && down_is_odd ? down : up);
#endif
}

#include "scalars.cuh"
#include "mma.cuh"
#include "volta.cuh"
