#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const float> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  float x = xs_[global_x * 33];
  for (int k = 0; k < 33; k += 1) {  // reduceSeq
    x = fmaxf(x, xs_[global_x * 33 + k]);
  }
  Local<float, 33> value;
  for (int i = 0; i < 33; i += 1) {  // mapSeq
    value[i] = expf((xs_[global_x * 33 + i] - x));
  }
  float x_1 = 0.0f;
  for (int k_1 = 0; k_1 < 33; k_1 += 1) {  // reduceSeq
    x_1 = (x_1 + value[k_1]);
  }
  for (int i_1 = 0; i_1 < 33; i_1 += 1) {  // mapSeq
    output[global_x * 33 + i_1] = (value[i_1] / x_1);
  }
}
