#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const float> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  for (int i = 0; i < 11; i += 1) {  // mapSeq
    float x = 0.0f;
    for (int k_outer = 0; k_outer < 3; k_outer += 1) {  // reduceSeq
      const int index_1 = min(max(global_x + k_outer - 1, 0), 6);
      for (int k_inner = 0; k_inner < 3; k_inner += 1) {  // reduceSeq
        const int index_2 = min(max(i + k_inner - 1, 0), 10);
        x = (x + xs_[index_1 * 11 + index_2]);
      }
    }
    output[global_x * 11 + i] = x;
  }
}
