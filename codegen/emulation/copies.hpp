// Copies of several elements at once, and asynchronous copies. An asynchronous copy completes as late as
// possible: when its thread waits for it.
#pragma once

#include "memory.hpp"

namespace rise_emulation {

template <class T>
static inline Reference<T> element(const Pointer<T>& pointer, int offset, int line) {
  return Reference<T>(pointer.at(offset, machine.current, line));
}

template <class T, Fault uninitialised>
static inline LocalElement<T, uninitialised> element(const LocalPointer<T, uninitialised>& pointer,
                                                     int offset, int line) {
  return pointer.at(offset, line);
}

RISE_CODE void check_alignment(const Access& access, int64_t bytes, const char* operation) {
  if (access.memory && access.byte() % bytes != 0)
    RISE_FAULT(Misaligned, access.line, "%s at %s, not aligned to %lld bytes", operation,
               access.name().characters, static_cast<long long>(bytes));
}

template <class T>
static inline void check_vector(const Pointer<T>& pointer, int count, const char* operation, int line) {
  int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  check_alignment(pointer.at(0, machine.current, line), bytes < 16 ? bytes : 16, operation);
}

template <class T, Fault uninitialised>
static inline void check_vector(const LocalPointer<T, uninitialised>& pointer, int count,
                                const char* operation, int line) {
  int together = 16 / static_cast<int>(sizeof(T)) < count ? 16 / static_cast<int>(sizeof(T)) : count;
  if (pointer.index % together != 0)
    RISE_FAULT(Misaligned, line, "%s at element %d of a local array, not aligned to %d elements",
               operation, pointer.index, together);
}

// Counts the instructions for a vector, 16 bytes each, if it is in shared memory.
RISE_CODE void count_vector(const Access& access, int64_t bytes) {
  if (!access.memory || !access.memory->shared) return;
  for (int64_t done = 0; done < bytes; done += 16)
    count_access(access.byte() + done, bytes < 16 ? bytes : 16, access.line);
}

template <class T>
static inline void count_vector(const Pointer<T>& pointer, int count, int line) {
  count_vector(pointer.at(0, machine.current, line), count * static_cast<int64_t>(sizeof(T)));
}

template <class T, Fault uninitialised>
static inline void count_vector(const LocalPointer<T, uninitialised>&, int, int) {}

template <int count, class Target, class Source>
static inline void copy_vector(const Target& target, const Source& source,
                               int line = __builtin_LINE()) {
  check_vector(target, count, "copy_vector", line);
  check_vector(source, count, "copy_vector", line);
  shared_banks.muted = true;
  for (int i = 0; i < count; i++) element(target, i, line).write(element(source, i, line).read());
  shared_banks.muted = false;
  count_vector(source, count, line);
  count_vector(target, count, line);
}

// --- asynchronous copies ---------------------------------------------------------------------

struct Copy {
  Access target, source;
  int64_t bytes;
  unsigned group;
  bool inside;  // of the source's array; otherwise it copies zeros
};

constexpr int most_copies = 512;  // of a thread that are under way at one time

struct Copies {
  unsigned launch, block;  // to which the queue belongs: a fault leaves copies under way
  unsigned committed;
  int count;
  Copy queue[most_copies];
};

RISE_STATE Copies copies[most_threads];

RISE_CODE Copies& copies_of_thread() {
  Copies& own = copies[machine.current];
  if (own.launch != machine.launches || own.block != machine.block_start) {
    own.launch = machine.launches;
    own.block = machine.block_start;
    own.committed = 0;
    own.count = 0;
  }
  return own;
}

RISE_CODE void mark_under_way(const Access& target, int64_t bytes, uint8_t value) {
  Memory& memory = *target.memory;
  for (int64_t byte = target.byte(); byte < target.byte() + bytes; byte += memory.granule)
    memory.shadow[byte / memory.granule].write.under_way = value;
}

// Accesses each of the elements that a copy moves.
RISE_CODE Access part(Access access, int64_t number) {
  access.index += number;
  return access;
}

template <int count, class T>
struct Copied {
  static void start(const Pointer<T>& target, const Pointer<const T>& source, bool inside, int line) {
    constexpr int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "an asynchronous copy moves 4, 8 or 16 bytes");
    check_vector(target, count, "copy_async", line);
    check_vector(source, count, "copy_async", line);
    Access to = target.at(0, machine.current, line), from = source.at(0, machine.current, line);
    if (!to.memory || !to.memory->shared || !from.memory || from.memory->shared)
      RISE_FAULT(Undefined, line, "copy_async must copy from global to shared memory");
    for (int i = 0; i < count; i++) checked_write(part(to, i));
    mark_under_way(to, bytes, 1);
    count_vector(to, bytes);
    Copies& own = copies_of_thread();
    if (own.count == most_copies)
      RISE_FAULT(LaunchLimits, line, "more than %d copies of a thread are under way", most_copies);
    own.queue[own.count++] = {to, from, bytes, own.committed, inside};
  }
};

template <int count, class T>
static inline void copy_async(const Pointer<T>& target,
                              typename std::common_type<Pointer<const T>>::type source,
                              int line = __builtin_LINE()) {
  Copied<count, T>::start(target, source, true, line);
}

template <int count, class T>
static inline void copy_async_or_zero(const Pointer<T>& target,
                                      typename std::common_type<Pointer<const T>>::type source, bool inside,
                                      int line = __builtin_LINE()) {
  Copied<count, T>::start(target, source, inside, line);
}

// Makes the copies started since the last commit a commit group.
RISE_CODE void commit_copies() { copies_of_thread().committed++; }

RISE_CODE void complete(const Copy& copy) {
  mark_under_way(copy.target, copy.bytes, 0);
  int64_t count = copy.bytes / copy.target.size;
  for (int64_t i = 0; i < count; i++) {
    if (!copy.inside) {
      __builtin_memset(checked_write(part(copy.target, i)), 0, copy.target.size);
      continue;
    }
    const char* from = checked_read(part(copy.source, i));
    __builtin_memcpy(checked_write(part(copy.target, i)), from, copy.target.size);
  }
}

// Waits until at most `pending` of the thread's groups are pending.
template <int pending>
static inline void wait_copies() {
  Copies& own = copies_of_thread();
  int left = 0;
  for (int i = 0; i < own.count; i++) {
    if (own.queue[i].group + pending < own.committed) {
      complete(own.queue[i]);
    } else {
      own.queue[left++] = own.queue[i];
    }
  }
  own.count = left;
}

}  // namespace rise_emulation
