#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const float> A, Global<const float> B) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  for (int i = 0; i < 11; i += 1) {  // mapSeq
    float acc_ = 0.0f;
    for (int k = 0; k < 5; k += 1) {  // reduceSeq
      acc_ = (acc_ + (A[global_x * 5 + k] * B[k * 11 + i]));
    }
    output[global_x * 11 + i] = acc_;
  }
}
