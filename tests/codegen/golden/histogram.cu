#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f_kernel(Global<int> output, Global<const int> xs_) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  int acc_ = 0;
  for (int k = 0; k < 19; k += 1) {  // reduceSeq
    acc_ = (int)((unsigned int)acc_ + (unsigned int)((xs_[k] == global_x) ? 1 : 0));
  }
  output[global_x] = acc_;
}
