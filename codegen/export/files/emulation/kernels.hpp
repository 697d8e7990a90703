// From a launch of the driver's interface to one of the emulator: included after the text of the kernels.
#pragma once

#include <stdio.h>

#include "exported.hpp"

namespace rise_emulation {

// What the program knows of a parameter: its name, for messages; the elements of an array; whether the kernel
// has to write them before it reads them, and whether it may read them before the kernel in front has ended.
struct Formal {
  const char *name;
  int64_t length;
  bool unwritten, ready;

  int32_t flags() const {
    return flag_writable | (unwritten ? 0 : flag_initialised) | (ready ? flag_ready : 0);
  }
};

#ifdef RISE_EMULATION
using Description = MapDescription;
#else
struct Description {};
#endif

// The place of a number, or of a map, while the kernel runs.
struct Storage {
  union {
    int64_t whole;
    double real;
  };
  Description map;
};

// A number.
template <class P>
struct Given {
  static Argument of(const Formal &formal, void *value, Storage &storage) {
    if constexpr (std::is_integral<P>::value) {
      storage.whole = static_cast<int64_t>(*static_cast<P *>(value));
      return {formal.name, &storage.whole, whole_number, 0, 0};
    } else {
      storage.real = static_cast<double>(*static_cast<P *>(value));
      return {formal.name, &storage.real, fraction, 0, 0};
    }
  }
};

template <class T>
struct Given<Pointer<T>> {
  static Argument of(const Formal &formal, void *value, Storage &) {
    constexpr int type = type_number<typename std::remove_const<T>::type>;
    return {formal.name, *static_cast<void **>(value), formal.length, type, formal.flags()};
  }
};

#ifdef RISE_EMULATION
template <>
struct Given<TensorMap> {
  static Argument of(const Formal &formal, void *value, Storage &storage) {
    RiseMap map;
    __builtin_memcpy(&map, value, sizeof map);
    MapDescription &made = storage.map = {};
    made.data = map.data;
    made.bytes = formal.length * map.element_bytes;
    for (int d = 0; d < map.rank; d++) {
      made.sizes[d] = map.sizes[d];
      made.strides[d] = d ? map.strides[d - 1] : map.element_bytes;
      made.box[d] = map.box[d];
    }
    made.rank = map.rank;
    made.swizzle = map.swizzle;
    made.element_bytes = map.element_bytes;
    made.flags = formal.flags();
    return {formal.name, &storage.map, tensor_map, 0, formal.flags()};
  }
};
#endif

template <auto kernel, class Signature = decltype(kernel)>
struct Exported;

template <auto kernel, class... P>
struct Exported<kernel, void (*)(P...)> {
  static int run(const RiseLaunch &given, const char *name, unsigned cluster, const Formal *formals) {
    Argument arguments[sizeof...(P) + 1];
    Storage storage[sizeof...(P) + 1];
    int number = 0;
    ((arguments[number] = Given<typename std::remove_const<P>::type>::of(formals[number], given.arguments[number],
                                                                         storage[number]),
      number++),
     ...);
    Launch launch = {};
    for (int axis = 0; axis < 3; axis++) {
      launch.grid[axis] = given.grid[axis];
      launch.block[axis] = given.block[axis];
      launch.cluster[axis] = axis ? 1 : cluster;
    }
    launch.shared_bytes = given.shared_bytes;
    launch.count = sizeof...(P);
    launch.arguments = arguments;
    launch.most_steps = launch.most_called = INT64_MAX;
    Report report = {};
    Kernel<kernel>::launch(launch, name, &report);
    if (report.code) fprintf(stderr, "R09%02d: line %d: %s\n", report.code, report.line, report.message);
    return report.code;
  }
};

}  // namespace rise_emulation

#define RISE_EXPORTED(kernel, cluster, formals)                                             \
  {#kernel, [](const RiseLaunch &launch) {                                                  \
     return rise_emulation::Exported<&kernel>::run(launch, #kernel, cluster, formals);      \
   }}
