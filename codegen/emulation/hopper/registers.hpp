// The register pool of a block, to which warpgroups release registers and from which they take them.
#pragma once

#include "blocks.hpp"

namespace rise_emulation {

// The registers per thread at launch: its share, a multiple of eight.
RISE_CODE int registers_at_launch(int threads) {
  int share = 65536 / threads / 8 * 8;
  return share < 248 ? share : 248;
}

RISE_CODE void prepare_registers(Block& block, int threads) {
  for (int group = 0; group < most_groups; group++) {
    block.registers[group] = registers_at_launch(threads);
    block.wanted[group] = 0;
  }
  block.free_registers = 0;
}

RISE_CODE void decrease_registers(void** operands, int line) {
  Block& block = running_block();
  int count = *static_cast<int*>(operands[0]), group = machine.current / threads_per_group;
  if (count > block.registers[group])
    RISE_FAULT(RegisterPool, line, "registers_decrease to %d of a warpgroup that has %d for each thread", count,
               block.registers[group]);
  block.free_registers += block.registers[group] - count;
  block.registers[group] = count;
}

RISE_CODE void want_registers(void** operands, int line) {
  Block& block = running_block();
  int count = *static_cast<int*>(operands[0]), group = machine.current / threads_per_group;
  if (count < block.registers[group])
    RISE_FAULT(RegisterPool, line, "registers_increase to %d of a warpgroup that has %d for each thread", count,
               block.registers[group]);
  block.wanted[group] = count;
}

// Gives waiting warpgroups the registers that are free by now.
RISE_CODE bool grant_registers(int rank) {
  Block& block = blocks[rank];
  bool granted = false;
  for (int group = 0; group < most_groups; group++) {
    int more = block.wanted[group] - block.registers[group];
    if (!block.wanted[group] || more > block.free_registers) continue;
    block.free_registers -= more;
    block.registers[group] = block.wanted[group];
    block.wanted[group] = 0;
    granted = true;
    wake(rank, [&](const Wait& wait, int thread) {
      return wait.what == Waits::Registers && thread / threads_per_group == group;
    });
  }
  return granted;
}

template <int count>
static inline void registers_decrease(int line = __builtin_LINE()) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "24 to 256 registers, a multiple of 8");
  int operand = count;
  meet_group("registers_decrease", line, decrease_registers, &operand);
}

template <int count>
static inline void registers_increase(int line = __builtin_LINE()) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0, "24 to 256 registers, a multiple of 8");
  int operand = count;
  meet_group("registers_increase", line, want_registers, &operand);
  grant_registers(block_rank);
  if (running_block().wanted[machine.current / threads_per_group])
    wait_for({Waits::Registers, line, count, 0, nullptr});
}

}  // namespace rise_emulation
