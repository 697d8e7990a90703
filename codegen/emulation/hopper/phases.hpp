// The phase of an mbarrier to which an arrival, a wait or a copy's bytes belong must be the same for every
// schedule of the threads. It is, if
//
//   - whoever arrives, or starts a copy, has seen the end of all completed phases: otherwise, had it come
//     earlier, it would have counted for one of those;
//   - a copy's bytes arrive in the phase in which it was started;
//   - when a phase completes, every thread that waited for the previous one has already done so: otherwise,
//     had it come later, it would wait for a later phase.
//
// Then the order of events, and so every race, is the same for every schedule. That is why one run suffices,
// and why the violation of each of the three is a fault in itself.
#pragma once

#include "cells.hpp"

namespace rise_emulation {

// A thread's last wait for an mbarrier of its block.
struct WaitNote {
  int phase;        // whose end it waits for, from 1; -1: it never waited
  int32_t clock;    // of the thread
  unsigned issued;  // wgmmas that its warpgroup had issued
};

RISE_STATE WaitNote wait_notes[most_cluster][most_barriers][most_threads];

// The completion of a wgmma implies that all threads of its warpgroup have reached it: for the last ones, the
// clock of the warpgroup when they were waited for.
constexpr unsigned products_kept = 256;

struct Products {
  unsigned issued, over;
  int32_t clock[products_kept];
};

RISE_STATE Products products[most_cluster][most_groups];

RISE_CODE void start_phases(int rank) {
  for (Products& own : products[rank]) own.issued = own.over = 0;
}

RISE_CODE void forget_waits(int rank, int number) {
  for (WaitNote& note : wait_notes[rank][number]) note.phase = -1;
}

RISE_CODE void note_products_over(Products& own, unsigned count, int32_t clock) {
  for (; count > 0; count--) own.clock[++own.over % products_kept] = clock;
}

RISE_CODE int ended_phases_known(int rank, int number) {
  return clocks.row(running_agent())[clocks.barrier(rank, number)];
}

RISE_CODE void check_phase_known(int rank, int number, const char* operation, int line) {
  const Mbarrier& barrier = blocks[rank].barriers[number];
  int known = ended_phases_known(rank, number);
  if (known < barrier.phases)
    RISE_FAULT(PhaseUnknown, line,
               "%s by %s may count for another phase of the mbarrier at byte %lld: phase %d has ended, and "
               "nothing orders that before it; the thread knows of %d", operation,
               place_name(machine.current).characters, static_cast<long long>(barrier.byte), barrier.phases,
               known);
}

// The phase that a wait for a parity refers to: one that the thread knows to be complete, or the next.
RISE_CODE int awaited_phase(int rank, int number, int parity) {
  int known = ended_phases_known(rank, number);
  return (known & 1) == parity ? known + 1 : known;
}

RISE_CODE void check_wait_in_time(const Mbarrier& barrier, int phase, int line) {
  if (barrier.phases > phase)
    RISE_FAULT(PhaseUnknown, line,
               "%s waits for the end of phase %d of the mbarrier at byte %lld, when phase %d may have ended: by "
               "its parity it takes one for the other", place_name(machine.current).characters, phase,
               static_cast<long long>(barrier.byte), barrier.phases);
}

RISE_CODE void note_wait(int number, int phase) {
  const Products& own = products[block_rank][machine.current / threads_per_group];
  wait_notes[block_rank][number][machine.current] = {phase, clocks.now(running_agent()), own.issued};
}

// Whether a thread's wait is over, to the knowledge of the row.
RISE_CODE bool has_waited(int rank, int thread, const WaitNote& note, const int32_t* row) {
  if (row[clocks.thread(rank, thread)] >= note.clock) return true;
  int group = thread / threads_per_group;
  const Products& own = products[rank][group];
  unsigned next = note.issued + 1;
  if (next > own.over) return false;
  return own.over - next >= products_kept || row[clocks.group(rank, group)] >= own.clock[next % products_kept];
}

// A phase is complete: nobody may still wait for the previous one.
RISE_CODE void check_waits_over(int rank, int number, int line) {
  const Mbarrier& barrier = blocks[rank].barriers[number];
  for (int thread = 0; thread < machine.count; thread++) {
    const WaitNote& note = wait_notes[rank][number][thread];
    if (note.phase != barrier.phases - 1 || has_waited(rank, thread, note, passed_on(rank, number))) continue;
    return complain(PhaseUnknown, line,
                    "phase %d of the mbarrier at byte %lld may end before %s has seen the end of phase %d: "
                    "nothing orders its wait before the arrivals", barrier.phases,
                    static_cast<long long>(barrier.byte),
                    agent_name(clocks.thread(rank, thread)).characters, note.phase);
  }
}

// Nobody can wait for arrivals or bytes after the last complete phase.
RISE_CODE void check_phases_finished(int rank) {
  for (int number = 0; number < blocks[rank].barrier_count; number++) {
    const Mbarrier& barrier = blocks[rank].barriers[number];
    if (barrier.missing == barrier.count && barrier.bytes == 0) continue;
    return complain(PhaseUnfinished, barrier.line,
                    "block %d of the cluster ends in the middle of a phase of the mbarrier at byte %lld: %d phases "
                    "ended, then %d of %d arrivals, %lld bytes missing", rank, static_cast<long long>(barrier.byte),
                    barrier.phases, barrier.count - barrier.missing, barrier.count,
                    static_cast<long long>(barrier.bytes));
  }
}

}  // namespace rise_emulation
