// Runs the blocks of a cluster concurrently, with their copies, and checks how they end.
#pragma once

#include "deadlock.hpp"
#include "matrices.hpp"
#include "registers.hpp"

namespace rise_emulation {

RISE_STATE int at_cluster_barrier;

RISE_CODE int cluster_rank() { return block_rank; }

// Waits for all threads of the cluster that have not returned.
RISE_CODE void cluster_sync(int line = __builtin_LINE()) {
  count_step(line);
  at_cluster_barrier++;
  wait_for({Waits::Cluster, line, 0, 0, nullptr});
}

RISE_CODE bool end_cluster_barrier() {
  int running = 0;
  for (int rank = 0; rank < block_count; rank++) running += machine.count - finished_in(rank);
  if (!at_cluster_barrier || at_cluster_barrier < running) return false;
  static int agents[most_cluster * most_threads];
  int found = 0;
  at_cluster_barrier = 0;
  for (int rank = 0; rank < block_count; rank++)
    wake(rank, [&](const Wait& wait, int thread) {
      if (wait.what != Waits::Cluster) return false;
      agents[found++] = clocks.thread(rank, thread);
      return true;
    });
  meet_clocks(agents, found);
  return true;
}

RISE_CODE void start_in_cluster(int rank, unsigned number) {
  enter_block(rank);
  Block& block = running_block();
  start_block(number);
  block.index = blockIdx;
  block.barrier_count = 0;
  for (Mark& mark : block.marks) mark = first_mark;
  for (Group& group : block.groups) group.arrived = 0;
  for (NamedBarrier& barrier : block.named) barrier.arrived = barrier.meetings = 0;
  for (unsigned& group : store_groups[rank]) group = 0;
  for (Flights& own : flights[rank]) {
    own.count = own.done = 0;
    own.committed = 0;
    own.version = 0;
  }
  start_phases(rank);
  prepare_registers(block, machine.count);
}

// The blocks of the cluster at a position in the grid of clusters.
RISE_CODE void start_cluster(const dim3& cluster, const uint3& at) {
  turn++;
  readers_used = 0;  // no list of readers outlives its turn
  start_clocks();
  start_following();
  at_cluster_barrier = 0;
  loads_under_way = stores_under_way = 0;
  for (int rank = 0; rank < block_count; rank++)
    for (int agent = 0; agent < block_count * machine.count; agent++) remote_acts[rank][agent] = {};
  for (int rank = 0; rank < block_count; rank++) {
    uint3 within = position(static_cast<unsigned>(rank), cluster);
    unsigned x = at.x * cluster.x + within.x, y = at.y * cluster.y + within.y, z = at.z * cluster.z + within.z;
    start_in_cluster(rank, (z * gridDim.y + y) * gridDim.x + x);
  }
}

// Runs every runnable thread of a block once. Returns whether there was one.
RISE_CODE bool run_round(int rank) {
  Machine& m = machine;
  enter_block(rank);
  bool progress = false;
  m.random.shuffle(m.order, static_cast<unsigned>(m.count));
  for (int turn = 0; turn < m.count && !m.report->code; turn++) {
    int thread = m.order[turn];
    if (m.threads[thread].state != State::Ready) continue;
    progress = true;
    written_mark = running_block().marks[thread];
    resume(thread);
  }
  return progress;
}

RISE_CODE bool all_finished() {
  for (int rank = 0; rank < block_count; rank++)
    if (finished_in(rank) < machine.count) return false;
  return true;
}

// Events besides the threads: barriers of the cluster, registers, copies.
RISE_CODE bool go_on_otherwise(bool stuck) {
  bool progress = end_cluster_barrier();
  for (int rank = 0; rank < block_count; rank++) progress = grant_registers(rank) || progress;
  bool some_time = arrival() == Arrival::Random && machine.random.next() >> 63;
  if ((stuck && !progress) || some_time) progress = complete_some_load() || progress;
  return progress;
}

RISE_CODE Text name_of_block(int rank) {
  uint3 at = blocks[rank].index;
  return text("block (%u, %u, %u)", at.x, at.y, at.z);
}

// The latest event of an agent that any thread of a block has seen.
RISE_CODE int32_t seen_by_block(int rank, int agent) {
  int32_t most = 0;
  for (int thread = 0; thread < machine.count; thread++) {
    int32_t seen = clocks.row(clocks.thread(rank, thread))[agent];
    most = seen > most ? seen : most;
  }
  return most;
}

// Nobody may access, arrive at, or copy into, a block that may have exited: some thread of it has to wait.
RISE_CODE void check_block_at_end(int rank) {
  for (int agent = 0; agent < block_count * machine.count; agent++) {
    const RemoteAct& act = remote_acts[rank][agent];
    if (act.clock && seen_by_block(rank, agent) < act.clock)
      return complain(EarlyExit, act.line, "%s may have ended when %s %s: cluster_sync is missing",
                      name_of_block(rank).characters, agent_name(agent).characters, act.what);
  }
  for (int number = 0; number < blocks[rank].barrier_count; number++) {
    const Mbarrier& barrier = blocks[rank].barriers[number];
    if (seen_by_block(rank, clocks.barrier(rank, number)) < barrier.last_arrival)
      return complain(EarlyExit, barrier.last_line,
                      "%s may have ended when a bulk copy arrives in it: no thread waits for the mbarrier at "
                      "byte %lld", name_of_block(rank).characters, static_cast<long long>(barrier.byte));
  }
}

RISE_CODE void check_end_of_cluster() {
  while (!machine.report->code && complete_some_load()) continue;
  check_stores_at_end();
  check_flights_at_end();
  for (int rank = 0; rank < block_count && !machine.report->code; rank++) check_phases_finished(rank);
  for (int rank = 0; rank < block_count && !machine.report->code; rank++) check_block_at_end(rank);
}

RISE_CODE void run_cluster(const dim3& cluster, const uint3& at) {
  Machine& m = machine;
  start_cluster(cluster, at);
  int ranks[most_cluster];
  for (int rank = 0; rank < block_count; rank++) ranks[rank] = rank;
  while (!m.report->code && !all_finished()) {
    bool progress = false;
    m.random.shuffle(ranks, static_cast<unsigned>(block_count));
    for (int i = 0; i < block_count && !m.report->code; i++) progress = run_round(ranks[i]) || progress;
    if (!m.report->code && !go_on_otherwise(!progress) && !progress) report_deadlock();
  }
  if (!m.report->code) check_end_of_cluster();
}

// --- a grid -----------------------------------------------------------------------------------

// One block's memory and stacks; those of rank 0 are the machine's.
struct BlockPages {
  Pages data, shadow;
};

RISE_CODE bool prepare_blocks(const Launch& launch, BlockPages* pages) {
  Machine& m = machine;
  for (int rank = 0; rank < block_count; rank++) {
    Block& block = blocks[rank];
    block.stacks = m.stacks;
    block.shared = shared_bytes;
    if (rank == 0) continue;
    int64_t bytes = launch.shared_bytes;
    block.shared.data = pages[rank].data.take<char>(bytes);
    block.shared.shadow = pages[rank].shadow.take<Shadow>(bytes);
    block.stacks = Stacks{};
    if (!block.stacks.reserve(static_cast<size_t>(m.count))) {
      complain(LaunchLimits, 0, "not enough memory for the stacks of %d threads", m.count);
      return false;
    }
  }
  return !m.report->code;
}

RISE_CODE bool cluster_fits(const dim3& cluster) {
  uint64_t size = uint64_t{cluster.x} * cluster.y * cluster.z;
  bool divides = size && gridDim.x % cluster.x == 0 && gridDim.y % cluster.y == 0 && gridDim.z % cluster.z == 0;
  if (divides && size <= 8) return true;
  complain(LaunchLimits, 0, "clusters of %u x %u x %u blocks in a grid of %u x %u x %u: at most 8, and they divide it",
           cluster.x, cluster.y, cluster.z, gridDim.x, gridDim.y, gridDim.z);
  return false;
}

RISE_CODE void run_clusters(const Launch& launch) {
  Machine& m = machine;
  dim3 cluster{launch.cluster[0], launch.cluster[1], launch.cluster[2]};
  if (!cluster_fits(cluster)) return;
  block_count = static_cast<int>(cluster.x * cluster.y * cluster.z);
  block_rank = 0;
  turn = 0;
  maps_used = 0;
  BlockPages pages[most_cluster];
  prepare_clocks(m.count, block_count);
  prepare_cells();
  if (m.report->code || !prepare_blocks(launch, pages)) return;
  threads_met = meet_in_block;
  watcher = &clock_watcher;
  dim3 clusters{gridDim.x / cluster.x, gridDim.y / cluster.y, gridDim.z / cluster.z};
  unsigned count = clusters.x * clusters.y * clusters.z;
  for (unsigned number = 0; number < count; number++) m.blocks[number] = number;
  m.random.shuffle(m.blocks, count);
  for (unsigned i = 0; i < count && !m.report->code; i++) run_cluster(cluster, position(m.blocks[i], clusters));
  enter_block(0);
  for (int rank = 1; rank < block_count; rank++) blocks[rank].stacks.release();
}

#ifndef RISE_DECLARED
// Including this file selects this way to run a grid.
static const bool clusters_run = (run_grid = run_clusters, true);
#endif

}  // namespace rise_emulation
