#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const float> w, Global<const float> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  for (int i = 0; i < 8; i += 1) {  // mapSeq
    float acc_ = 0.0f;
    for (int k_outer = 0; k_outer < 3; k_outer += 1) {  // reduceSeq
      const int xs_start_ = global_x * 12 + k_outer * 12 + i;
      for (int k_inner = 0; k_inner < 5; k_inner += 1) {  // reduceSeq
        acc_ = (acc_ + (w[k_outer * 5 + k_inner] * xs_[k_inner + xs_start_]));
      }
    }
    output[global_x * 8 + i] = acc_;
  }
}
