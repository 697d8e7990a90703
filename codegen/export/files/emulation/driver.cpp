// A substitute for the CUDA driver: memory of the GPU is the host's, and kernels run in the emulator at once.
#include <cuda.h>

#include <cstdlib>
#include <cstring>

#include "exported.hpp"

namespace {

constexpr size_t alignment = 256;

size_t whole(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment + alignment; }

CUresult run(CUfunction function, const RiseLaunch &launch) {
  const RiseKernel &kernel = *reinterpret_cast<const RiseKernel *>(function);
  return kernel.run(launch) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

// By the number of a CUtensorMapDataType.
constexpr int element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
// By the number of a CUtensorMapSwizzle.
constexpr int swizzles[] = {0, 32, 64, 128};

}  // namespace

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int number) { return *device = number, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) { return *context = nullptr, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = nullptr, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream *stream, unsigned) { return *stream = nullptr, CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamDestroy(CUstream) { return CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult status, const char **name) {
  *name = status == CUDA_ERROR_LAUNCH_FAILED        ? "CUDA_ERROR_LAUNCH_FAILED"
          : status == CUDA_ERROR_MISALIGNED_ADDRESS ? "CUDA_ERROR_MISALIGNED_ADDRESS"
          : status == CUDA_ERROR_NOT_FOUND          ? "CUDA_ERROR_NOT_FOUND"
          : status == CUDA_ERROR_OUT_OF_MEMORY      ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                    : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  void *memory = aligned_alloc(alignment, whole(bytes));
  if (memory) memset(memory, 0xff, whole(bytes));
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree(CUdeviceptr address) { return free(reinterpret_cast<void *>(address)), CUDA_SUCCESS; }
CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes) {
  return memcpy(reinterpret_cast<void *>(target), source, bytes), CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes) {
  return memcpy(target, reinterpret_cast<void *>(source), bytes), CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *) { return *module = nullptr, CUDA_SUCCESS; }
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  for (const RiseKernel *kernel = rise_kernels; kernel->name; kernel++)
    if (!strcmp(kernel->name, name)) {
      *function = reinterpret_cast<CUfunction>(const_cast<RiseKernel *>(kernel));
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream, void **arguments,
                        void **) {
  return run(function, {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, arguments});
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra) {
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                        config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, arguments,
                        extra);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (reinterpret_cast<uintptr_t>(address) % 16 || rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
  RiseMap made = {};
  made.data = address;
  made.rank = static_cast<int32_t>(rank);
  made.swizzle = swizzles[swizzle];
  made.element_bytes = element_bytes[type];
  for (cuuint32_t d = 0; d < rank; d++) {
    made.sizes[d] = static_cast<int64_t>(sizes[d]);
    made.box[d] = static_cast<int32_t>(box[d]);
    if (d) made.strides[d - 1] = static_cast<int64_t>(strides[d - 1]);
  }
  memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}
