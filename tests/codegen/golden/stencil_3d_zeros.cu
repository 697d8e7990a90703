#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(5)
f_kernel(Global<float> output, Global<const float> xs_) {
  const int global_x = blockIdx.x * 5 + threadIdx.x;
  for (int i = 0; i < 4; i += 1) {  // mapSeq
    const int output_start = global_x * 28 + i * 7;
    for (int i_1 = 0; i_1 < 7; i_1 += 1) {  // mapSeq
      float x = 0.0f;
      for (int k_outer = 0; k_outer < 3; k_outer += 1) {  // reduceSeq
        for (int k_inner_outer = 0; k_inner_outer < 3; k_inner_outer += 1) {  // reduceSeq
          const int xs_start_ = global_x * 28 + k_outer * 28 + i * 7 + k_inner_outer * 7 + i_1;
          for (int k_inner_inner = 0; k_inner_inner < 3; k_inner_inner += 1) {  // reduceSeq
            x = (x + ((global_x + k_outer < 1) ? 0.0f : ((global_x + k_outer - 1 < 5) ? ((i + k_inner_outer < 1) ? 0.0f : ((i + k_inner_outer - 1 < 4) ? ((i_1 + k_inner_inner < 1) ? 0.0f : ((i_1 + k_inner_inner - 1 < 7) ? xs_[k_inner_inner + xs_start_ - 36] : 0.0f)) : 0.0f)) : 0.0f)));
          }
        }
      }
      output[i_1 + output_start] = x;
    }
  }
}
