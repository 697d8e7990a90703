// What is the same for all kernels: the emulator's functions and its state. A text that is compiled without
// optimising, to start soon, only declares them, and is linked with an object that defines them, which is
// compiled once, with RISE_RUNTIME defined. A text that is optimised defines them itself, so that they are inlined.
// RISE_CODE is for functions, RISE_COLD for those that tell of faults, RISE_MEMBER for those of classes.
// RISE_INSTANCE is for what is usual of templates (instances.hpp); where all is optimised, it is not defined.
#pragma once

#if defined(RISE_RUNTIME)
#define RISE_CODE __attribute__((visibility("hidden")))
#define RISE_MEMBER __attribute__((used, visibility("hidden"))) inline
#define RISE_STATE __attribute__((visibility("hidden")))
#define RISE_INSTANCE template struct
#elif defined(__OPTIMIZE__)
#define RISE_CODE static inline
#define RISE_MEMBER inline
#define RISE_STATE static
#else
#define RISE_DECLARED
#define RISE_CODE inline __attribute__((gnu_inline, visibility("hidden")))
#define RISE_MEMBER RISE_CODE
#define RISE_COLD RISE_CODE
#define RISE_STATE extern __attribute__((visibility("hidden")))
#define RISE_INSTANCE extern template struct
#endif

#ifdef RISE_DECLARED
#define RISE_INITIALLY(...)
#else
#define RISE_COLD __attribute__((noinline, cold)) RISE_CODE
#define RISE_INITIALLY(...) = __VA_ARGS__
#endif
