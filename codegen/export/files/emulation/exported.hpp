// What the driver's substitute (driver.cpp) knows of kernels, and of tensor maps. The two are compiled apart,
// because the headers of the emulator avoid those of the C++ library, whose names kernels may use.
#pragma once

#include <stdint.h>

struct RiseLaunch {
  unsigned grid[3], block[3];
  int64_t shared_bytes;
  void **arguments;
};

// Runs a kernel; writes the first fault to stderr, and returns its number, or 0.
struct RiseKernel {
  const char *name;
  int (*run)(const RiseLaunch &launch);
};

// The end of the table has no name.
extern "C" const RiseKernel rise_kernels[];

// A tensor map, within the 128 bytes of a CUtensorMap; innermost dimension first.
struct RiseMap {
  void *data;
  int64_t sizes[5];
  int64_t strides[4];  // of the dimensions after the first, in bytes
  int32_t box[5];
  int32_t rank, swizzle, element_bytes;
};
static_assert(sizeof(RiseMap) <= 128, "a map fits into a CUtensorMap");
