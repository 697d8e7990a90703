// CUDA without a GPU: the names that the printed text uses, for a C++17 compiler on the host.
//
// Each thread of a block is a fiber (fiber.hpp, scheduler.hpp), arrays are checked pointers into memory
// with shadow state (memory.hpp, access.hpp), fragments distribute their elements over lanes at random
// (fragment.hpp, wmma.hpp), and `RISE_EMULATE(kernel)` after the text makes it callable (launch.hpp).
// Standard headers are avoided: they take longer to compile than all of this, and they would occupy names
// that kernels use (`index`, `read`, `y0`).
#pragma once

#include "machine.hpp"
#include "access.hpp"
#include "memory.hpp"
#include "copies.hpp"
#include "half.hpp"
#include "math.hpp"
#include "scalars.hpp"
#include "wmma.hpp"
#include "mma.hpp"
#include "volta.hpp"
#include "launch.hpp"
#include "undefined.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

using namespace nvcuda;

using rise_emulation::commit_copies;
using rise_emulation::copy_async;
using rise_emulation::copy_async_or_zero;
using rise_emulation::copy_vector;
using rise_emulation::Awaited;
using rise_emulation::Global;
using rise_emulation::Local;
using rise_emulation::Shared;
using rise_emulation::load_matrices;
using rise_emulation::load_matrices_transposed;
using rise_emulation::shuffle_xor;
using rise_emulation::shared_memory;
using rise_emulation::Swizzled;
using rise_emulation::swizzled_memory;
using rise_emulation::wait_copies;

RISE_CODE void __syncthreads(int line = __builtin_LINE()) {
  rise_emulation::block_barrier(line);
}

RISE_CODE void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  rise_emulation::warp_barrier(mask, line);
}
