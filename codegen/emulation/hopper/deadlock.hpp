// The deadlock report: which thread waits for what, when none can proceed.
#pragma once

#include "wgmma.hpp"

namespace rise_emulation {

RISE_CODE bool same_wait(const Wait& a, const Wait& b) {
  return a.what == b.what && a.line == b.line && a.number == b.number && a.parity == b.parity;
}

RISE_CODE Wait waiting(int rank, int thread) {
  const Thread& fiber = thread_of(rank, thread);
  if (fiber.state == State::Waiting) return blocks[rank].waits[thread];
  bool at_barrier = fiber.state == State::AtBarrier;
  return {Waits::Group, fiber.line, 0, 0, at_barrier ? "__syncthreads" : "a collective of its warp"};
}

RISE_CODE Text reason(int rank, const Wait& wait) {
  if (wait.what == Waits::Phase) {
    const Mbarrier& barrier = blocks[rank].barriers[wait.number];
    return text("for parity %d of the mbarrier at byte %lld: %d phases ended, %d of %d arrivals, %lld bytes "
                "missing", wait.parity, static_cast<long long>(barrier.byte), barrier.phases,
                barrier.count - barrier.missing, barrier.count, static_cast<long long>(barrier.bytes));
  }
  if (wait.what == Waits::Cluster) return text("in cluster_sync");
  if (wait.what == Waits::Registers)
    return text("for %d registers each, %d are free", wait.number, blocks[rank].free_registers);
  if (wait.what == Waits::Named) {
    const NamedBarrier& barrier = blocks[rank].named[wait.number];
    return text("at named barrier %d, %d of %d threads", wait.number, barrier.arrived, barrier.count);
  }
  return text("in %s", wait.operation);
}

// Appends as long as there is room.
struct Message {
  char characters[480];
  size_t length;

  void add(const char* more) {
    size_t size = __builtin_strlen(more);
    if (length + size >= sizeof characters) return;
    __builtin_memcpy(characters + length, more, size + 1);
    length += size;
  }
};

// The most informative waits come first.
RISE_CODE int rank_of_wait(const Wait& wait) {
  return wait.what == Waits::Registers ? 0 : wait.what == Waits::Phase ? 1 : 2;
}

// Adds the threads of a block with waits of a certain rank; equal waits are merged.
RISE_CODE void add_waits(Message& message, int rank, int wanted, int& line) {
  static bool told[most_threads];
  for (bool& thread : told) thread = false;
  for (int thread = 0; thread < machine.count; thread++) {
    if (told[thread] || thread_of(rank, thread).state == State::Finished) continue;
    Wait wait = waiting(rank, thread);
    if (rank_of_wait(wait) != wanted) continue;
    int alike = 0;
    for (int other = thread; other < machine.count; other++) {
      if (thread_of(rank, other).state == State::Finished || !same_wait(waiting(rank, other), wait)) continue;
      told[other] = true;
      alike++;
    }
    line = line ? line : wait.line;
    Text more = alike > 1 ? text(" and %d more", alike - 1) : text("%s", "");
    message.add(text("%s%s%s (line %d) %s", message.length ? "; " : "",
                     agent_name(clocks.thread(rank, thread)).characters, more.characters, wait.line,
                     reason(rank, wait).characters).characters);
  }
}

RISE_CODE void report_deadlock() {
  Message message{{0}, 0};
  int line = 0;
  for (int wanted = 0; wanted < 3; wanted++)
    for (int rank = 0; rank < block_count; rank++) add_waits(message, rank, wanted, line);
  complain(Deadlock, line, "deadlock: waiting are %s", message.characters);
}

}  // namespace rise_emulation
