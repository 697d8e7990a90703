// Runs the threads of a block as fibers, in shuffled order, from one barrier or warp collective to the
// next, and reports divergence.
#pragma once

#include "machine.hpp"

namespace rise_emulation {

RISE_CODE int some_thread(State state, int from, int count) {
  for (int thread = from; thread < from + count; thread++)
    if (machine.threads[thread].state == state) return thread;
  return -1;
}

RISE_CODE void report_barrier(int line, int waiting, const Text& other) {
  complain(DivergentBarrier, line, "divergent barrier: %s waits at __syncthreads (line %d), %s",
           place_name(waiting).characters, line, other.characters);
}

RISE_CODE void block_barrier(int line) {
  Machine& m = machine;
  count_step(line);
  if (m.at_barrier > 0 && line != m.barrier_line) {
    int other = some_thread(State::AtBarrier, 0, m.count);
    report_barrier(line, m.current, text("%s at the one of line %d",
                                         thread_name(other).characters, m.barrier_line));
    for (;;) leave();
  }
  if (m.finished > 0) {
    int other = some_thread(State::Finished, 0, m.count);
    report_barrier(line, m.current, text("%s has returned", thread_name(other).characters));
    for (;;) leave();
  }
  m.barrier_line = line;
  if (++m.at_barrier < m.count) {
    m.threads[m.current].state = State::AtBarrier;
    return leave();
  }
  m.at_barrier = 0;
  m.epoch++;
  if (threads_met) threads_met(0, m.count);
  for (int thread = 0; thread < m.count; thread++) m.threads[thread].state = State::Ready;
  for (int warp = 0; warp * lanes_per_warp < m.count; warp++) m.warps[warp].epoch++;
}

RISE_CODE void check_meeting(const Warp& warp, const char* operation, int line) {
  int first = machine.current / lanes_per_warp * lanes_per_warp;
  if (warp.arrived > 0) {
    int other = some_thread(State::AtCollective, first, warp.lanes);
    complain(DivergentCollective, line,
             "divergent collective: %s calls %s (line %d), %s of its warp %s (line %d)",
             place_name(machine.current).characters, operation, line,
             thread_name(other).characters, warp.operation, warp.line);
  } else {
    int other = some_thread(State::Finished, first, warp.lanes);
    complain(DivergentCollective, line,
             "divergent collective: %s calls %s (line %d), %s of its warp has returned",
             place_name(machine.current).characters, operation, line,
             thread_name(other).characters);
  }
  for (;;) leave();
}

// Waits until every lane of the warp has made the same call; the last to arrive performs it.
RISE_CODE void meet(const char* operation, int line, Collective collective, void* operands) {
  Machine& m = machine;
  count_step(line);
  Warp& warp = m.warps[m.current / lanes_per_warp];
  bool same = warp.collective == collective && warp.line == line;
  if ((warp.arrived > 0 && !same) || warp.finished > 0) check_meeting(warp, operation, line);
  warp.collective = collective;
  warp.operation = operation;
  warp.line = line;
  warp.operands[m.current % lanes_per_warp] = operands;
  if (++warp.arrived < warp.lanes) {
    m.threads[m.current].state = State::AtCollective;
    return leave();
  }
  collective(warp.operands, line);
  warp.arrived = 0;
  int first = m.current / lanes_per_warp * lanes_per_warp;
  for (int lane = 0; lane < warp.lanes; lane++) m.threads[first + lane].state = State::Ready;
}

RISE_CODE void order_lanes(void**, int) {
  int number = machine.current / lanes_per_warp;
  Warp& warp = machine.warps[number];
  warp.epoch++;
  if (threads_met) threads_met(number * lanes_per_warp, warp.lanes);
}

RISE_CODE void warp_barrier(unsigned mask, int line) {
  if (mask != 0xffffffffu)
    RISE_FAULT(DivergentCollective, line,
               "__syncwarp of some lanes only (mask %#x) is not emulated", mask);
  meet("__syncwarp", line, order_lanes, nullptr);
}

RISE_CODE void finish_thread() {
  Machine& m = machine;
  Thread& me = m.threads[m.current];
  Warp& warp = m.warps[m.current / lanes_per_warp];
  int first = m.current / lanes_per_warp * lanes_per_warp;
  if (m.at_barrier > 0) {
    int other = some_thread(State::AtBarrier, 0, m.count);
    report_barrier(m.barrier_line, other,
                   text("%s has returned", thread_name(m.current).characters));
  } else if (warp.arrived > 0) {
    int other = some_thread(State::AtCollective, first, warp.lanes);
    complain(DivergentCollective, warp.line,
             "divergent collective: %s waits in %s (line %d), %s of its warp has returned",
             place_name(other).characters, warp.operation, warp.line,
             thread_name(m.current).characters);
  }
  me.state = State::Finished;
  warp.finished++;
  m.finished++;
  m.report->finished++;
}

RISE_CODE void fiber_entry() {
  machine.kernel();
  finish_thread();
  for (;;) leave();
}

// No thread can proceed, so some warp waits for a lane that itself waits at the barrier.
RISE_CODE void report_stuck() {
  Machine& m = machine;
  int waiting = some_thread(State::AtCollective, 0, m.count);
  int first = waiting / lanes_per_warp * lanes_per_warp;
  const Warp& warp = m.warps[waiting / lanes_per_warp];
  int other = some_thread(State::AtBarrier, first, warp.lanes);
  complain(DivergentCollective, warp.line,
           "divergent collective: %s waits in %s (line %d), %s of its warp at __syncthreads "
           "(line %d)",
           place_name(waiting).characters, warp.operation, warp.line,
           thread_name(other).characters, m.barrier_line);
}

RISE_CODE void resume(int thread) {
  machine.current = thread;
  threadIdx = position(static_cast<unsigned>(thread), blockDim);
  switch_context(machine.scheduler, machine.threads[thread].context);
}

RISE_CODE void start_block(unsigned block) {
  Machine& m = machine;
  blockIdx = position(block, gridDim);
  m.block_start = ++m.epoch;
  m.starts[m.blocks_started++] = m.block_start;
  m.at_barrier = m.finished = 0;
  for (int thread = 0; thread < m.count; thread++) {
    m.order[thread] = thread;
    m.threads[thread].state = State::Ready;
    m.threads[thread].line = 0;
    m.threads[thread].steps = m.threads[thread].called = 0;
    prepare(m.threads[thread].context, m.stacks[static_cast<size_t>(thread)], Stacks::usable,
            fiber_entry);
  }
  for (int first = 0; first < m.count; first += lanes_per_warp) {
    Warp& warp = m.warps[first / lanes_per_warp];
    warp.arrived = warp.finished = 0;
    warp.lanes = m.count - first < lanes_per_warp ? m.count - first : lanes_per_warp;
    warp.epoch++;
  }
}

RISE_CODE void run_block(unsigned block) {
  Machine& m = machine;
  start_block(block);
  while (m.finished < m.count) {
    bool progress = false;
    m.random.shuffle(m.order, static_cast<unsigned>(m.count));
    for (int turn = 0; turn < m.count; turn++) {
      if (m.threads[m.order[turn]].state != State::Ready) continue;
      progress = true;
      resume(m.order[turn]);
      if (m.report->code) return;
    }
    if (!progress) return report_stuck();
  }
}

}  // namespace rise_emulation
