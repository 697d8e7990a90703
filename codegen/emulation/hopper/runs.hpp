// Bulk copies of runs: adjacent elements of an array, which have the same offset from a 16-byte boundary in shared
// memory as in global memory. The copy engine moves whole chunks of 16 bytes, and the thread itself what is left.
#pragma once

#include "bulk.hpp"

namespace rise_emulation {

constexpr int most_runs = 256, chunk_bytes = 16;
RISE_STATE MapDescription run_descriptions[most_runs];
RISE_STATE int runs_described;

// A run as a box of its array, which has one dimension.
static inline const MapDescription* described(const Memory& memory, int64_t size, int64_t count, bool writable,
                                              int line) {
  for (int number = 0; number < runs_described; number++) {
    const MapDescription& known = run_descriptions[number];
    bool same = known.data == memory.data && known.bytes == memory.bytes && known.element_bytes == size;
    if (same && known.box[0] == count && (known.flags != 0) == writable) return &known;
  }
  if (runs_described == most_runs)
    RISE_FAULT(LaunchLimits, line, "runs of more than %d lengths are copied in bulk", most_runs);
  MapDescription& made = run_descriptions[runs_described++];
  made = {};
  made.data = memory.data;
  made.bytes = memory.bytes;
  made.sizes[0] = memory.bytes / size;
  made.strides[0] = size;
  made.box[0] = static_cast<int32_t>(count);
  made.rank = 1;
  made.element_bytes = static_cast<int32_t>(size);
  made.flags = writable ? flag_writable : 0;
  return &made;
}

RISE_CODE void check_run(const Access& global, const Access& shared, const char* operation) {
  if (!shared.memory || !shared.memory->shared)
    RISE_FAULT(IllegalOperand, shared.line, "%s: the run is not in shared memory", operation);
  check_alignment(global, chunk_bytes, operation);
  check_alignment(shared, chunk_bytes, operation);
}

// How many elements of a run there are in an array of `total` elements.
static inline int64_t existing(int64_t start, int64_t length, int64_t total) {
  int64_t left = start < total ? total - start : 0;
  return left < length ? left : length;
}

template <class T>
static inline void bulk_load_run(const Pointer<const T>& array, const Pointer<T>& target, int64_t start,
                                 int64_t length, int64_t total, const Pointer<Barrier>& bar, int line) {
  int64_t count = existing(start, length, total);
  constexpr int64_t chunk = chunk_bytes / static_cast<int64_t>(sizeof(T));
  int64_t before = start % chunk, whole = (before + count + chunk - 1) / chunk * chunk;
  int64_t left = (total - (start - before)) / chunk * chunk, copied = left < whole ? left : whole;
  if (!count) copied = 0;
  count_step(line);
  if (copied) {
    Access from = array.at(start - before, machine.current, line);
    Access to = target.at(-before, machine.current, line);
    check_following(line, *array.memory, false);
    check_run(from, to, "bulk_load_run");
    barrier_expect_more(bar, static_cast<int>(copied * static_cast<int64_t>(sizeof(T))), line);
    const MapDescription* run = described(*array.memory, sizeof(T), copied, false, line);
    Box box{{array.memory, run}, {static_cast<int>(from.byte() / static_cast<int64_t>(sizeof(T)))}};
    start_load(to, box, bar, 1u << block_rank, "bulk_load_run");
  }
  for (int64_t i = copied < before ? 0 : copied - before; i < count; i++)
    target[Index(i, line)] = array[Index(start + i, line)];
  // on a GPU there is whatever was there before
  T nothing;
  __builtin_memset(&nothing, 0xff, sizeof nothing);
  for (int64_t i = count; i < length; i++) target[Index(i, line)] = nothing;
  if (copied - before < length) fence_clocks(running_agent());
}

template <class T>
static inline void bulk_store_run(const Pointer<T>& array, const Pointer<T>& source, int64_t start, int64_t length,
                                  int64_t total, int line) {
  int64_t count = existing(start, length, total);
  constexpr int64_t chunk = chunk_bytes / static_cast<int64_t>(sizeof(T));
  int64_t beyond = (chunk - start % chunk) % chunk, first = beyond < count ? beyond : count;
  int64_t copied = (count - first) / chunk * chunk;
  count_step(line);
  if (copied) {
    Access to = array.at(start + first, machine.current, line);
    Access from = source.at(first, machine.current, line);
    check_following(line, *array.memory, true);
    check_run(to, from, "bulk_store_run");
    const MapDescription* run = described(*array.memory, sizeof(T), copied, true, line);
    start_store({{array.memory, run}, {static_cast<int>(to.byte() / static_cast<int64_t>(sizeof(T)))}}, from);
  }
  for (int64_t i = 0; i < first; i++) array[Index(start + i, line)] = source[Index(i, line)];
  for (int64_t i = first + copied; i < count; i++) array[Index(start + i, line)] = source[Index(i, line)];
}

}  // namespace rise_emulation
