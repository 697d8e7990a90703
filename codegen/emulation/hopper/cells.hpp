// The state of memory under vector clocks: the last writer and readers of each element, whether an access
// is ordered after them, and whether an asynchronous unit is using it.
#pragma once

#include "blocks.hpp"
#include "kernels.hpp"

namespace rise_emulation {

struct Event {
  int32_t clock;
  int32_t line;
  uint16_t agent;
};

// One of several readers since the last write.
struct Reader {
  Event event;
  uint32_t next;
};

enum class Proxy : uint8_t { Generic, Asynchronous };

constexpr uint8_t unknown_layout = 0xff;  // written element by element
constexpr uint8_t barrier_layout = 0xfe;  // holds an mbarrier

struct Cell {
  Event write, read;
  uint32_t write_turn, read_turn;  // the cluster that they belong to; 0: never
  uint32_t readers;                // a list, beside `read`; 0: none
  uint16_t being_read;             // asynchronous reads under way
  bool arriving;                   // an asynchronous write is under way
  bool read_earlier;               // by a cluster before this one
  Proxy proxy;                     // of the write
  uint8_t layout;                  // shared memory: the swizzle that a bulk copy wrote it with
};

// Who accesses: its clocks, and the agent under which the access is recorded.
struct Actor {
  const int32_t* known;
  const int32_t* fenced;  // null for ordinary accesses
  uint16_t agent;
  int32_t clock;
  int line;
  int issuer;  // the thread that messages name
};

constexpr uint32_t most_readers = 1 << 22;
RISE_STATE Reader* reader_pool;
RISE_STATE Pages reader_pages;
RISE_STATE uint32_t readers_used;
constexpr int most_cell_pages = most_arguments + most_cluster;
RISE_STATE Pages cell_pages[most_cell_pages];
RISE_STATE int cell_pages_used;

RISE_CODE void prepare_cells() {
  for (int i = 0; i < cell_pages_used; i++) cell_pages[i].give_back();
  cell_pages_used = 0;
  readers_used = 0;
  reader_pages.give_back();
  reader_pool = reader_pages.take<Reader>(most_readers);
}

RISE_CODE Cell* cells_of(Memory& memory) {
  if (!memory.cells) {
    if (cell_pages_used == most_cell_pages)
      RISE_FAULT(LaunchLimits, 0, "more arrays than can be emulated");
    memory.cells = cell_pages[cell_pages_used++].take<Cell>(memory.bytes / memory.granule + 1);
    if (!memory.cells)
      for (;;) leave();
  }
  return memory.cells;
}

RISE_CODE Text agent_name(int agent) {
  int threads = clocks.blocks * clocks.threads, groups = clocks.blocks * clocks.groups;
  if (agent < threads) {
    uint3 at = blocks[agent / clocks.threads].index;
    return text("%s of block (%u, %u, %u)", thread_name(agent % clocks.threads).characters, at.x,
                at.y, at.z);
  }
  if (agent < threads + groups)
    return text("a wgmma of warpgroup %d", (agent - threads) % clocks.groups);
  return text("a bulk copy");
}

RISE_CODE Text where(const Memory& memory, int64_t byte) {
  for (int rank = 0; rank < block_count; rank++)
    if (&memory == &blocks[rank].shared) {
      uint3 at = blocks[rank].index;
      return text("byte %lld of the shared memory of block (%u, %u, %u)", static_cast<long long>(byte), at.x, at.y, at.z);
    }
  if (memory.shared) return text("byte %lld of shared memory", static_cast<long long>(byte));
  return text("%s[%lld]", memory.name, static_cast<long long>(byte / memory.granule));
}

RISE_CODE bool ordered(const Event& event, const int32_t* known) {
  return known[event.agent] >= event.clock;
}

RISE_COLD void unordered(const Actor& actor, const Memory& memory,
                         int64_t byte, const char* verb,
                         const Event& other, const char* other_verb) {
  bool copied = other.agent >= clocks.blocks * (clocks.threads + clocks.groups);
  if (copied)
    RISE_FAULT(CopyUnderWay, actor.line,
               "%s %s %s, which a bulk copy (line %d) %s, without waiting for the copy's barrier",
               agent_name(actor.issuer).characters, verb, where(memory, byte).characters, other.line, other_verb);
  int threads = clocks.blocks * clocks.threads;
  bool both = actor.agent < threads && other.agent < threads;
  bool same_block = both ? actor.agent / clocks.threads == other.agent / clocks.threads : memory.shared;
  RISE_FAULT(same_block ? RaceInBlock : RaceBetweenBlocks, actor.line,
             "race: %s %s %s, which %s %s (line %d), and nothing orders the two",
             agent_name(actor.issuer).characters, verb, where(memory, byte).characters,
             agent_name(other.agent).characters, other_verb, other.line);
}

RISE_COLD void earlier_cluster(const Actor& actor, const Memory& memory,
                               int64_t byte, const char* verb,
                               const char* other_verb) {
  RISE_FAULT(RaceBetweenBlocks, actor.line, "race between blocks: %s %s %s, which another block %s",
             agent_name(actor.issuer).characters, verb, where(memory, byte).characters, other_verb);
}

RISE_CODE bool has_write(const Memory& memory, const Cell& cell) {
  return cell.write_turn && !(memory.shared && cell.write_turn != turn);
}

RISE_CODE void check_write_before(const Actor& actor, const Memory& memory, int64_t byte,
                                      const Cell& cell, const char* verb) {
  if (cell.arriving && cell.write_turn == turn)
    RISE_FAULT(CopyUnderWay, actor.line,
               "%s %s %s while a bulk copy (line %d) of it is under way",
               agent_name(actor.issuer).characters, verb, where(memory, byte).characters, cell.write.line);
  if (memory.shadow[byte / memory.granule].write.under_way)
    RISE_FAULT(CopyUnderWay, actor.line, "%s %s %s while a copy_async into it is under way",
               agent_name(actor.issuer).characters, verb, where(memory, byte).characters);
  if (!has_write(memory, cell)) return;
  if (cell.write_turn != turn) return earlier_cluster(actor, memory, byte, verb, "wrote");
  if (!ordered(cell.write, actor.known))
    unordered(actor, memory, byte, verb, cell.write, "wrote");
  if (actor.fenced && memory.shared && cell.proxy == Proxy::Generic &&
      !ordered(cell.write, actor.fenced))
    RISE_FAULT(FenceMissing, actor.line,
               "fence_async_shared is missing: %s %s %s asynchronously, which %s wrote (line %d)",
               agent_name(actor.issuer).characters, verb, where(memory, byte).characters,
               agent_name(cell.write.agent).characters, cell.write.line);
}

RISE_CODE void check_reads_before(const Actor& actor, const Memory& memory, int64_t byte,
                                      const Cell& cell) {
  if (cell.being_read && (!memory.shared || cell.read_turn == turn))
    RISE_FAULT(OperandInUse, actor.line, "%s writes %s while %s (line %d) reads it",
               agent_name(actor.issuer).characters, where(memory, byte).characters,
               agent_name(cell.read.agent).characters, cell.read.line);
  if (!cell.read_turn) return;
  if (!memory.shared && (cell.read_turn != turn || cell.read_earlier))
    return earlier_cluster(actor, memory, byte, "writes", "read");
  if (cell.read_turn != turn) return;
  if (!ordered(cell.read, actor.known))
    unordered(actor, memory, byte, "writes", cell.read, "read");
  for (uint32_t i = cell.readers; i; i = reader_pool[i].next)
    if (!ordered(reader_pool[i].event, actor.known))
      unordered(actor, memory, byte, "writes", reader_pool[i].event, "read");
}

RISE_CODE void note_read_by(const Actor& actor, Cell& cell) {
  Event event{actor.clock, actor.line, actor.agent};
  if (cell.read_turn != turn) {
    cell.read_earlier = cell.read_earlier || cell.read_turn;
    cell.read_turn = turn;
    cell.readers = 0;
    cell.being_read = 0;
  } else if (cell.read.agent != actor.agent && !(ordered(cell.read, actor.known) && !cell.readers)) {
    for (uint32_t i = cell.readers; i; i = reader_pool[i].next)
      if (reader_pool[i].event.agent == actor.agent) {
        reader_pool[i].event = event;
        return;
      }
    if (readers_used + 1 == most_readers)
      RISE_FAULT(LaunchLimits, actor.line, "too many threads read the same elements to be emulated");
    reader_pool[++readers_used] = {event, cell.readers};
    cell.readers = readers_used;
    return;
  }
  cell.read = event;
}

RISE_CODE void note_write_by(const Actor& actor, Cell& cell, Proxy proxy, uint8_t layout) {
  cell.write = {actor.clock, actor.line, actor.agent};
  cell.write_turn = turn;
  cell.arriving = false;
  cell.proxy = proxy;
  cell.layout = layout;
  if (cell.read_turn == turn) {
    cell.read_turn = 0;
    cell.readers = 0;
  }
}

RISE_CODE void check_written(const Actor& actor, const Memory& memory, int64_t byte,
                                 const Cell& cell) {
  if (memory.initialised || has_write(memory, cell)) return;
  RISE_FAULT(UninitialisedArray, actor.line, "%s reads %s before it is written",
             agent_name(actor.issuer).characters, where(memory, byte).characters);
}

RISE_CODE void check_no_barrier(const Actor& actor, const Memory& memory, int64_t byte,
                                    const Cell& cell) {
  if (memory.shared && cell.write_turn == turn && cell.layout == barrier_layout)
    RISE_FAULT(BarrierMisuse, actor.line, "%s accesses %s, which belongs to an mbarrier",
               agent_name(actor.issuer).characters, where(memory, byte).characters);
}

// --- the accesses of threads ------------------------------------------------------------------

RISE_CODE Actor running_thread(int thread, int line) {
  int agent = clocks.thread(block_rank, thread);
  return {clocks.row(agent), nullptr, static_cast<uint16_t>(agent), clocks.now(agent), line, agent};
}

template <class Check>
static inline void for_cells(const Access& access, Check check) {
  Memory& memory = *access.memory;
  Cell* cells = cells_of(memory);
  int64_t last = (access.byte() + access.size - 1) / memory.granule;
  for (int64_t number = access.byte() / memory.granule; number <= last; number++)
    check(memory, number * memory.granule, cells[number]);
}


RISE_CODE void watch_read(const Access& access) {
  if (!access.memory->shared) check_following(access.line, *access.memory, false);
  Actor actor = running_thread(access.thread, access.line);
  note_remote_access(access, actor.agent, actor.clock);
  for_cells(access, [&](Memory& memory, int64_t byte, Cell& cell) {
    check_written(actor, memory, byte, cell);
    check_no_barrier(actor, memory, byte, cell);
    check_write_before(actor, memory, byte, cell, "reads");
    note_read_by(actor, cell);
  });
}

RISE_CODE void watch_write(const Access& access) {
  if (!access.memory->shared) check_following(access.line, *access.memory, true);
  Actor actor = running_thread(access.thread, access.line);
  note_remote_access(access, actor.agent, actor.clock);
  for_cells(access, [&](Memory& memory, int64_t byte, Cell& cell) {
    check_no_barrier(actor, memory, byte, cell);
    check_write_before(actor, memory, byte, cell, "writes");
    check_reads_before(actor, memory, byte, cell);
    note_write_by(actor, cell, Proxy::Generic, unknown_layout);
  });
}

static const Watcher clock_watcher{watch_read, watch_write};

}  // namespace rise_emulation
