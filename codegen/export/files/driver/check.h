// What a test needs besides the launcher: arrays from files, and the comparison of a result with another file.
#pragma once

#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(CUresult status, const char *what) {
  if (status == CUDA_SUCCESS) return;
  const char *name = "unknown";
  cuGetErrorName(status, &name);
  fprintf(stderr, "%s: %s\n", what, name);
  exit(2);
}

static void read_file(const char *folder, const char *name, void *memory, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.bin", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file || fread(memory, 1, bytes, file) != bytes || fgetc(file) != EOF) {
    fprintf(stderr, "%s does not hold %zu bytes\n", path, bytes);
    exit(2);
  }
  fclose(file);
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes + 1);
  if (memory) return memory;
  fprintf(stderr, "no memory\n");
  exit(2);
}

// An array on the GPU: that of a file; or all ones, which is not a number in types that have such, without one.
static CUdeviceptr array(const char *folder, const char *name, size_t bytes) {
  CUdeviceptr address;
  void *memory = allocate(bytes);
  memset(memory, 0xff, bytes);
  if (name) read_file(folder, name, memory, bytes);
  check(cuMemAlloc(&address, bytes ? bytes : 1), "cuMemAlloc");
  check(cuMemcpyHtoD(address, memory, bytes), "cuMemcpyHtoD");
  free(memory);
  return address;
}

static double from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

// An element of a floating-point type: e is half, b bfloat16, f float, d double.
static double element(char type, const void *memory, size_t index) {
  switch (type) {
    case 'e': return from_half(((const uint16_t *)memory)[index]);
    case 'b': return from_bits((uint32_t)((const uint16_t *)memory)[index] << 16);
    case 'f': return ((const float *)memory)[index];
    default: return ((const double *)memory)[index];
  }
}

// Compares a result with a file, and says what it finds. Returns 0 if they agree.
//   type: of the elements, as above; x for others, which have to be equal
//   relative, sums: how far an element may be off, as a part of itself, and of the largest element
static int compare(const char *folder, const char *name, CUdeviceptr result, size_t count, size_t size,
                   char type, double relative, double sums) {
  char *found = allocate(count * size), *expected = allocate(count * size);
  check(cuMemcpyDtoH(found, result, count * size), "cuMemcpyDtoH");
  read_file(folder, name, expected, count * size);
  double largest = 0, error = 0;
  for (size_t i = 0; type != 'x' && i < count; i++) {
    const double value = fabs(element(type, expected, i));
    if (isfinite(value) && value > largest) largest = value;
  }
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < count; i++) {
    int differs = memcmp(found + i * size, expected + i * size, size) != 0;
    if (differs && type != 'x') {
      const double a = element(type, found, i), b = element(type, expected, i);
      const double difference = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
      differs = !(difference <= relative * (isfinite(b) ? fabs(b) : 0) + sums * largest);
      if (!differs && difference > error) error = difference;
    }
    if (differs && !wrong++) first = i;
  }
  if (wrong) {
    printf("%s: WRONG, %zu of %zu elements, first at %zu", name, wrong, count, first);
    if (type != 'x')
      printf(": %g, expected %g", element(type, found, first), element(type, expected, first));
    printf("\n");
  } else if (error > 0) {
    printf("%s: agrees, largest difference %g\n", name, error);
  } else {
    printf("%s: agrees, equal in every element\n", name);
  }
  free(found);
  free(expected);
  return wrong != 0;
}
