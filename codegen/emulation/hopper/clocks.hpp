// Vector clocks: what each thread knows of the others. Threads, warpgroups (which execute wgmmas), mbarriers
// (which complete copies) and named barriers are agents; every agent counts its events, which for a barrier
// are completed phases, and each thread knows up to which event it has seen every agent. An event is ordered
// before a thread's next one if the thread has seen its agent at least up to that event.
#pragma once

#include "../launch.hpp"

namespace rise_emulation {

constexpr int threads_per_group = 128;
constexpr int most_barriers = 64;  // of a block
constexpr int named_barriers = 16;

typedef int32_t Lanes __attribute__((vector_size(32)));  // 8 clocks

// A row has two halves: what the thread has seen, and the part of it visible to asynchronous units.
struct Clocks {
  int threads, groups, blocks;  // threads and groups of a block
  int agents;                   // of the cluster, rounded up to whole vectors
  int32_t* rows;
  uint64_t version;  // changes whenever a row changes

  RISE_MEMBER int thread(int rank, int number) const { return rank * threads + number; }
  RISE_MEMBER int group(int rank, int number) const { return blocks * threads + rank * groups + number; }
  RISE_MEMBER int barrier(int rank, int number) const {
    return blocks * (threads + groups) + rank * most_barriers + number;
  }
  RISE_MEMBER int named(int rank, int number) const {
    return blocks * (threads + groups + most_barriers) + rank * named_barriers + number;
  }
  RISE_MEMBER int row_length() const { return 2 * agents; }
  int64_t row_count() const { return 1 + static_cast<int64_t>(blocks) * (threads + groups + 2 * most_barriers); }
  RISE_MEMBER int32_t* row(int agent) const {
    return rows + static_cast<int64_t>(agent) * row_length();
  }
  RISE_MEMBER int32_t* fenced(int agent) const { return row(agent) + agents; }
  RISE_MEMBER int32_t now(int agent) const { return row(agent)[agent]; }
};

RISE_STATE Clocks clocks;
RISE_STATE Pages clock_pages;

RISE_CODE void prepare_clocks(int threads, int blocks) {
  clocks.threads = threads;
  clocks.groups = (threads + threads_per_group - 1) / threads_per_group;
  clocks.blocks = blocks;
  clocks.agents = (blocks * (threads + clocks.groups + most_barriers + named_barriers) + 7) / 8 * 8;
  clock_pages.give_back();
  clocks.rows = clock_pages.take<int32_t>(clocks.row_count() * clocks.row_length());
}

RISE_CODE void start_clocks() {
  int64_t numbers = clocks.row_count() * clocks.row_length();
  __builtin_memset(clocks.rows, 0, sizeof(int32_t) * static_cast<size_t>(numbers));
  for (int agent = 0; agent < clocks.blocks * clocks.threads; agent++) clocks.row(agent)[agent] = 1;
  clocks.version++;
}

// Rows of mbarriers: what they gather in this phase, and what they had at the end of the last one.
RISE_CODE int32_t* gathered(int rank, int number) {
  return clocks.row(clocks.blocks * clocks.threads + 2 * (rank * most_barriers + number));
}
RISE_CODE int32_t* passed_on(int rank, int number) {
  return gathered(rank, number) + clocks.row_length();
}
// What every thread of a warpgroup knows.
RISE_CODE int32_t* common_row(int rank, int group) {
  return clocks.row(clocks.blocks * (clocks.threads + 2 * most_barriers) + rank * clocks.groups + group);
}
RISE_CODE int32_t* spare_row() {
  return clocks.row(clocks.blocks * (clocks.threads + clocks.groups + 2 * most_barriers));
}

RISE_CODE void learn(int32_t* row, const int32_t* other) {
  Lanes* target = reinterpret_cast<Lanes*>(row);
  const Lanes* source = reinterpret_cast<const Lanes*>(other);
  for (int i = 0; i < clocks.row_length() / 8; i++)
    target[i] = target[i] > source[i] ? target[i] : source[i];
  clocks.version++;
}

// Passes on which phases are complete, and no events of threads.
RISE_CODE void learn_phases(int32_t* row, const int32_t* other) {
  for (int agent = clocks.barrier(0, 0); agent < clocks.agents; agent++)
    row[agent] = row[agent] > other[agent] ? row[agent] : other[agent];
  clocks.version++;
}

RISE_CODE void forget_more_than(int32_t* row, const int32_t* other) {
  Lanes* target = reinterpret_cast<Lanes*>(row);
  const Lanes* source = reinterpret_cast<const Lanes*>(other);
  for (int i = 0; i < clocks.row_length() / 8; i++)
    target[i] = target[i] < source[i] ? target[i] : source[i];
}

RISE_CODE void copy_row(int32_t* row, const int32_t* other) {
  __builtin_memcpy(row, other, sizeof(int32_t) * static_cast<size_t>(clocks.row_length()));
}

// Release: a thread passes on all that it knows and did; its later events are new.
RISE_CODE void release(int agent, int32_t* into) {
  learn(into, clocks.row(agent));
  clocks.row(agent)[agent]++;
}

// A barrier: each thread then knows what any of them knew.
RISE_CODE void meet_clocks(const int* agents, int count) {
  int32_t* all = spare_row();
  copy_row(all, clocks.row(agents[0]));
  for (int i = 1; i < count; i++) learn(all, clocks.row(agents[i]));
  for (int i = 0; i < count; i++) {
    int32_t* row = clocks.row(agents[i]);
    copy_row(row, all);
    row[agents[i]]++;
  }
  clocks.version++;
}

// A proxy fence: the thread's events so far become visible to the asynchronous units.
RISE_CODE void fence_clocks(int agent) {
  __builtin_memcpy(clocks.fenced(agent), clocks.row(agent),
                   sizeof(int32_t) * static_cast<size_t>(clocks.agents));
  clocks.row(agent)[agent]++;
  clocks.version++;
}

}  // namespace rise_emulation
