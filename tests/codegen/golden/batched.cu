#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(3)
f_kernel(Global<float> output, Global<const float> A, Global<const float> B) {
  const int global_x = blockIdx.x * 3 + threadIdx.x;
  for (int i = 0; i < 7; i += 1) {  // mapSeq
    const int A_start = global_x * 35 + i * 5;
    const int output_start = global_x * 77 + i * 11;
    for (int i_1 = 0; i_1 < 11; i_1 += 1) {  // mapSeq
      const int B_start = global_x * 55 + i_1;
      float acc_ = 0.0f;
      for (int k = 0; k < 5; k += 1) {  // reduceSeq
        acc_ = (acc_ + (A[A_start + k] * B[k * 11 + B_start]));
      }
      output[i_1 + output_start] = acc_;
    }
  }
}
