#include "hopper.cuh"

#ifndef RISE_EMULATION
template <>
struct Wgmma<64, half, Major::K, Major::K, float, Descriptor> {
  static __device__ __forceinline__ void issue(float* d, Descriptor a, Descriptor b, bool scale) {
    float* r = reinterpret_cast<float*>(d);
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]), "+f"(r[8]), "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15]), "+f"(r[16]), "+f"(r[17]), "+f"(r[18]), "+f"(r[19]), "+f"(r[20]), "+f"(r[21]), "+f"(r[22]), "+f"(r[23]), "+f"(r[24]), "+f"(r[25]), "+f"(r[26]), "+f"(r[27]), "+f"(r[28]), "+f"(r[29]), "+f"(r[30]), "+f"(r[31])
                 : "l"(a), "l"(b), "r"(static_cast<int>(scale)));
  }
};
#endif

extern "C" __global__ void __launch_bounds__(384, 1)
product_kernel(Global<float> output, Global<const half> A, Global<const half> B, const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map) {
  const int block_x = blockIdx.x;
  const int warpgroup = uniform(threadIdx.x / 128);
  const int member = threadIdx.x % 128;
  Shared<half> ring = shared_memory<half>(1024);
  Shared<half> ring_1 = shared_memory<half>(50176);
  Shared<Barrier> full = shared_memory<Barrier>(0);
  Shared<Barrier> empty = shared_memory<Barrier>(128);
  if (threadIdx.x == 0) {
    for (int s = 0; s < 3; s += 1)
      barrier_init(full + s, 1);
    fence_barrier_init();
    for (int s = 0; s < 3; s += 1)
      barrier_init(empty + s, 2);
    fence_barrier_init();
  }
  if (threadIdx.x == 256) {
    prefetch_map(A_map);
    prefetch_map(B_map);
  }
  __syncthreads();
  await_previous_grid();
  if (threadIdx.x >= 256) {  // 1 load
    registers_decrease<40>();
    if (threadIdx.x == 256) {
      #pragma unroll 1
      for (int k_1 = 0; k_1 < 3; k_1 += 1) {  // load
        barrier_wait(empty + k_1, 1);
        barrier_expect(full + k_1, 24576);
        bulk_load(ring + (k_1 * 8192), A_map, full + k_1, k_1 * 64, 0);
        bulk_load(ring_1 + (k_1 * 4096), B_map, full + k_1, k_1 * 64, block_x * 64);
      }
    }
    if (threadIdx.x == 256) {
      start_next_grid();
    }
  } else {  // 2 compute
    registers_increase<232>();
    Local<group::fragment<64, float>, 1> xy_1_;
    wgmma_fence(xy_1_[0].x);
    int slot = 2;
    for (int k = 0; k < 3; k += 1) {  // reduceRoleSplit
      barrier_wait(full + k, 0);
      wgmma_fence();
      #pragma unroll
      for (int k_2 = 0; k_2 < 4; k_2 += 1) {  // reduceSeqUnroll
        wgmma<64, half>(xy_1_[0].x, further(shared_descriptor(ring + (k * 8192 + warpgroup * 4096), 16, 1024, Swizzle::B128), k_2 * 32), further(shared_descriptor(ring_1 + (k * 4096), 16, 1024, Swizzle::B128), k_2 * 32), k + k_2 > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();
      if (0 < k) {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty + slot);
      }
      slot = slot == 2 ? 0 : slot + 1;
    }
    wgmma_wait<0>(xy_1_[0].x);
    if (threadIdx.x % 128 == 0) barrier_arrive(empty + 2);
    #pragma unroll
    for (int g_1_outer = 0; g_1_outer < 8; g_1_outer += 1) {  // asMatrix
      #pragma unroll
      for (int g_1_inner = 0; g_1_inner < 2; g_1_inner += 1) {  // asMatrix
        copy_vector<2>(&output[warpgroup * 8192 + (member / 32) * 2048 + g_1_inner * 1024 + ((member / 4) % 8) * 128 + block_x * 64 + g_1_outer * 8 + (member % 4) * 2], &xy_1_[0].x[g_1_outer * 4 + g_1_inner * 2]);
      }
    }
  }
}
