// How XLA, and so JAX, calls an exported program: the stream, checks of arrays, and errors. With -DRISE_ON_CPU the
// kernels run in the emulator, where there are no streams.
#pragma once

#include <cuda.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "xla/ffi/api/ffi.h"

#ifdef RISE_ON_CPU
#define RISE_BIND xla::ffi::Ffi::Bind().Ctx<xla::ffi::Context>()
#else
#define RISE_BIND xla::ffi::Ffi::Bind().Ctx<xla::ffi::PlatformStream<CUstream>>()
#endif

namespace rise_jax {

namespace ffi = xla::ffi;

// Where the call is put.
#ifdef RISE_ON_CPU
using Where = ffi::Context;
inline CUstream stream(const Where &) { return nullptr; }
#else
using Where = CUstream;
inline CUstream stream(Where given) { return given; }
#endif

// What a definition says of an array.
struct Array {
  const char *name;
  ffi::DataType type;
  size_t elements;
};

inline ffi::Error checked(const Array &wanted, const ffi::AnyBuffer &given) {
  if (given.element_type() != wanted.type)
    return ffi::Error::InvalidArgument(std::string(wanted.name) + " has elements of another type");
  if (given.element_count() != wanted.elements)
    return ffi::Error::InvalidArgument(std::string(wanted.name) + " has " + std::to_string(given.element_count()) +
                                       " elements, not " + std::to_string(wanted.elements));
  return ffi::Error::Success();
}

inline ffi::Error error(CUresult status) {
  if (status == CUDA_SUCCESS) return ffi::Error::Success();
  const char *name = "an unknown error";
  cuGetErrorName(status, &name);
  return ffi::Error::Internal(name);
}

// Loads the program for a stream when it is first called there, since calls on one stream share temporaries; then
// launches it, one call after the other.
template <typename Program, typename Launch>
ffi::Error call(CUresult (*load)(Program **), CUstream stream, Launch launch) {
  static std::mutex one_at_a_time;
  static std::map<std::pair<CUcontext, CUstream>, Program *> loaded;
  std::lock_guard<std::mutex> held(one_at_a_time);
  CUcontext context = nullptr;
  CUresult status = cuCtxGetCurrent(&context);
  if (status != CUDA_SUCCESS) return error(status);
  Program *&program = loaded[{context, stream}];
  if (!program) status = load(&program);
  return error(status == CUDA_SUCCESS ? launch(program) : status);
}

}  // namespace rise_jax
