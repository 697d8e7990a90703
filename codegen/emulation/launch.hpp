// From the caller's arguments to a running kernel.
#pragma once

#include <utility>

#include "half.hpp"
#include "memory.hpp"
#include "scheduler.hpp"

namespace rise_emulation {

// `codegen/emulation/emulator.py` repeats the layout of these two.
struct Argument {
  const char* name;
  void* data;
  int64_t length;  // elements of an array; -1 for a whole number, -2 for a fraction
  int32_t type;    // of the elements: letter * 256 + bytes
  int32_t flags;
};

struct Launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t seed;
  int64_t shared_bytes;
  int64_t count;
  Argument* arguments;
  uint32_t cluster[3];
  uint64_t most_steps;   // the limit on loop iterations of the kernel per thread
  uint64_t most_called;  // the limit on those in called functions between two of the kernel's
};

constexpr int flag_initialised = 1;
constexpr int flag_writable = 2;
constexpr int flag_ready = 4;
constexpr int flag_unused = 8;
constexpr int64_t whole_number = -1;
constexpr int64_t fraction = -2;
constexpr int64_t tensor_map = -3;  // `data` points to a description (hopper/tensor_map.hpp)

template <class T>
constexpr int type_number =
    (std::is_same<T, __nv_bfloat16>::value                         ? 'b'
     : std::is_same<T, __half>::value || std::is_same<T, tf32>::value ||
             std::is_floating_point<T>::value                      ? 'f'
     : std::is_signed<T>::value                                    ? 'i'
                                                                   : 'u') *
        256 +
    static_cast<int>(sizeof(T));

RISE_CODE Text type_name(int number) {
  const char* word = number / 256 == 'b'   ? "bfloat"
                     : number / 256 == 'f' ? "float"
                     : number / 256 == 'i' ? "int"
                                           : "uint";
  return text("%s%d", word, number % 256 * 8);
}

// Converts an argument for a parameter of type P.
template <class P>
struct Parameter {
  static_assert(is_number<P>, "a kernel's parameters are Global arrays and numbers");

  static bool fits(const Argument& argument) {
    if (argument.length >= 0 || argument.length == tensor_map) {
      complain(ArgumentMismatch, 0, "%s is an array, the parameter a number", argument.name);
      return false;
    }
    if constexpr (std::is_integral<P>::value) {
      if (argument.length == whole_number) {
        int64_t number = *static_cast<int64_t*>(argument.data);
        if (static_cast<int64_t>(static_cast<P>(number)) == number) return true;
        complain(ArgumentMismatch, 0, "%s is %lld, which a parameter of type %s cannot hold",
                 argument.name, static_cast<long long>(number),
                 type_name(type_number<P>).characters);
        return false;
      }
    }
    if (argument.length == whole_number || !std::is_integral<P>::value) return true;
    complain(ArgumentMismatch, 0, "%s is a fraction, the parameter of type %s", argument.name,
             type_name(type_number<P>).characters);
    return false;
  }

  static P take(const Argument& argument, int) {
    if constexpr (std::is_integral<P>::value) {
      return static_cast<P>(*static_cast<int64_t*>(argument.data));
    } else {
      if (argument.length == fraction) return P(*static_cast<double*>(argument.data));
      return P(static_cast<double>(*static_cast<int64_t*>(argument.data)));
    }
  }
};

template <class T>
struct Parameter<Pointer<T>> {
  static bool fits(const Argument& argument) {
    constexpr int expected = type_number<typename std::remove_const<T>::type>;
    if (argument.length < 0)
      complain(ArgumentMismatch, 0, "%s is a number, the parameter an array", argument.name);
    else if (argument.type != expected)
      complain(ArgumentMismatch, 0, "%s has elements of type %s, the parameter of type %s",
               argument.name, type_name(argument.type).characters,
               type_name(expected).characters);
    else if (!std::is_const<T>::value && !(argument.flags & flag_writable))
      complain(ArgumentMismatch, 0, "%s is read-only, the kernel may write it", argument.name);
    return machine.report->code == None;
  }

  static Pointer<T> take(const Argument&, int number) { return {&memories[number], 0, 0}; }
};

template <class P>
constexpr bool writes = false;
template <class T>
constexpr bool writes<Pointer<T>> = !std::is_const<T>::value;

// Shadow and data that a launch allocates, by mmap so that untouched pages cost nothing.
struct Pages {
  char* base = nullptr;
  size_t bytes = 0;

  Pages() = default;
  Pages(const Pages&) = delete;
  ~Pages() { give_back(); }

  RISE_MEMBER void give_back() {
    if (base) munmap(base, bytes);
    base = nullptr;
  }

  template <class T>
  T* take(int64_t count) {
    bytes = static_cast<size_t>(count > 0 ? count : 1) * sizeof(T);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      bytes = 0;
      complain(LaunchLimits, 0, "not enough memory to emulate this launch");
      return nullptr;
    }
    base = static_cast<char*>(memory);
    return static_cast<T*>(memory);
  }
};

RISE_CODE void prepare_array(const Argument& argument, Memory& memory, Pages& pages) {
  int64_t size = argument.type % 256;
  memory = {argument.name, static_cast<char*>(argument.data),
            argument.length * size, size, (argument.flags & flag_initialised) != 0, false,
            pages.take<Shadow>(argument.length), nullptr, (argument.flags & flag_ready) != 0,
            (argument.flags & flag_unused) != 0};
}

RISE_CODE void check_overlaps(const Launch& launch, const bool* written) {
  for (int64_t first = 0; first < launch.count; first++) {
    for (int64_t second = 0; second < launch.count; second++) {
      const Argument& a = launch.arguments[first];
      const Argument& b = launch.arguments[second];
      if (first == second || !written[first] || a.length <= 0 || b.length <= 0) continue;
      const char* start = static_cast<const char*>(a.data);
      const char* other = static_cast<const char*>(b.data);
      if (start < other + b.length * (b.type % 256) && other < start + a.length * (a.type % 256))
        complain(ArgumentMismatch, 0, "%s, which the kernel may write, overlaps %s", a.name,
                 b.name);
    }
  }
}

RISE_CODE void check_limits(const Launch& launch) {
  uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (threads == 0 || threads > most_threads || launch.block[2] > 64)
    complain(LaunchLimits, 0, "a block of %u x %u x %u threads; at most 1024, and 64 in z",
             launch.block[0], launch.block[1], launch.block[2]);
  else if (blocks == 0 || launch.grid[0] > 0x7fffffffu || launch.grid[1] > 65535 ||
           launch.grid[2] > 65535 || blocks > (uint64_t{1} << 28))
    complain(LaunchLimits, 0, "a grid of %u x %u x %u blocks", launch.grid[0], launch.grid[1],
             launch.grid[2]);
  else if (launch.shared_bytes < 0 || launch.shared_bytes > 227 * 1024)
    complain(LaunchLimits, 0, "%lld bytes of shared memory; a block has at most 232448",
             static_cast<long long>(launch.shared_bytes));
}

RISE_CODE void prepare_machine(const Launch& launch) {
  Machine& m = machine;
  gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  blockDim = {launch.block[0], launch.block[1], launch.block[2]};
  m.count = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  m.epoch = 0;
  m.blocks_started = 0;
  m.seed = launch.seed;
  m.random = Random{launch.seed};
  m.launches++;
  m.most_steps = launch.most_steps;
  m.most_called = launch.most_called;
  shared_banks.muted = false;
}

RISE_CODE void run_in_turn(const Launch& launch) {
  Machine& m = machine;
  if (uint64_t{launch.cluster[0]} * launch.cluster[1] * launch.cluster[2] != 1)
    return complain(LaunchLimits, 0, "clusters need hopper.cuh, which the kernel does not include");
  unsigned count = gridDim.x * gridDim.y * gridDim.z;
  for (unsigned block = 0; block < count; block++) m.blocks[block] = block;
  m.random.shuffle(m.blocks, count);
  for (unsigned turn = 0; turn < count && !m.report->code; turn++) run_block(m.blocks[turn]);
}

// Runs the blocks of a grid one after the other, unless another header is included.
RISE_STATE void (*run_grid)(const Launch& launch) RISE_INITIALLY(run_in_turn);

RISE_CODE void run_blocks(const Launch& launch, void (*kernel)()) {
  Machine& m = machine;
  prepare_machine(launch);
  unsigned count = gridDim.x * gridDim.y * gridDim.z;
  Pages starts, blocks, shared_data, shared_shadow;
  m.starts = starts.take<uint32_t>(count);
  m.blocks = blocks.take<unsigned>(count);
  int64_t bytes = launch.shared_bytes;
  shared_bytes = {"shared memory", shared_data.take<char>(bytes), bytes, 1, false, true,
                  shared_shadow.take<Shadow>(bytes)};
  if (!m.stacks.reserve(static_cast<size_t>(m.count)))
    complain(LaunchLimits, 0, "not enough memory for the stacks of %d threads", m.count);
  if (m.report->code) return;
  m.kernel = kernel;
  run_grid(launch);
  m.stacks.release();
}

template <auto kernel, class Signature = decltype(kernel)>
struct Kernel;

template <auto kernel, class... P>
struct Kernel<kernel, void (*)(P...)> {
  static inline const Argument* arguments = nullptr;

  template <size_t... number>
  static void call(std::index_sequence<number...>) {
    kernel(Parameter<P>::take(arguments[number], static_cast<int>(number))...);
  }

  static void run() { call(std::make_index_sequence<sizeof...(P)>()); }

  template <size_t... number>
  static bool fits(const Launch& launch, std::index_sequence<number...>) {
    return (Parameter<P>::fits(launch.arguments[number]) && ...);
  }

  static void launch(const Launch& launch, const char* name, Report* report) {
    constexpr int count = sizeof...(P);
    static_assert(count <= most_arguments, "a kernel has at most 64 parameters");
    const bool written[] = {writes<P>..., false};
    machine.report = report;
    machine.name = name;
    if (launch.count != count)
      return complain(ArgumentMismatch, 0, "the kernel has %d parameters, %d arguments are given",
                      count, static_cast<int>(launch.count));
    check_limits(launch);
    if (report->code || !fits(launch, std::make_index_sequence<sizeof...(P)>())) return;
    check_overlaps(launch, written);
    Pages pages[count + 1];
    for (int number = 0; number < count; number++) {
      memories[number] = Memory{};
      if (launch.arguments[number].length >= 0)
        prepare_array(launch.arguments[number], memories[number], pages[number]);
    }
    arguments = launch.arguments;
    if (!report->code) run_blocks(launch, run);
  }
};

}  // namespace rise_emulation

#define RISE_EMULATE(kernel)                                                       \
  extern "C" __attribute__((visibility("default"))) void rise_emulation_launch(    \
      const rise_emulation::Launch* launch, rise_emulation::Report* report) {      \
    rise_emulation::Kernel<&kernel>::launch(*launch, #kernel, report);             \
  }
