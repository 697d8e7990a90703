// mbarriers: arrivals, transaction bytes of copies, phases, and waits.
#pragma once

#include "phases.hpp"

namespace rise_emulation {

struct Barrier {
  uint64_t opaque;
};

constexpr int64_t most_bytes = (1 << 20) - 1;
constexpr int most_arrivals = (1 << 20) - 1;

RISE_CODE int find_barrier(int rank, int64_t byte) {
  for (int number = 0; number < blocks[rank].barrier_count; number++)
    if (blocks[rank].barriers[number].byte == byte) return number;
  return -1;
}

RISE_CODE void check_barrier_pointer(const Pointer<Barrier>& bar, const char* operation, int line) {
  count_step(line);
  Access access = bar.at(0, machine.current, line);
  if (!access.memory || !access.memory->shared || access.byte() < 0 ||
      access.byte() + access.size > access.memory->bytes)
    RISE_FAULT(WriteOutOfBounds, line, "%s: %s uses an mbarrier outside shared memory", operation,
               place_name(machine.current).characters);
}

// The barrier with the same address in a block of the cluster; checks that it is usable.
RISE_CODE Mbarrier& barrier_at(const Pointer<Barrier>& bar, int rank, const char* operation,
                                   int line, bool asynchronous) {
  check_barrier_pointer(bar, operation, line);
  int64_t byte = bar.at(0, 0, line).byte();
  if (rank < 0 || rank >= block_count)
    RISE_FAULT(BarrierMisuse, line, "%s: the cluster has no block %d", operation, rank);
  int number = find_barrier(rank, byte);
  if (number < 0)
    RISE_FAULT(BarrierMisuse, line, "%s by %s: there is no initialised mbarrier at byte %lld", operation,
               place_name(machine.current).characters, static_cast<long long>(byte));
  Mbarrier& barrier = blocks[rank].barriers[number];
  const int32_t* known = clocks.row(running_agent());
  if (known[barrier.initialiser] < barrier.initialised)
    RISE_FAULT(BarrierMisuse, line,
               "%s by %s: nothing orders it after barrier_init of the mbarrier at byte %lld (line %d)",
               operation, place_name(machine.current).characters, static_cast<long long>(byte),
               barrier.line);
  if (asynchronous && !barrier.fenced)
    RISE_FAULT(FenceMissing, line,
               "fence_barrier_init is missing: %s by %s on the mbarrier at byte %lld (line %d)",
               operation, place_name(machine.current).characters, static_cast<long long>(byte),
               barrier.line);
  return barrier;
}

RISE_CODE int number_of(int rank, const Mbarrier& barrier) {
  return static_cast<int>(&barrier - blocks[rank].barriers);
}

RISE_CODE void barrier_init(Pointer<Barrier> bar, int count, int line) {
  check_barrier_pointer(bar, "barrier_init", line);
  Block& block = running_block();
  Access access = bar.at(0, machine.current, line);
  if (count < 1 || count > most_arrivals)
    RISE_FAULT(BarrierMisuse, line, "barrier_init with a count of %d", count);
  check_alignment(access, 8, "barrier_init");
  if (find_barrier(block_rank, access.byte()) >= 0)
    RISE_FAULT(BarrierMisuse, line, "the mbarrier at byte %lld is initialised twice",
               static_cast<long long>(access.byte()));
  if (block.barrier_count == most_barriers)
    RISE_FAULT(LaunchLimits, line, "more than %d mbarriers are not emulated", most_barriers);
  watch_write(access);
  for_cells(access, [](Memory&, int64_t, Cell& cell) { cell.layout = barrier_layout; });
  int agent = running_agent(), number = block.barrier_count++;
  block.barriers[number] = {access.byte(), count, count, 0, 0, agent, clocks.now(agent), line, false, 0, 0};
  __builtin_memset(gathered(block_rank, number), 0, 2 * sizeof(int32_t) * clocks.row_length());
  forget_waits(block_rank, number);
}

// Makes the barriers that the thread initialised visible to other blocks and the copy engine.
RISE_CODE void fence_barrier_init(int line) {
  count_step(line);
  Block& block = running_block();
  for (int number = 0; number < block.barrier_count; number++)
    if (block.barriers[number].initialiser == running_agent()) block.barriers[number].fenced = true;
}

RISE_CODE void end_phase_if_complete(int rank, Mbarrier& barrier, int line) {
  if (barrier.missing || barrier.bytes) return;
  int number = number_of(rank, barrier);
  barrier.phases++;
  barrier.missing = barrier.count;
  int32_t* kept = passed_on(rank, number);
  copy_row(kept, gathered(rank, number));
  kept[clocks.barrier(rank, number)] = barrier.phases;
  check_waits_over(rank, number, line);
  wake(rank, [&](const Wait& wait, int) {
    return wait.what == Waits::Phase && wait.number == number && wait.parity != (barrier.phases & 1);
  });
}

RISE_CODE void too_many_bytes(const Mbarrier& barrier, int line) {
  complain(BarrierMisuse, line, "a bulk copy transfers %lld bytes more than the mbarrier at byte %lld expects",
           static_cast<long long>(-barrier.bytes), static_cast<long long>(barrier.byte));
}

RISE_CODE void arrive(int rank, Mbarrier& barrier, const char* operation, int line) {
  if (barrier.missing == 0)
    RISE_FAULT(BarrierMisuse, line,
               "%s by %s: the phase of the mbarrier at byte %lld has all its %d arrivals already", operation,
               place_name(machine.current).characters, static_cast<long long>(barrier.byte), barrier.count);
  check_phase_known(rank, number_of(rank, barrier), operation, line);
  release(running_agent(), gathered(rank, number_of(rank, barrier)));
  barrier.missing--;
  if (barrier.missing == 0 && barrier.bytes < 0) return too_many_bytes(barrier, line);
  end_phase_if_complete(rank, barrier, line);
  stop_if_reported();
}

RISE_CODE void barrier_arrive(Pointer<Barrier> bar, int line) {
  arrive(block_rank, barrier_at(bar, block_rank, "barrier_arrive", line, false), "barrier_arrive", line);
}

// Announces bytes without arriving.
RISE_CODE Mbarrier& barrier_expect_more(Pointer<Barrier> bar, int bytes, int line) {
  Mbarrier& barrier = barrier_at(bar, block_rank, "barrier_expect", line, false);
  if (bytes < 0 || barrier.bytes + bytes > most_bytes)
    RISE_FAULT(BarrierMisuse, line, "barrier_expect of %d bytes; a phase has at most %lld", bytes,
               static_cast<long long>(most_bytes));
  barrier.bytes += bytes;
  return barrier;
}

RISE_CODE void barrier_expect(Pointer<Barrier> bar, int bytes, int line) {
  arrive(block_rank, barrier_expect_more(bar, bytes, line), "barrier_expect", line);
}

RISE_CODE void barrier_arrive_remote(Pointer<Barrier> bar, int rank, int line) {
  Mbarrier& barrier = barrier_at(bar, rank, "barrier_arrive_remote", line, rank != block_rank);
  int agent = running_agent();
  if (rank != block_rank) remote_acts[rank][agent] = {clocks.now(agent), line, "arrives at an mbarrier of it"};
  arrive(rank, barrier, "barrier_arrive_remote", line);
}

// Waits until the phase of that parity is complete.
RISE_CODE void barrier_wait(Pointer<Barrier> bar, int parity, int line) {
  Mbarrier& barrier = barrier_at(bar, block_rank, "barrier_wait", line, false);
  if (parity != 0 && parity != 1)
    RISE_FAULT(BarrierMisuse, line, "barrier_wait for the parity %d", parity);
  int number = number_of(block_rank, barrier), phase = awaited_phase(block_rank, number, parity);
  check_wait_in_time(barrier, phase, line);
  note_wait(number, phase);
  if ((barrier.phases & 1) == parity) wait_for({Waits::Phase, line, number, parity, nullptr});
  stop_if_reported();
  learn(clocks.row(running_agent()), passed_on(block_rank, number));
}

// Bytes arrive of a copy that was started in `phase`. Called by the copy engine, which is not a thread.
RISE_CODE void bytes_arrive(int rank, int64_t byte, int64_t bytes, int phase, int line) {
  Mbarrier& barrier = blocks[rank].barriers[find_barrier(rank, byte)];
  if (barrier.phases != phase)
    return complain(PhaseUnknown, line,
                    "the bytes of a bulk copy arrive at the mbarrier at byte %lld after the end of their phase: it "
                    "expects fewer bytes than arrive", static_cast<long long>(byte));
  barrier.last_arrival = barrier.phases + 1;
  barrier.last_line = line;
  barrier.bytes -= bytes;
  if (barrier.bytes < -most_bytes || (barrier.missing == 0 && barrier.bytes < 0))
    return too_many_bytes(barrier, line);
  end_phase_if_complete(rank, barrier, line);
}

}  // namespace rise_emulation
