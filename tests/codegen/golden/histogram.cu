#include "rise.cuh"

extern "C" __global__ void __launch_bounds__(7)
f(Global<int> output, Global<const int> xs) {
  const int global_x = blockIdx.x * 7 + threadIdx.x;
  int acc = 0;
  for (int k = 0; k < 19; k += 1) {  // reduceSeq
    acc = (int)((unsigned int)acc + (unsigned int)((xs[k] == global_x) ? 1 : 0));
  }
  output[global_x] = acc;
}
