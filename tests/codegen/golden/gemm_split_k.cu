#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(256)
gemm_kernel(Global<float> output, Global<const half> A, Global<const half> B, Global<const float> C, float alpha_, float beta_) {
  const int block_y = blockIdx.y;
  const int block_x = blockIdx.x;
  const int warp = threadIdx.x / 32;
  const int thread_x = threadIdx.x;
  const int thread_x_column = thread_x % 4;
  const int thread_x_row = thread_x / 4;
  const int warp_column = warp % 2;
  const int warp_row_1 = warp / 4;
  const int column = (warp / 2) % 2;
  const int thread_x_column_1 = thread_x % 8;
  const int thread_x_row_1 = thread_x / 8;
  const int start = thread_x_row * 40 + thread_x_column * 8;
  const int A_start = block_y * 10240 + thread_x_row * 160 + thread_x_column * 8;
  const int B_start = thread_x_row * 160 + block_x * 32 + thread_x_column * 8;
  const int ring_1_start = warp_row_1 * 640 + warp_column * 16;
  const int ring_start = column * 1280 + warp_row_1 * 16;
  const int tile_start = warp_row_1 * 2560 + column * 1280 + warp_column * 16;
  const int start_1 = block_y * 10240 + thread_x_row_1 * 160 + block_x * 32 + thread_x_column_1 * 4;
  const int tile_start_1 = thread_x_row_1 * 40 + thread_x_column_1 * 4;
  Shared<float> tile = shared_memory<float>(0);
  Local<wmma::fragment<wmma::accumulator, 16, 16, 16, float>, 2> xy_;
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // generate
    wmma::fill_fragment(xy_[i_1], 0.0f);
  }
  Shared<half> ring = shared_memory<half>(0);
  Shared<half> ring_1 = shared_memory<half>(15360);
  #pragma unroll
  for (int k = 0; k < 2; k += 1) {  // prologue
    copy_async<8>(&ring[k * 2560 + start], &A[k * 32 + A_start]);
    if (thread_x < 128) {
      copy_async<8>(&ring_1[k * 1280 + start], &B[k * 5120 + B_start]);
    }
    commit_copies();
  }
  int slot = 0;
  int slot_1 = 2;
  for (int k_1 = 0; k_1 < 5; k_1 += 1) {  // reducePipelined
    wait_copies<1>();
    __syncthreads();
    if (k_1 + 2 < 5) {
      copy_async<8>(&ring[slot_1 * 2560 + start], &A[k_1 * 32 + A_start + 64]);
      if (thread_x < 128) {
        copy_async<8>(&ring_1[slot_1 * 1280 + start], &B[k_1 * 5120 + B_start + 10240]);
      }
    }
    commit_copies();
    Local<wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>, 1> b_fragment;
    wmma::load_matrix_sync(b_fragment[0], ring_1 + (slot * 1280 + ring_1_start), 40);
    #pragma unroll
    for (int i_8 = 0; i_8 < 2; i_8 += 1) {  // mapSeqUnroll
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_fragment;
      wmma::load_matrix_sync(a_fragment, ring + (slot * 2560 + i_8 * 640 + ring_start), 40);
      wmma::mma_sync(xy_[i_8], a_fragment, b_fragment[0], xy_[i_8]);
    }
    slot = slot == 2 ? 0 : slot + 1;
    slot_1 = slot_1 == 2 ? 0 : slot_1 + 1;
  }
  wait_copies<0>();
  __syncthreads();
  #pragma unroll
  for (int i_10 = 0; i_10 < 2; i_10 += 1) {  // mapSeqUnroll
    wmma::store_matrix_sync(tile + (i_10 * 640 + tile_start), xy_[i_10], 40, wmma::mem_row_major);
  }
  __syncthreads();
  #pragma unroll
  for (int i_12 = 0; i_12 < 2; i_12 += 1) {  // mapSeqUnroll
    alignas(16) Local<float, 4> result_v3;
    alignas(16) Local<float, 4> tile_vector_v2;
    alignas(16) Local<float, 4> tile_vector_v1;
    alignas(16) Local<float, 4> C_vector_v0;
    copy_vector<4>(&C_vector_v0[0], &C[i_12 * 5120 + start_1]);
    copy_vector<4>(&tile_vector_v1[0], &tile[i_12 * 1280 + tile_start_1]);
    copy_vector<4>(&tile_vector_v2[0], &tile[i_12 * 1280 + tile_start_1 + 2560]);
    #pragma unroll
    for (int lane_5 = 0; lane_5 < 4; lane_5 += 1) {  // lanes
      result_v3[lane_5] = ((alpha_ * (tile_vector_v1[lane_5] + tile_vector_v2[lane_5])) + (beta_ * C_vector_v0[lane_5]));
    }
    copy_vector<4>(&output[i_12 * 5120 + start_1], &result_v3[0]);
  }
}
