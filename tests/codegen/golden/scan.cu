#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const float> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  float acc = 0.0f;
  for (int k = 0; k < 33; k += 1) {  // scanSeq
    acc = (acc + xs_[global_x * 33 + k]);
    output[global_x * 33 + k] = acc;
  }
}
