#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(256)
gemm_kernel(Global<float> output, Global<const half> A, Global<const half> B, Global<const float> C, float alpha_, float beta_) {
  const int block_y = blockIdx.y;
  const int block_x = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int warp_column = warp % 4;
  const int warp_row = warp / 4;
  const int B_start = block_x * 128 + warp_column * 32;
  const int A_start = block_y * 32768 + warp_row * 16384;
  const int start = block_y * 32768 + warp_row * 16384 + block_x * 128 + warp_column * 32;
  Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 8> acc_;
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; i_1 += 1) {  // generate
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // generate
      wmma::fill_fragment(acc_[i_1 * 2 + i_2], 0.0f);
    }
  }
  for (int k = 0; k < 4; k += 1) {  // reduceSeq
    #pragma unroll
    for (int k_1 = 0; k_1 < 4; k_1 += 1) {  // reduceSeqUnroll
      Local<wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>, 2> b_fragment;
      #pragma unroll
      for (int i_3 = 0; i_3 < 2; i_3 += 1) {  // mapSeqUnroll
        wmma::load_matrix_sync(b_fragment[i_3], B + (k * 16384 + k_1 * 4096 + i_3 * 16 + B_start), 256);
      }
      #pragma unroll
      for (int i_4 = 0; i_4 < 4; i_4 += 1) {  // mapSeqUnroll
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_fragment;
        wmma::load_matrix_sync(a_fragment, A + (i_4 * 4096 + k * 64 + k_1 * 16 + A_start), 256);
        #pragma unroll
        for (int i_5 = 0; i_5 < 2; i_5 += 1) {  // mapSeqUnroll
          wmma::mma_sync(acc_[i_4 * 2 + i_5], a_fragment, b_fragment[i_5], acc_[i_4 * 2 + i_5]);
        }
      }
    }
  }
  #pragma unroll
  for (int i_6 = 0; i_6 < 4; i_6 += 1) {  // mapSeqUnroll
    #pragma unroll
    for (int i_7 = 0; i_7 < 2; i_7 += 1) {  // mapSeqUnroll
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> c_fragment;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> c_fragment_1;
      wmma::load_matrix_sync(c_fragment_1, C + (i_6 * 4096 + i_7 * 16 + start), 256, wmma::mem_row_major);
      #pragma unroll
      for (int e = 0; e < c_fragment.num_elements; e += 1) {
        c_fragment.x[e] = ((alpha_ * acc_[i_6 * 2 + i_7].x[e]) + (beta_ * c_fragment_1.x[e]));
      }
      wmma::store_matrix_sync(output + (i_6 * 4096 + i_7 * 16 + start), c_fragment, 256, wmma::mem_row_major);
    }
  }
}
