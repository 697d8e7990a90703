// What most kernels use of the emulator's templates, compiled once, too: arrays and numbers of usual types.
#pragma once

#include "launch.hpp"

#if defined(RISE_RUNTIME)
#define RISE_INSTANCE template struct
#elif defined(RISE_DECLARED)
#define RISE_INSTANCE extern template struct
#endif

#ifdef RISE_INSTANCE
#define RISE_USUAL(T)                                    \
  RISE_INSTANCE Reference<T>;                            \
  RISE_INSTANCE Pointer<T>;                              \
  RISE_INSTANCE Pointer<const T>;                        \
  RISE_INSTANCE Parameter<Pointer<T>>;                   \
  RISE_INSTANCE Parameter<Pointer<const T>>;             \
  RISE_INSTANCE LocalElement<T, UninitialisedLocal>;     \
  RISE_INSTANCE LocalElement<T, UninitialisedFragment>;  \
  RISE_INSTANCE LocalPointer<T, UninitialisedLocal>;     \
  RISE_INSTANCE LocalPointer<T, UninitialisedFragment>;

namespace rise_emulation {
RISE_USUAL(float)
RISE_USUAL(__half)
RISE_USUAL(int)
}  // namespace rise_emulation

#undef RISE_USUAL
#undef RISE_INSTANCE
#endif
