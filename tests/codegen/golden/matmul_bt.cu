#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(256)
matmul_bt_kernel(Global<float> output, Global<const half> A, Global<const half> B) {
  const int block_y = blockIdx.y;
  const int block_x = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int warp_column = warp % 4;
  const int warp_row = warp / 4;
  const int B_start = block_x * 4096 + warp_column * 1024;
  const int A_start = block_y * 2048 + warp_row * 1024;
  Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 1> acc_;
  wmma::fill_fragment(acc_[0], 0.0f);
  for (int k = 0; k < 2; k += 1) {  // reduceSeq
    #pragma unroll
    for (int k_1 = 0; k_1 < 2; k_1 += 1) {  // reduceSeqUnroll
      Local<wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>, 1> b_fragment;
      wmma::load_matrix_sync(b_fragment[0], B + (k * 32 + k_1 * 16 + B_start), 64);
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_fragment;
      wmma::load_matrix_sync(a_fragment, A + (k * 32 + k_1 * 16 + A_start), 64);
      wmma::mma_sync(acc_[0], a_fragment, b_fragment[0], acc_[0]);
    }
  }
  wmma::store_matrix_sync(output + (block_y * 4096 + warp_row * 2048 + block_x * 64 + warp_column * 16), acc_[0], 128, wmma::mem_row_major);
}
