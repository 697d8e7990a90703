#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<float> output, Global<const int> is_, Global<const float> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  int index_1 = is_[global_x];
  for (int i = 0; i < 3; i += 1) {  // mapSeq
    output[global_x * 3 + i] = xs_[index_1 * 3 + i];
  }
}
