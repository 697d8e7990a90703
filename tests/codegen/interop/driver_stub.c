// A driver that tells a test of every call that launches, or that prepares one.
#include <cuda.h>
#include <string.h>

typedef void Told(const char *what, const long long *numbers, int count, void **pointers);
Told *told;
CUdeviceptr allocated;

static void tell(const char *what, const long long *numbers, int count, void **pointers) {
  told(what, numbers, count, pointers);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) { return *module = (CUmodule)image, 0; }
CUresult cuModuleUnload(CUmodule module) { return (void)module, 0; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  static char names[8][256];
  static int count;
  (void)module;
  strcpy(names[count], name);
  *function = (CUfunction)names[count++];
  return 0;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const long long numbers[] = {attribute, value};
  return tell((const char *)function, numbers, 2, NULL), 0;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  const long long numbers[] = {(long long)bytes};
  *address = allocated;
  return tell("allocate", numbers, 1, NULL), 0;
}
CUresult cuMemFree(CUdeviceptr address) { return (void)address, 0; }
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
  const long long numbers[] = {gx, gy, gz, bx, by, bz, shared, (long long)stream, 0, 0};
  (void)extra;
  return tell((const char *)function, numbers, 10, arguments), 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **arguments, void **extra) {
  const CUlaunchAttribute *early = c->attrs;
  const long long numbers[] = {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                               c->sharedMemBytes, (long long)c->hStream, early->id,
                               early->value.programmaticStreamSerializationAllowed};
  (void)extra;
  return tell((const char *)function, numbers, 10, arguments), 0;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  long long numbers[32] = {type, rank, (long long)address, interleave, swizzle, promotion, fill};
  int count = 7;
  for (cuuint32_t d = 0; d < rank; d++) numbers[count++] = (long long)sizes[d];
  for (cuuint32_t d = 0; d + 1 < rank; d++) numbers[count++] = (long long)strides[d];
  for (cuuint32_t d = 0; d < rank; d++) numbers[count++] = box[d];
  for (cuuint32_t d = 0; d < rank; d++) numbers[count++] = steps[d];
  memset(map, 0, sizeof *map);
  memcpy(map, &address, sizeof address);  // by which the test knows it
  return tell("encode", numbers, count, NULL), 0;
}
