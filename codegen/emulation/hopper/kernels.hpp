// Overlapping kernels of a stream: until a thread has waited for the previous kernel, it must not access
// global memory, except to read what is complete already, and to write what the previous kernel does not use.
// This file records what the threads of a cluster have done so far.
#pragma once

#include "blocks.hpp"

namespace rise_emulation {

enum class Following : uint8_t { Nothing, Used, Awaited };

RISE_STATE Following following[most_cluster * most_threads];
// This kernel may overlap with the previous one: some thread has waited, or some memory is ready before that.
RISE_STATE bool kernel_follows;

RISE_CODE void start_following() {
  __builtin_memset(following, 0, sizeof following);
  kernel_follows = false;
  for (const Memory& memory : memories) kernel_follows = kernel_follows || memory.ready;
}

RISE_CODE void check_following(int line, const Memory& memory, bool writes) {
  Following& mine = following[running_agent()];
  if (mine == Following::Awaited || memory.unused || (memory.ready && !writes)) return;
  mine = Following::Used;
  if (kernel_follows)
    RISE_FAULT(TooEarly, line, "%s uses global memory without await_previous_grid",
               place_name(machine.current).characters);
}

RISE_CODE void await_previous_grid(int line = __builtin_LINE()) {
  Following& mine = following[running_agent()];
  if (mine == Following::Used)
    RISE_FAULT(TooEarly, line, "%s has used global memory before await_previous_grid",
               place_name(machine.current).characters);
  mine = Following::Awaited;
  kernel_follows = true;
}

RISE_CODE void start_next_grid() {}

}  // namespace rise_emulation
