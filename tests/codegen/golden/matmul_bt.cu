#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(256)
matmul_bt(Global<float> output, Global<const half> A, Global<const half> B) {
  const int block_y = blockIdx.y;
  const int block_x = blockIdx.x;
  Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 1> acc;
  wmma::fill_fragment(acc[0], 0.0f);
  for (int k = 0; k < 2; k += 1) {  // reduceSeq
    const int warp = threadIdx.x / 32;
    #pragma unroll
    for (int k_1 = 0; k_1 < 2; k_1 += 1) {  // reduceSeqUnroll
      Local<wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>, 1> b_fragment;
      wmma::load_matrix_sync(b_fragment[0], B + (block_x * 4096 + k * 32 + k_1 * 16 + (warp % 4) * 1024), 64);
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_fragment;
      wmma::load_matrix_sync(a_fragment, A + (block_y * 2048 + k * 32 + k_1 * 16 + (warp / 4) * 1024), 64);
      wmma::mma_sync(acc[0], a_fragment, b_fragment[0], acc[0]);
    }
  }
  const int warp_1 = threadIdx.x / 32;
  wmma::store_matrix_sync(output + (block_x * 64 + block_y * 4096 + (warp_1 % 4) * 16 + (warp_1 / 4) * 2048), acc[0], 128, wmma::mem_row_major);
}
