// Bank conflicts of shared memory, by line of the text. The memory serves a warp's instruction in phases:
// all lanes at once for up to 4 bytes each, half of them for 8 bytes, a quarter for 16. A phase takes
// one wavefront, and one more for each further word requested from the same one of the 32 banks.
//
// The emulator runs lanes one after the other. It treats their n-th executions of a line in a block as one
// instruction.
#pragma once

#include "machine.hpp"

namespace rise_emulation {

constexpr int banks = 32, word_bytes = 4;
constexpr int most_lines = 8192;        // of a text: later lines are not counted
constexpr unsigned most_requests = 1u << 18;  // for which some lanes are still missing

// The cost of a line: phases, and the wavefronts that they took.
struct Wavefronts {
  int64_t phases, wavefronts;
};

// An instruction of a warp: the bytes that its lanes access.
struct Request {
  uint64_t block_and_time, line_and_warp;
  unsigned generation;  // of the table; the entry of an older one is free
  uint32_t lanes;       // a bit for each lane that has made the request
  uint32_t bytes;       // per lane
  uint32_t places[lanes_per_warp];
};

// How often a thread has accessed shared memory in a line, in a block of a launch.
struct Times {
  uint32_t launch, block, count;
};

struct Banks {
  Request* requests;
  Times* times;
  Wavefronts lines[most_lines];
  unsigned generation, used, incomplete, launch;
  bool muted;  // while a vector is accessed element by element
};

RISE_STATE Banks shared_banks;

RISE_CODE void add_phase(const uint32_t* places, int count, uint32_t bytes, int line) {
  uint32_t words[banks][lanes_per_warp];
  int distinct[banks] = {}, most = 1;
  for (int lane = 0; lane < count; lane++) {
    uint32_t last = (places[lane] + bytes - 1) / word_bytes;
    for (uint32_t word = places[lane] / word_bytes; word <= last; word++) {
      uint32_t bank = word % banks;
      int place = 0;
      while (place < distinct[bank] && words[bank][place] != word) place++;
      if (place == distinct[bank]) words[bank][distinct[bank]++] = word;
      if (distinct[bank] > most) most = distinct[bank];
    }
  }
  shared_banks.lines[line].phases += 1;
  shared_banks.lines[line].wavefronts += most;
}

RISE_CODE void finish(const Request& request) {
  int together = request.bytes <= 4 ? 32 : request.bytes <= 8 ? 16 : 8;
  for (int first = 0; first < lanes_per_warp; first += together) {
    uint32_t places[lanes_per_warp];
    int count = 0;
    for (int lane = first; lane < first + together; lane++)
      if (request.lanes >> lane & 1) places[count++] = request.places[lane];
    int line = static_cast<int>(request.line_and_warp / lanes_per_warp);
    if (count) add_phase(places, count, request.bytes, line);
  }
}

RISE_CODE void empty_table() {
  shared_banks.generation++;
  shared_banks.used = shared_banks.incomplete = 0;
}

// Includes instructions that only some lanes execute.
RISE_CODE void finish_all() {
  Banks& b = shared_banks;
  for (unsigned place = 0; b.incomplete && place < most_requests; place++)
    if (b.requests[place].generation == b.generation && b.requests[place].lanes != ~0u)
      finish(b.requests[place]);
  empty_table();
}

template <class T>
static inline T* lasting_pages(size_t count) {
  void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

// False if there is not enough memory for the counters.
RISE_CODE bool counting() {
  Banks& b = shared_banks;
  if (!b.requests) b.requests = lasting_pages<Request>(most_requests);
  if (!b.times) b.times = lasting_pages<Times>(size_t{most_threads} * most_lines);
  if (b.launch != machine.launches) {
    b.launch = machine.launches;
    for (Wavefronts& line : b.lines) line = {0, 0};
    empty_table();
  }
  return b.requests && b.times;
}

RISE_CODE Request& request_of(uint64_t block_and_time, uint64_t line_and_warp) {
  Banks& b = shared_banks;
  if (b.used > most_requests / 2) finish_all();
  uint64_t hash = (block_and_time * 0x9e3779b97f4a7c15u) ^ (line_and_warp * 0xbf58476d1ce4e5b9u);
  for (unsigned place = static_cast<unsigned>(hash >> 32);; place++) {
    Request& request = b.requests[place % most_requests];
    if (request.generation != b.generation) {
      request.generation = b.generation;
      request.block_and_time = block_and_time;
      request.line_and_warp = line_and_warp;
      request.lanes = 0;
      b.used++;
      b.incomplete++;
    }
    if (request.block_and_time == block_and_time && request.line_and_warp == line_and_warp)
      return request;
  }
}

// The running thread accesses `bytes` bytes of shared memory at `place`.
RISE_CODE void count_access(int64_t place, int64_t bytes, int line) {
  Banks& b = shared_banks;
  if (b.muted || line <= 0 || line >= most_lines || !counting()) return;
  int thread = machine.current, warp = thread / lanes_per_warp;
  Times& times = b.times[thread * most_lines + line];
  if (times.launch != b.launch || times.block != machine.block_start)
    times = {b.launch, machine.block_start, 0};
  Request& request = request_of(uint64_t{machine.block_start} << 32 | times.count++,
                                static_cast<uint64_t>(line * lanes_per_warp + warp));
  int lane = thread % lanes_per_warp;
  request.lanes |= 1u << lane;
  request.bytes = static_cast<uint32_t>(bytes);
  request.places[lane] = static_cast<uint32_t>(place);
  if (request.lanes != ~0u) return;
  finish(request);
  if (--b.incomplete == 0) empty_table();
}

// A phase of ldmatrix: eight rows of 16 bytes, given by their offsets in shared memory.
RISE_CODE void count_conflicts(const uint32_t* rows, int line) {
  if (line > 0 && line < most_lines && counting()) add_phase(rows, 8, 16, line);
}

}  // namespace rise_emulation

#ifndef RISE_DECLARED
// Phases and wavefronts of each line of the last launch, from line 0; returns the number of lines.
extern "C" __attribute__((visibility("default"))) int rise_emulation_wavefronts(int64_t* numbers,
                                                                                int count) {
  using namespace rise_emulation;
  bool counted = counting();
  if (counted) finish_all();
  for (int line = 0; line < count && line < most_lines; line++) {
    numbers[2 * line] = shared_banks.lines[line].phases;
    numbers[2 * line + 1] = shared_banks.lines[line].wavefronts;
  }
  return counted ? most_lines : 0;
}
#endif
