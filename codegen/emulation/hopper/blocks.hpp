// The blocks of a cluster, which run concurrently: the machine holds the state of the running block, this
// file that of the others, and what threads wait for besides barriers of the block and the warp.
#pragma once

#include "clocks.hpp"

namespace rise_emulation {

constexpr int most_cluster = 16;
constexpr int most_groups = most_threads / threads_per_group;

enum class Waits : uint8_t { Phase, Cluster, Registers, Named, Group };

struct Wait {
  Waits what;
  int line;
  int number;  // of the mbarrier or the named barrier
  int parity;
  const char* operation;  // of a warpgroup
};

// A collective of a warpgroup, executed once the last of its four warps has arrived.
struct Group {
  int arrived;
  Collective perform;
  const char* operation;
  int line;
  void* operands[threads_per_group];
};

// An mbarrier: its phase completes when no arrival and no byte is missing.
struct Mbarrier {
  int64_t byte;
  int count, missing;
  int64_t bytes;  // that are expected; negative if they arrive before they are expected
  int phases;     // that are complete
  int initialiser;  // agent, and its clock
  int32_t initialised;
  int line;
  bool fenced;           // visible to other blocks and to the copy engine
  int32_t last_arrival;  // the last phase in which a copy's bytes arrived
  int last_line;
};

struct NamedBarrier {
  int arrived, count;
  int32_t meetings;  // that are complete
};

struct Block {
  uint3 index;
  Thread threads[most_threads];
  Warp warps[most_threads / lanes_per_warp];
  int at_barrier, finished, barrier_line;
  uint32_t epoch, block_start;
  Stacks stacks;
  Memory shared;
  Wait waits[most_threads];
  Mark marks[most_threads];  // counts wgmma fences
  Group groups[most_groups];
  Mbarrier barriers[most_barriers];
  int barrier_count;
  NamedBarrier named[named_barriers];
  int registers[most_groups];  // per thread, by warpgroup
  int wanted[most_groups];
  int free_registers;  // of the pool, for 128 threads each
};

RISE_STATE Block blocks[most_cluster];
RISE_STATE int block_count;  // blocks of a cluster
RISE_STATE int block_rank;   // of the running one
RISE_STATE uint32_t turn;    // counts clusters that were started in this launch

RISE_CODE Block& running_block() { return blocks[block_rank]; }

RISE_CODE void keep_block() {
  Machine& m = machine;
  Block& block = running_block();
  size_t count = static_cast<size_t>(m.count);
  __builtin_memcpy(block.threads, m.threads, count * sizeof(Thread));
  __builtin_memcpy(block.warps, m.warps, sizeof m.warps);
  block.at_barrier = m.at_barrier;
  block.finished = m.finished;
  block.barrier_line = m.barrier_line;
  block.epoch = m.epoch;
  block.block_start = m.block_start;
  block.shared = shared_bytes;
}

RISE_CODE void enter_block(int rank) {
  if (rank == block_rank) return;
  keep_block();
  block_rank = rank;
  Machine& m = machine;
  const Block& block = running_block();
  size_t count = static_cast<size_t>(m.count);
  __builtin_memcpy(m.threads, block.threads, count * sizeof(Thread));
  __builtin_memcpy(m.warps, block.warps, sizeof m.warps);
  m.at_barrier = block.at_barrier;
  m.finished = block.finished;
  m.barrier_line = block.barrier_line;
  m.epoch = block.epoch;
  m.block_start = block.block_start;
  m.stacks = block.stacks;
  shared_bytes = block.shared;
  blockIdx = block.index;
}

RISE_CODE Thread& thread_of(int rank, int thread) {
  return rank == block_rank ? machine.threads[thread] : blocks[rank].threads[thread];
}

RISE_CODE Memory& shared_of(int rank) {
  return rank == block_rank ? shared_bytes : blocks[rank].shared;
}

RISE_CODE int finished_in(int rank) {
  return rank == block_rank ? machine.finished : blocks[rank].finished;
}

// What an agent of another block did last to the shared memory of a block: an access, or an arrival.
struct RemoteAct {
  int32_t clock;  // of the agent; 0: none
  int line;
  const char* what;
};
RISE_STATE RemoteAct remote_acts[most_cluster][most_cluster * most_threads];

// The array at the same place in the shared memory of a block of the cluster.
template <class T>
static inline Shared<T> shared_of_block(const Shared<T>& array, int rank, int line = __builtin_LINE()) {
  if (rank < 0 || rank >= block_count)
    RISE_FAULT(ReadOutOfBounds, line, "shared_of_block: the cluster has no block %d", rank);
  return {&shared_of(rank), array.origin, array.index};
}

RISE_CODE void note_remote_access(const Access& access, int agent, int32_t clock) {
  if (!access.memory->shared || access.memory == &shared_bytes) return;
  for (int rank = 0; rank < block_count; rank++)
    if (access.memory == &blocks[rank].shared) remote_acts[rank][agent] = {clock, access.line, "accesses it"};
}

RISE_CODE int running_agent() { return clocks.thread(block_rank, machine.current); }

// Leaves the fiber until another one, or the arrival of a copy, wakes it.
RISE_CODE void wait_for(const Wait& wait) {
  Machine& m = machine;
  running_block().waits[m.current] = wait;
  m.threads[m.current].state = State::Waiting;
  leave();
}

template <class Condition>
static inline void wake(int rank, Condition condition) {
  for (int thread = 0; thread < machine.count; thread++)
    if (thread_of(rank, thread).state == State::Waiting && condition(blocks[rank].waits[thread], thread))
      thread_of(rank, thread).state = State::Ready;
}

RISE_CODE void stop_if_reported() {
  while (machine.report->code) leave();
}

RISE_CODE void meet_in_block(int first, int count) {
  int agents[most_threads];
  for (int i = 0; i < count; i++) agents[i] = clocks.thread(block_rank, first + i);
  meet_clocks(agents, count);
}

// --- warpgroups -------------------------------------------------------------------------------

RISE_COLD void group_diverges(const Group& group, const char* operation,
                              int line) {
  RISE_FAULT(DivergentCollective, line,
             "divergent collective: %s calls %s (line %d), other threads of its warpgroup %s "
             "(line %d)",
             place_name(machine.current).characters, operation, line, group.operation, group.line);
}

RISE_CODE int first_of_group() {
  return machine.current / threads_per_group * threads_per_group;
}

// Waits until every thread of the warpgroup has made the same call; the last to arrive performs it.
RISE_CODE void meet_group(const char* operation, int line, Collective perform, void* operand) {
  Machine& m = machine;
  count_step(line);
  int first = first_of_group();
  if (m.count - first < threads_per_group)
    RISE_FAULT(DivergentCollective, line, "%s calls %s (line %d) in a warpgroup of only %d threads",
               place_name(m.current).characters, operation, line, m.count - first);
  Group& group = running_block().groups[first / threads_per_group];
  if (group.arrived && (group.perform != perform || group.line != line))
    group_diverges(group, operation, line);
  group.perform = perform;
  group.operation = operation;
  group.line = line;
  group.operands[m.current - first] = operand;
  if (++group.arrived < threads_per_group)
    return wait_for({Waits::Group, line, 0, 0, operation});
  group.arrived = 0;
  perform(group.operands, line);
  wake(block_rank, [&](const Wait& wait, int thread) {
    return wait.what == Waits::Group && thread >= first && thread < first + threads_per_group;
  });
}

// --- named barriers ---------------------------------------------------------------------------

RISE_CODE void named_barrier(int number, int count, int line) {
  count_step(line);
  if (number <= 0 || number >= named_barriers || count <= 0 || count % 32 || count > machine.count)
    RISE_FAULT(IllegalOperand, line, "named_barrier(%d, %d): barriers 1 to 15, of whole warps", number,
               count);
  NamedBarrier& barrier = running_block().named[number];
  if (barrier.arrived && barrier.count != count)
    RISE_FAULT(DivergentBarrier, line, "%s waits at named barrier %d for %d threads, others for %d",
               place_name(machine.current).characters, number, count, barrier.count);
  int agent = clocks.named(block_rank, number);
  if (clocks.row(running_agent())[agent] < barrier.meetings)
    RISE_FAULT(PhaseUnknown, line,
               "%s comes to named barrier %d after meeting %d of it, with nothing that orders it after that: it "
               "may be counted there in place of another thread", place_name(machine.current).characters, number,
               static_cast<int>(barrier.meetings));
  barrier.count = count;
  if (++barrier.arrived < count) return wait_for({Waits::Named, line, number, 0, nullptr});
  barrier.arrived = 0;
  int agents[most_threads], found = 0;
  agents[found++] = running_agent();
  wake(block_rank, [&](const Wait& wait, int thread) {
    if (wait.what != Waits::Named || wait.number != number) return false;
    agents[found++] = clocks.thread(block_rank, thread);
    return true;
  });
  clocks.row(running_agent())[agent] = ++barrier.meetings;
  meet_clocks(agents, found);
}

}  // namespace rise_emulation
