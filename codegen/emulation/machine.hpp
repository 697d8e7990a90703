// One multiprocessor: the state that the running kernel, its memory and its scheduler share, and
// how a fiber reports a fault.
#pragma once

#include "fiber.hpp"
#include "report.hpp"

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};

RISE_STATE uint3 threadIdx, blockIdx;
RISE_STATE dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace rise_emulation {

constexpr int lanes_per_warp = 32;
constexpr int most_threads = 1024;

struct Random {
  uint64_t state = 0;

  uint64_t next() {  // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  template <class T>
  void shuffle(T* items, unsigned count) {
    for (unsigned left = count; left > 1; left--) {
      unsigned chosen = static_cast<unsigned>(((next() >> 32) * left) >> 32);
      T item = items[left - 1];
      items[left - 1] = items[chosen];
      items[chosen] = item;
    }
  }
};

enum class State : uint8_t { Ready, AtBarrier, AtCollective, Waiting, Finished };

struct Thread {
  Context context;
  State state;
  int line;       // the last line known to have run
  uint64_t steps;   // of the kernel's loops so far
  uint64_t called;  // of loops in called functions, since the kernel's last step
};

// A collective of a warp, executed once its last lane has arrived.
using Collective = void (*)(void** operands, int line);

struct Warp {
  int arrived, finished, lanes;
  uint32_t epoch;  // counts what orders the lanes: __syncwarp, and barriers of the block
  Collective collective;
  const char* operation;
  int line;
  void* operands[lanes_per_warp];
};

struct Machine {
  Context scheduler;
  Stacks stacks;
  Thread threads[most_threads];
  Warp warps[most_threads / lanes_per_warp];
  int order[most_threads];
  int count;      // threads of a block
  int current;    // the running thread
  int at_barrier, finished, barrier_line;
  uint32_t epoch;        // counts barriers and starts of blocks: never the same twice
  uint32_t block_start;  // its value when this block started
  uint32_t* starts;      // by position in the execution order of blocks: their `block_start`
  unsigned* blocks;      // by position: the number of the block
  unsigned blocks_started;
  uint64_t seed;
  unsigned launches;
  Random random;
  Report* report;
  void (*kernel)();
  const char* name;     // of the kernel
  uint64_t most_steps;  // the limit on loop iterations per thread
  uint64_t most_called;
};

RISE_STATE Machine machine;

// Called whenever a barrier orders the `count` threads from `first` of the running block. Null if
// epochs suffice to decide the order.
RISE_STATE void (*threads_met)(int first, int count);

RISE_CODE uint3 position(unsigned number, const dim3& extent) {
  return {number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

RISE_CODE Text thread_name(int thread) {
  uint3 at = position(static_cast<unsigned>(thread), blockDim);
  return text("thread (%u, %u, %u)", at.x, at.y, at.z);
}

RISE_CODE Text block_name(unsigned block) {
  uint3 at = position(block, gridDim);
  return text("block (%u, %u, %u)", at.x, at.y, at.z);
}

RISE_CODE Text place_name(int thread) {
  return text("%s of block (%u, %u, %u)", thread_name(thread).characters, blockIdx.x, blockIdx.y,
              blockIdx.z);
}

__attribute__((format(printf, 3, 4))) RISE_CODE void complain(Fault fault, int line,
                                                                  const char* format, ...) {
  Report& report = *machine.report;
  if (report.code) return;
  report.code = fault;
  report.line = line;
  va_list arguments;
  va_start(arguments, format);
  __builtin_vsnprintf(report.message, sizeof report.message, format, arguments);
  va_end(arguments);
}

// Leaves the running fiber. Returns when it is resumed, never if the kernel has been reported.
RISE_CODE void leave() {
  Thread& me = machine.threads[machine.current];
  switch_context(me.context, machine.scheduler);
}

// Reports and abandons the kernel: what the fibers hold owns nothing, so none is unwound.
#define RISE_FAULT(...)                           \
  do {                                            \
    ::rise_emulation::complain(__VA_ARGS__);      \
    for (;;) ::rise_emulation::leave();           \
  } while (false)

RISE_CODE void count_step(int line) {
  Thread& me = machine.threads[machine.current];
  me.line = line ? line : me.line;
}

RISE_COLD void endless(int line, uint64_t steps, const char* what) {
  RISE_FAULT(Endless, line, "%s does not finish: it made %llu steps of loops%s", place_name(machine.current).characters,
             static_cast<unsigned long long>(steps), what);
}

// A step of a loop in the text. The program bounds the number of the kernel's own steps; called functions are
// unknown, but may not take the whole limit within one step of the kernel.
RISE_CODE bool loop_step(const char* function, int line) {
  Thread& me = machine.threads[machine.current];
  if (__builtin_strcmp(function, machine.name) != 0) {
    if (++me.called > machine.most_called) endless(line, me.called, " in functions that it calls");
    return true;
  }
  me.called = 0;
  if (++me.steps > machine.most_steps) endless(line, me.steps, ", far more than the program has");
  return true;
}

}  // namespace rise_emulation
