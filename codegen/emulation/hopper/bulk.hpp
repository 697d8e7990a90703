// Bulk tensor copies. A load is checked when it is issued. It completes, depending on the seed, as late as
// waits allow, at once, or at any time between; copies may complete out of order. A store reads its box when
// its thread waits for that, or at once; until then nobody may write there.
#pragma once

#include "tensor_map.hpp"

namespace rise_emulation {

struct Load {
  Box box;
  int64_t target, barrier;  // bytes of shared memory
  unsigned blocks;          // that receive it, a bit each
  int line;
  int phases[most_cluster];  // of the barrier in each block: complete when the load started
};

struct Store {
  Box box;
  int64_t source;
  int thread, rank, line;
  unsigned group;
  bool read;  // its box has been read
};

constexpr int most_loads = 4096, most_stores = 1024;
RISE_STATE Load loads[most_loads];
RISE_STATE int loads_under_way;
RISE_STATE Store stores[most_stores];
RISE_STATE int stores_under_way;
RISE_STATE unsigned store_groups[most_cluster][most_threads];

enum class Arrival { Late, AtOnce, Random };

RISE_CODE Arrival arrival() { return static_cast<Arrival>(machine.seed % 3); }

// The copy engine as an agent, for an mbarrier's block and on behalf of the running thread.
RISE_CODE Actor copying_unit(int rank, const Mbarrier& barrier, int line) {
  int issuer = running_agent(), agent = clocks.barrier(rank, number_of(rank, barrier));
  return {clocks.row(issuer), clocks.fenced(issuer), static_cast<uint16_t>(agent), barrier.phases + 1, line,
          issuer};
}

template <class Check>
static inline void for_bytes(int64_t byte, int64_t count, Memory& memory, Check check) {
  Cell* cells = cells_of(memory);
  for (int64_t i = byte / memory.granule; i < (byte + count - 1) / memory.granule + 1; i++)
    check(i * memory.granule, cells[i]);
}

// Visits the cells in global memory of every element that is inside the tensor.
template <class Check>
static inline void for_elements(const Box& box, Check check) {
  Memory& memory = *box.map.memory;
  for (int64_t element = 0; element < box.elements(); element++) {
    int64_t byte = box.source(element);
    if (byte >= 0) for_bytes(byte, box.element_size(), memory, check);
  }
}

RISE_CODE void start_arrival(const Actor& unit, int64_t target, int64_t bytes, Memory& memory) {
  for_bytes(target, bytes, memory, [&](int64_t byte, Cell& cell) {
    check_no_barrier(unit, memory, byte, cell);
    check_write_before(unit, memory, byte, cell, "copies into");
    check_reads_before(unit, memory, byte, cell);
    note_write_by(unit, cell, Proxy::Asynchronous, unknown_layout);
    cell.arriving = true;
  });
}

// Writes the bytes of a load into one block's shared memory.
RISE_CODE void arrive_in(const Load& load, int rank) {
  Memory& shared = shared_of(rank);
  const Mbarrier& barrier = blocks[rank].barriers[find_barrier(rank, load.barrier)];
  size_t size = static_cast<size_t>(load.box.element_size());
  for (int64_t element = 0; element < load.box.elements(); element++) {
    char* place = shared.data + load.box.place(load.target, element);
    int64_t source = load.box.source(element);
    if (source < 0)
      __builtin_memset(place, 0, size);
    else
      __builtin_memcpy(place, load.box.map.memory->data + source, size);
  }
  for_bytes(load.target, load.box.bytes(), shared, [&](int64_t, Cell& cell) {
    cell.arriving = false;
    cell.write.clock = barrier.phases + 1;
    cell.layout = static_cast<uint8_t>(load.box.map.description->swizzle);
  });
  bytes_arrive(rank, load.barrier, load.box.bytes(), load.phases[rank], load.line);
}

RISE_CODE void complete_load(int number) {
  Load load = loads[number];
  loads[number] = loads[--loads_under_way];
  for (int rank = 0; rank < block_count; rank++)
    if (load.blocks >> rank & 1) arrive_in(load, rank);
}

RISE_CODE bool complete_some_load() {
  if (!loads_under_way) return false;
  complete_load(static_cast<int>(machine.random.next() >> 33) % loads_under_way);
  return true;
}

RISE_CODE void start_load(const Access& target, const Box& box, const Pointer<Barrier>& bar, unsigned receivers,
                          const char* operation) {
  int line = target.line;
  if (!receivers || receivers >> block_count)
    RISE_FAULT(IllegalOperand, line, "%s to the blocks of mask %#x of a cluster of %d", operation, receivers,
               block_count);
  if (loads_under_way == most_loads)
    RISE_FAULT(LaunchLimits, line, "more than %d bulk loads are under way", most_loads);
  int64_t byte = target.byte();
  Load load{box, byte, bar.at(0, 0, line).byte(), receivers, line, {}};
  int first = -1;
  for (int block = 0; block < block_count; block++) {
    if (!(receivers >> block & 1)) continue;
    const Mbarrier& barrier = barrier_at(bar, block, operation, line, true);
    first = first < 0 ? block : first;
    int number = number_of(block, barrier);
    check_phase_known(block, number, operation, line);
    load.phases[block] = barrier.phases;
    learn_phases(gathered(block, number), clocks.row(running_agent()));
    start_arrival(copying_unit(block, barrier, line), byte, box.bytes(), shared_of(block));
  }
  Memory& memory = *box.map.memory;
  Actor reader = copying_unit(first, barrier_at(bar, first, operation, line, true), line);
  for_elements(box, [&](int64_t place, Cell& cell) {
    check_written(reader, memory, place, cell);
    check_write_before(reader, memory, place, cell, "copies");
    note_read_by(reader, cell);
  });
  loads[loads_under_way++] = load;
  if (arrival() == Arrival::AtOnce) complete_load(loads_under_way - 1);
  stop_if_reported();
}

RISE_CODE void load_box(const Access& target, const Box& box, int rank, const Pointer<Barrier>& bar,
                        unsigned receivers, const char* operation) {
  count_step(target.line);
  check_following(target.line, *box.map.memory, false);
  check_box(box, target, rank, operation);
  start_load(target, box, bar, receivers, operation);
}

// Ordered like a load that the mbarrier waits for; no bytes are announced for it.
RISE_CODE void arrive_undefined(const Access& target, int64_t bytes, const Mbarrier& barrier) {
  Memory& shared = *target.memory;
  int64_t start = target.byte();
  start_arrival(copying_unit(block_rank, barrier, target.line), start, bytes, shared);
  __builtin_memset(shared.data + start, 0xff, static_cast<size_t>(bytes));
  for_bytes(start, bytes, shared, [](int64_t, Cell& cell) { cell.arriving = false; });
  stop_if_reported();
}

template <class T>
static inline void leave_undefined(const Pointer<T>& target, const Pointer<Barrier>& bar, int64_t count, int line) {
  count_step(line);
  Access first = target.at(0, machine.current, line), last = target.at(count - 1, machine.current, line);
  if (!first.memory || !first.memory->shared || first.memory != last.memory)
    RISE_FAULT(IllegalOperand, line, "leave_undefined: the elements are not in shared memory");
  const Mbarrier& barrier = barrier_at(bar, block_rank, "leave_undefined", line, true);
  arrive_undefined(first, last.byte() + last.size - first.byte(), barrier);
}

template <class T>
static inline void bulk_load(const Pointer<T>& target, const Box& box, int rank, const Pointer<Barrier>& bar,
                             unsigned receivers, const char* operation, int line) {
  load_box(target.at(0, machine.current, line), box, rank, bar, receivers, operation);
}

// --- stores -----------------------------------------------------------------------------------

RISE_CODE Actor storing_unit(int line) {
  int issuer = running_agent();
  return {clocks.row(issuer), clocks.fenced(issuer), static_cast<uint16_t>(issuer), clocks.now(issuer), line,
          issuer};
}

// The store has read its box: its writes are not yet visible to anyone.
RISE_CODE void read_box(Store& store, const Actor& actor) {
  if (store.read) return;
  store.read = true;
  Memory& shared = shared_of(store.rank);
  for_bytes(store.source, store.box.bytes(), shared, [&](int64_t, Cell& cell) {
    cell.being_read--;
    note_read_by(actor, cell);
  });
  for (int64_t element = 0; element < store.box.elements(); element++) {
    int64_t target = store.box.source(element);
    if (target >= 0)
      __builtin_memcpy(store.box.map.memory->data + target,
                       shared.data + store.box.place(store.source, element),
                       static_cast<size_t>(store.box.element_size()));
  }
}

RISE_CODE void complete_store(const Store& store, const Actor& actor) {
  for_elements(store.box, [&](int64_t, Cell& cell) {
    cell.arriving = false;
    cell.write.clock = actor.clock;
  });
}

RISE_CODE void start_store(const Box& box, const Access& source) {
  int line = source.line;
  if (stores_under_way == most_stores)
    RISE_FAULT(LaunchLimits, line, "more than %d bulk stores are under way", most_stores);
  int64_t byte = source.byte();
  Actor unit = storing_unit(line);
  if (!(box.map.description->flags & flag_writable))
    RISE_FAULT(ArgumentMismatch, line, "bulk_store into %s, which is read-only", box.map.memory->name);
  Memory& memory = *box.map.memory;
  for (int64_t element = 0; element < box.elements(); element++) {
    int64_t target = box.source(element);
    if (target < 0) continue;  // clipped
    for_bytes(box.place(byte, element), box.element_size(), shared_bytes, [&](int64_t place, Cell& cell) {
      check_written(unit, shared_bytes, place, cell);
      check_no_barrier(unit, shared_bytes, place, cell);
      check_write_before(unit, shared_bytes, place, cell, "stores");
    });
    for_bytes(target, box.element_size(), memory, [&](int64_t place, Cell& cell) {
      check_write_before(unit, memory, place, cell, "stores into");
      check_reads_before(unit, memory, place, cell);
      note_write_by(unit, cell, Proxy::Asynchronous, unknown_layout);
      cell.arriving = true;
    });
  }
  for_bytes(byte, box.bytes(), shared_bytes, [&](int64_t, Cell& cell) {
    note_read_by(unit, cell);
    cell.being_read++;
  });
  unsigned group = store_groups[block_rank][machine.current];
  stores[stores_under_way++] = {box, byte, machine.current, block_rank, line, group, false};
}

RISE_CODE void store_box(const Box& box, int rank, const Access& source) {
  count_step(source.line);
  check_following(source.line, *box.map.memory, true);
  check_box(box, source, rank, "bulk_store");
  start_store(box, source);
}

template <class T>
static inline void bulk_store(const Box& box, int rank, const Pointer<T>& source, int line) {
  store_box(box, rank, source.at(0, machine.current, line));
}

// Makes the stores that the thread issued since the last commit a commit group.
RISE_CODE void bulk_commit() { store_groups[block_rank][machine.current]++; }

// Waits until all but `pending` groups of the thread have read their boxes or, if `whole`, are complete.
RISE_CODE void wait_for_stores(unsigned pending, bool whole, int line) {
  count_step(line);
  Actor actor = storing_unit(line);
  unsigned committed = store_groups[block_rank][machine.current];
  int left = 0;
  for (int i = 0; i < stores_under_way; i++) {
    Store& store = stores[i];
    bool own = store.thread == machine.current && store.rank == block_rank;
    bool done = own && store.group + pending < committed;
    if (done) read_box(store, actor);
    if (done && whole)
      complete_store(store, actor);
    else
      stores[left++] = store;
  }
  stores_under_way = left;
}

// A block must not exit before its stores have read its shared memory.
RISE_CODE void check_stores_at_end() {
  for (int i = 0; i < stores_under_way; i++)
    if (!stores[i].read)
      return complain(EarlyExit, stores[i].line,
                      "%s ends without bulk_wait_read for its bulk store (line %d)",
                      agent_name(clocks.thread(stores[i].rank, stores[i].thread)).characters,
                      stores[i].line);
}

}  // namespace rise_emulation
