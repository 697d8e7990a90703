// What the printed CUDA text includes on a GPU. The emulating header of the same name (in
// `emulation/`) gives the same names with checks; the include path chooses between the two.
// Only device code and only headers that NVRTC has, too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

using bfloat16 = __nv_bfloat16;

// An array argument. No two of them overlap, unless both are const.
template <class T>
using Global = T* __restrict__;

// An array in shared memory.
template <class T>
using Shared = T*;

// An array that belongs to one thread: registers, when the indices are known after unrolling.
template <class T, int length>
using Local = T[length];

// The dynamic shared memory of the block, from a byte offset on.
template <class T>
__device__ __forceinline__ Shared<T> shared_memory(int offset) {
  extern __shared__ __align__(128) char rise_shared_bytes[];
  return reinterpret_cast<T*>(rise_shared_bytes + offset);
}
