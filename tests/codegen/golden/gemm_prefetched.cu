#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(128)
gemm_kernel(Global<float> output, Global<const half> A, Global<const half> B, Global<const float> C, float alpha_, float beta_) {
  const int block_y = blockIdx.y;
  const int block_x = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int thread_x = threadIdx.x;
  const int thread_x_column = thread_x % 4;
  const int thread_x_row = thread_x / 4;
  const int warp_column = warp % 2;
  const int warp_row = warp / 2;
  const int thread_x_column_1 = thread_x % 8;
  const int thread_x_row_1 = thread_x / 8;
  const int start = thread_x_row * 40 + thread_x_column * 8;
  const int A_start = block_y * 10240 + thread_x_row * 160 + thread_x_column * 8;
  const int B_start = thread_x_row * 160 + block_x * 32 + thread_x_column * 8;
  const int tile_start = warp_row * 1280 + warp_column * 16;
  const int start_1 = block_y * 10240 + thread_x_row_1 * 160 + block_x * 32 + thread_x_column_1 * 4;
  const int tile_start_1 = thread_x_row_1 * 40 + thread_x_column_1 * 4;
  Shared<float> tile = shared_memory<float>(0);
  Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 2> xy_;
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // generate
    wmma::fill_fragment(xy_[i_1], 0.0f);
  }
  Shared<half> ring = shared_memory<half>(0);
  Shared<half> ring_1 = shared_memory<half>(10240);
  #pragma unroll
  for (int i_3 = 0; i_3 < 2; i_3 += 1) {  // mapSeqUnroll
    copy_vector<8>(&ring[i_3 * 1280 + start], &A[i_3 * 5120 + A_start]);
  }
  copy_vector<8>(&ring_1[start], &B[B_start]);
  int slot = 0;
  int slot_1 = 1;
  for (int k_1 = 0; k_1 < 5; k_1 += 1) {  // reducePipelined
    Local<half, 8> prefetched_1;
    Local<half, 16> prefetched;
    if (k_1 + 1 < 5) {
      #pragma unroll
      for (int i_5 = 0; i_5 < 2; i_5 += 1) {  // mapSeqUnroll
        copy_vector<8>(&prefetched[i_5 * 8], &A[i_5 * 5120 + k_1 * 32 + A_start + 32]);
      }
      copy_vector<8>(&prefetched_1[0], &B[k_1 * 5120 + B_start + 5120]);
    }
    __syncthreads();
    #pragma unroll
    for (int k_2 = 0; k_2 < 2; k_2 += 1) {  // reduceSeqUnroll
      Local<wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>, 1> b_fragment;
      wmma::load_matrix_sync(b_fragment[0], ring_1 + (slot * 1280 + k_2 * 640 + warp_column * 16), 40);
      #pragma unroll
      for (int i_10 = 0; i_10 < 2; i_10 += 1) {  // mapSeqUnroll
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_fragment;
        wmma::load_matrix_sync(a_fragment, ring + (slot * 2560 + warp_row * 1280 + i_10 * 640 + k_2 * 16), 40);
        wmma::mma_sync(xy_[i_10], a_fragment, b_fragment[0], xy_[i_10]);
      }
    }
    if (k_1 + 1 < 5) {
      #pragma unroll
      for (int i_6 = 0; i_6 < 2; i_6 += 1) {  // mapSeqUnroll
        copy_vector<8>(&ring[slot_1 * 2560 + i_6 * 1280 + start], &prefetched[i_6 * 8]);
      }
      copy_vector<8>(&ring_1[slot_1 * 1280 + start], &prefetched_1[0]);
    }
    slot = slot == 1 ? 0 : slot + 1;
    slot_1 = slot_1 == 1 ? 0 : slot_1 + 1;
  }
  __syncthreads();
  #pragma unroll
  for (int i_12 = 0; i_12 < 2; i_12 += 1) {  // mapSeqUnroll
    wmma::store_matrix_sync(tile + (i_12 * 640 + tile_start), xy_[i_12], 40, wmma::mem_row_major);
  }
  __syncthreads();
  #pragma unroll
  for (int i_14 = 0; i_14 < 4; i_14 += 1) {  // mapSeqUnroll
    alignas(16) Local<float, 4> result_v2;
    alignas(16) Local<float, 4> tile_vector_v1;
    alignas(16) Local<float, 4> C_vector_v0;
    copy_vector<4>(&C_vector_v0[0], &C[i_14 * 2560 + start_1]);
    copy_vector<4>(&tile_vector_v1[0], &tile[i_14 * 640 + tile_start_1]);
    #pragma unroll
    for (int lane_7 = 0; lane_7 < 4; lane_7 += 1) {  // lanes
      result_v2[lane_7] = ((alpha_ * tile_vector_v1[lane_7]) + (beta_ * C_vector_v0[lane_7]));
    }
    copy_vector<4>(&output[i_14 * 2560 + start_1], &result_v2[0]);
  }
}
