#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(64)
f_kernel(Global<float> output, Global<const float> xs_) {
  const int block_x = blockIdx.x;
  const int thread_x = threadIdx.x;
  const int xs_start_ = block_x * 1024 + thread_x * 4;
  Shared<float> tile = shared_memory<float>(128);
  Shared<float> tile_1 = shared_memory<float>(0);
  Shared<float> tile_2 = shared_memory<float>(128);
  Shared<float> tile_3 = shared_memory<float>(0);
  Shared<float> tile_4 = shared_memory<float>(256);
  Shared<float> tile_5 = shared_memory<float>(0);
  float acc_ = 0.0f;
  for (int k = 0; k < 2; k += 1) {  // reduceSeq
    alignas(16) Local<float, 8> value;
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // mapSeqUnroll
      copy_vector<4>(&value[i * 4], &xs_[k * 512 + i * 256 + xs_start_]);
    }
    #pragma unroll
    for (int k_1 = 0; k_1 < 8; k_1 += 1) {  // reduceSeqUnroll
      acc_ = (acc_ + value[k_1]);
    }
  }
  tile_5[thread_x] = acc_;
  __syncthreads();
  if (thread_x < 32) {
    float x_2 = 0.0f;
    for (int k_2 = 0; k_2 < 2; k_2 += 1) {  // reduceSeq
      x_2 = (x_2 + tile_5[k_2 * 32 + thread_x]);
    }
    tile_4[thread_x] = x_2;
  }
  __syncthreads();
  if (thread_x < 16) {
    float x_2_1 = 0.0f;
    for (int k_3 = 0; k_3 < 2; k_3 += 1) {  // reduceSeq
      x_2_1 = (x_2_1 + tile_4[k_3 * 16 + thread_x]);
    }
    tile_3[thread_x] = x_2_1;
  }
  __syncthreads();
  if (thread_x < 8) {
    float x_2_2 = 0.0f;
    for (int k_4 = 0; k_4 < 2; k_4 += 1) {  // reduceSeq
      x_2_2 = (x_2_2 + tile_3[k_4 * 8 + thread_x]);
    }
    tile_2[thread_x] = x_2_2;
  }
  __syncthreads();
  if (thread_x < 4) {
    float x_2_3 = 0.0f;
    for (int k_5 = 0; k_5 < 2; k_5 += 1) {  // reduceSeq
      x_2_3 = (x_2_3 + tile_2[k_5 * 4 + thread_x]);
    }
    tile_1[thread_x] = x_2_3;
  }
  __syncthreads();
  if (thread_x < 2) {
    float x_2_4 = 0.0f;
    for (int k_6 = 0; k_6 < 2; k_6 += 1) {  // reduceSeq
      x_2_4 = (x_2_4 + tile_1[k_6 * 2 + thread_x]);
    }
    tile[thread_x] = x_2_4;
  }
  __syncthreads();
  if (thread_x < 1) {
    float x_1 = 0.0f;
    for (int k_7 = 0; k_7 < 2; k_7 += 1) {  // reduceSeq
      x_1 = (x_1 + tile[thread_x * 2 + k_7]);
    }
    output[block_x] = x_1;
  }
}
