// What the benchmark does on the GPU besides the kernels that it measures: filling, checking, and the separate
// kernels for what a library's product leaves to others. Sizes are numbers of elements.

#include <cuda_fp16.h>

using Size = unsigned long long;

#define EACH(index, size) \
  for (Size index = blockIdx.x * Size(blockDim.x) + threadIdx.x; index < (size); index += Size(gridDim.x) * blockDim.x)

template <typename T> __device__ void fill(T* array, const T* numbers, Size period, Size size) {
  EACH(i, size) array[i] = numbers[i % period];
}

template <typename T> __device__ void gather(T* result, const T* array, const Size* places, Size size) {
  EACH(i, size) result[i] = array[places[i]];
}

// elements that are not equal (NaN is equal to nothing)
template <typename T> __device__ void differing(const T* a, const T* b, Size size, Size* count) {
  Size found = 0;
  EACH(i, size) found += !(float(a[i]) == float(b[i]));
  if (found) atomicAdd(count, found);
}

extern "C" __global__ void fill_1(unsigned char* array, const unsigned char* numbers, Size period, Size size) {
  fill(array, numbers, period, size);
}
extern "C" __global__ void fill_2(unsigned short* array, const unsigned short* numbers, Size period, Size size) {
  fill(array, numbers, period, size);
}
extern "C" __global__ void fill_4(unsigned* array, const unsigned* numbers, Size period, Size size) {
  fill(array, numbers, period, size);
}
extern "C" __global__ void gather_1(unsigned char* result, const unsigned char* array, const Size* places, Size size) {
  gather(result, array, places, size);
}
extern "C" __global__ void gather_2(unsigned short* result, const unsigned short* array, const Size* places, Size size) {
  gather(result, array, places, size);
}
extern "C" __global__ void gather_4(unsigned* result, const unsigned* array, const Size* places, Size size) {
  gather(result, array, places, size);
}
extern "C" __global__ void differing_1(const signed char* a, const signed char* b, Size size, Size* count) {
  differing(a, b, size, count);
}
extern "C" __global__ void differing_2(const __half* a, const __half* b, Size size, Size* count) {
  differing(a, b, size, count);
}
extern "C" __global__ void differing_4(const float* a, const float* b, Size size, Size* count) {
  differing(a, b, size, count);
}

extern "C" __global__ void add_bias(float4* matrix, const float4* bias, Size columns, Size size) {
  EACH(i, size) {
    float4 x = matrix[i], b = bias[i % columns];
    matrix[i] = make_float4(x.x + b.x, x.y + b.y, x.z + b.z, x.w + b.w);
  }
}
extern "C" __global__ void relu_f32(float4* array, Size size) {
  EACH(i, size) {
    float4 x = array[i];
    array[i] = make_float4(fmaxf(x.x, 0.0f), fmaxf(x.y, 0.0f), fmaxf(x.z, 0.0f), fmaxf(x.w, 0.0f));
  }
}
extern "C" __global__ void relu_f16(uint4* result, const uint4* array, Size size) {
  EACH(i, size) {
    uint4 x = array[i];
    __half2* pair = reinterpret_cast<__half2*>(&x);
    for (int j = 0; j < 4; j++)
      pair[j] = __halves2half2(__half2float(pair[j].x) > 0.0f ? pair[j].x : __float2half(0.0f),
                               __half2float(pair[j].y) > 0.0f ? pair[j].y : __float2half(0.0f));
    result[i] = x;
  }
}

extern "C" __global__ void add_f16(uint4* matrix, const uint4* added, Size size) {
  EACH(i, size) {
    uint4 x = matrix[i], y = added[i];
    __half2* left = reinterpret_cast<__half2*>(&x);
    const __half2* right = reinterpret_cast<const __half2*>(&y);
    for (int j = 0; j < 4; j++)
      left[j] = __floats2half2_rn(__half2float(left[j].x) + __half2float(right[j].x),
                                  __half2float(left[j].y) + __half2float(right[j].y));
    matrix[i] = x;
  }
}

extern "C" __global__ void nothing() {}
