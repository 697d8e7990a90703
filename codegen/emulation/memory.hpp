// Arrays in global and shared memory: checked pointers, and for every element a shadow of its last
// accesses, by which uninitialised reads and races are detected.
#pragma once

#include "access.hpp"
#include "banks.hpp"

namespace rise_emulation {

// The part of an access that later checks need. Two accesses of a block are ordered if a barrier (epoch)
// is between them or, in one warp, a __syncwarp (warp_epoch).
struct Trace {
  uint32_t epoch;  // 0: never
  uint32_t warp_epoch;
  uint16_t thread;
  uint8_t many;  // of reads, see below
  uint8_t under_way;  // of writes: an asynchronous copy that has not been waited for
  uint32_t line;
};

// The reads that a trace stands for besides the one that it describes.
constexpr uint8_t many_lanes = 1;    // other lanes of the warp, since its last __syncwarp
constexpr uint8_t many_warps = 2;    // other warps, since the last barrier
constexpr uint8_t other_blocks = 4;  // blocks that ran earlier

struct Shadow {
  Trace write, read;
};

struct Cell;

struct Memory {
  const char* name;
  char* data;
  int64_t bytes;
  int64_t granule;  // bytes per shadow: an element of a global array, one byte of shared memory
  bool initialised;
  bool shared;
  Shadow* shadow;
  Cell* cells;  // instead of `shadow` if a watcher checks accesses (hopper/cells.hpp)
  bool ready;   // complete when the kernel starts, even if it overlaps with the kernel before it
  bool unused;  // by the kernel before it, so that it may be written, too
};

constexpr int most_arguments = 64;
RISE_STATE Memory memories[most_arguments];
RISE_STATE Memory shared_bytes;

template <class T>
struct Pointer;

// The target of an access, for messages.
struct Access {
  Memory* memory;
  int64_t origin;  // the offset of the array in its memory, in bytes
  int64_t index;
  int64_t size;  // of an element
  int thread, line;

  RISE_MEMBER int64_t byte() const { return origin + index * size; }
  RISE_MEMBER Text name() const {
    if (!memory->shared) return text("%s[%lld]", memory->name, static_cast<long long>(index));
    return text("shared memory [%lld] from byte %lld on", static_cast<long long>(index),
                static_cast<long long>(origin));
  }
};

RISE_CODE unsigned block_of(uint32_t epoch) {
  unsigned position = machine.blocks_started - 1;
  while (position > 0 && machine.starts[position] > epoch) position--;
  return machine.blocks[position];
}

RISE_COLD void race(const Access& access, const char* verb,
                    const Trace& other, const char* other_verb,
                    bool several) {
  if (other.epoch < machine.block_start) {
    RISE_FAULT(RaceBetweenBlocks, access.line,
               "race between blocks: %s %s %s, which %s of %s %s (line %u)",
               place_name(access.thread).characters, verb, access.name().characters,
               thread_name(other.thread).characters, block_name(block_of(other.epoch)).characters,
               other_verb, other.line);
  }
  Text party = several && other.thread == access.thread ? text("another thread")
                                                        : thread_name(other.thread);
  bool same_warp = other.thread / lanes_per_warp == access.thread / lanes_per_warp;
  RISE_FAULT(RaceInBlock, access.line, "race: %s %s %s, which %s %s (line %u) with no %s between",
             place_name(access.thread).characters, verb, access.name().characters,
             party.characters, other_verb, other.line,
             same_warp && !(other.many & many_warps) ? "__syncwarp" : "__syncthreads");
}

// Whether a trace records an access in this launch, or for shared memory in this block.
RISE_CODE bool present(const Trace& trace, bool shared) {
  return trace.epoch && !(shared && trace.epoch < machine.block_start);
}

RISE_CODE void check_against_write(const Access& access, const Shadow& shadow,
                                       const char* verb) {
  const Trace& write = shadow.write;
  if (!present(write, access.memory->shared)) return;
  if (write.epoch < machine.block_start) return race(access, verb, write, "wrote", false);
  if (write.thread == access.thread || write.epoch != machine.epoch) return;
  int warp = access.thread / lanes_per_warp;
  if (write.thread / lanes_per_warp != warp || write.warp_epoch == machine.warps[warp].epoch)
    race(access, verb, write, "wrote", false);
}

RISE_CODE void check_against_reads(const Access& access, const Shadow& shadow) {
  const Trace& read = shadow.read;
  if (!present(read, access.memory->shared)) return;
  if (read.epoch < machine.block_start) return race(access, "writes", read, "read", false);
  if (read.many & other_blocks) {
    RISE_FAULT(RaceBetweenBlocks, access.line,
               "race between blocks: %s writes %s, which another block read",
               place_name(access.thread).characters, access.name().characters);
  }
  if (read.epoch != machine.epoch) return;
  int warp = access.thread / lanes_per_warp;
  bool unordered = (read.many & many_warps) || read.thread / lanes_per_warp != warp ||
                   (read.warp_epoch == machine.warps[warp].epoch &&
                    ((read.many & many_lanes) || read.thread != access.thread));
  if (unordered) race(access, "writes", read, "read", true);
}

RISE_CODE void note_write(Shadow& shadow, const Access& access) {
  shadow.write = {machine.epoch, machine.warps[access.thread / lanes_per_warp].epoch,
                  static_cast<uint16_t>(access.thread), 0, 0, static_cast<uint32_t>(access.line)};
}

RISE_CODE void note_read(Shadow& shadow, const Access& access) {
  Trace& read = shadow.read;
  uint32_t warp_epoch = machine.warps[access.thread / lanes_per_warp].epoch;
  uint8_t many = read.many & other_blocks;
  if (read.epoch == machine.epoch) {
    many = read.many;
    if (read.thread / lanes_per_warp != access.thread / lanes_per_warp) {
      read.many |= many_warps;
      return;
    }
    if (read.warp_epoch == warp_epoch) {
      if (read.thread != access.thread) read.many |= many_lanes;
      return;
    }
    many &= static_cast<uint8_t>(~many_lanes);
  } else if (present(read, access.memory->shared) && read.epoch < machine.block_start) {
    many |= other_blocks;
  }
  read = {machine.epoch, warp_epoch, static_cast<uint16_t>(access.thread), many, 0,
          static_cast<uint32_t>(access.line)};
}

RISE_COLD void outside(const Access& access, bool writes) {
  int64_t length = access.memory ? (access.memory->bytes - access.origin) / access.size : 0;
  RISE_FAULT(writes ? WriteOutOfBounds : ReadOutOfBounds, access.line,
             "%s %s %s, outside its %lld elements", place_name(access.thread).characters,
             writes ? "writes" : "reads",
             access.memory ? access.name().characters : "a pointer never set",
             static_cast<long long>(length));
}

RISE_CODE char* check_bounds(const Access& access, bool writes) {
  count_step(access.line);
  if (!access.memory || access.byte() < access.origin ||
      access.byte() + access.size > access.memory->bytes)
    outside(access, writes);
  return access.memory->data + access.byte();
}

RISE_CODE void check_arrived(const Access& access, const Shadow& shadow, const char* verb) {
  const Trace& write = shadow.write;
  if (write.under_way && present(write, access.memory->shared))
    RISE_FAULT(CopyUnderWay, access.line,
               "%s %s %s while a copy into it is under way: %s started it (line %u), and has not "
               "waited for it",
               place_name(access.thread).characters, verb, access.name().characters,
               thread_name(write.thread).characters, write.line);
}

// Checks accesses instead of epochs: needed if more than barriers orders threads.
struct Watcher {
  void (*read)(const Access& access);
  void (*write)(const Access& access);
};

RISE_STATE const Watcher* watcher;

RISE_CODE const char* checked_read(const Access& access) {
  const char* place = check_bounds(access, false);
  if (watcher) return watcher->read(access), place;
  Memory& memory = *access.memory;
  Shadow* first = memory.shadow + access.byte() / memory.granule;
  Shadow* last = memory.shadow + (access.byte() + access.size - 1) / memory.granule;
  for (Shadow* shadow = first; shadow <= last; shadow++) {
    if (!memory.initialised && !present(shadow->write, memory.shared))
      RISE_FAULT(UninitialisedArray, access.line, "%s reads %s before it is written",
                 place_name(access.thread).characters, access.name().characters);
    check_arrived(access, *shadow, "reads");
    check_against_write(access, *shadow, "reads");
    note_read(*shadow, access);
  }
  return place;
}

RISE_CODE char* checked_write(const Access& access) {
  char* place = check_bounds(access, true);
  if (watcher) return watcher->write(access), place;
  Memory& memory = *access.memory;
  Shadow* first = memory.shadow + access.byte() / memory.granule;
  Shadow* last = memory.shadow + (access.byte() + access.size - 1) / memory.granule;
  for (Shadow* shadow = first; shadow <= last; shadow++) {
    check_arrived(access, *shadow, "writes");
    check_against_write(access, *shadow, "writes");
    check_against_reads(access, *shadow);
    note_write(*shadow, access);
  }
  return place;
}

// One element in memory.
template <class T>
struct Reference : Element<Reference<T>, typename std::remove_const<T>::type> {
  using Value = typename std::remove_const<T>::type;
  Access access;

  explicit Reference(const Access& access) : access(access) {}
  Reference(const Reference&) = default;
  template <class Other,
            typename std::enable_if<std::is_same<const Other, T>::value, int>::type = 0>
  Reference(const Reference<Other>& other) : access(other.access) {}

  Value read() const {
    Value number;
    __builtin_memcpy(&number, checked_read(access), sizeof number);
    if (access.memory->shared) count_access(access.byte(), access.size, access.line);
    return number;
  }

  void write(Value number) const {
    static_assert(!std::is_const<T>::value, "a const array is written to");
    __builtin_memcpy(checked_write(access), &number, sizeof number);
    if (access.memory->shared) count_access(access.byte(), access.size, access.line);
  }

  template <class V>
  const Reference& operator=(V operand) const {
    return this->assign(operand);
  }
  const Reference& operator=(const Reference& operand) const { return this->assign(operand); }
  Pointer<T> operator&() const { return {access.memory, access.origin, access.index}; }
};

// A pointer into an array argument or into shared memory. It may point anywhere; only the elements that
// are accessed through it must be in bounds.
template <class T>
struct Pointer {
  Memory* memory = nullptr;
  int64_t origin = 0;
  int64_t index = 0;

  Pointer() = default;
  Pointer(Memory* memory, int64_t origin, int64_t index)
      : memory(memory), origin(origin), index(index) {}
  template <class Other,
            typename std::enable_if<std::is_same<const Other, T>::value, int>::type = 0>
  Pointer(const Pointer<Other>& other)
      : memory(other.memory), origin(other.origin), index(other.index) {}

  Access at(int64_t offset, int thread, int line) const {
    return {memory, origin, index + offset, sizeof(T), thread, line};
  }
  Reference<T> operator[](Index offset) const {
    return Reference<T>(at(offset.value, machine.current, offset.line));
  }
  Reference<T> operator*() const {
    return Reference<T>(at(0, machine.current, machine.threads[machine.current].line));
  }
  Pointer operator+(Index offset) const { return {memory, origin, index + offset.value}; }
  Pointer operator-(Index offset) const { return {memory, origin, index - offset.value}; }
  Pointer& operator+=(Index offset) { return *this = *this + offset; }
  Pointer& operator-=(Index offset) { return *this = *this - offset; }
};

template <class T>
using Global = Pointer<T>;
template <class T>
using Awaited = Pointer<T>;

template <class T>
using Shared = Pointer<T>;

template <class T>
static inline Shared<T> shared_memory(int64_t offset, int line = __builtin_LINE()) {
  if (offset < 0 || offset % static_cast<int64_t>(sizeof(T)) != 0)
    RISE_FAULT(Misaligned, line,
               "an array of %d-byte elements starts at byte %lld of shared memory",
               static_cast<int>(sizeof(T)), static_cast<long long>(offset));
  return {&shared_bytes, offset, 0};
}

}  // namespace rise_emulation
