// Tensor maps: the layout of boxes of a global array in shared memory. The host describes them
// (`codegen/ir/tensor_maps.py`), and has checked the description.
#pragma once

#include "mbarrier.hpp"

namespace rise_emulation {

constexpr int most_dimensions = 5;

// `codegen/ir/tensor_maps.py` repeats this layout. Innermost dimension first.
struct MapDescription {
  void* data;
  int64_t bytes;
  int64_t sizes[most_dimensions];
  int64_t strides[most_dimensions];  // in bytes
  int32_t box[most_dimensions];
  int32_t rank;
  int32_t swizzle;  // 0, 32, 64, 128: the width in bytes within which chunks are permuted
  int32_t element_bytes;
  int32_t flags;
  int32_t reserved;
};

struct TensorMap {
  Memory* memory;
  const MapDescription* description;
};

RISE_STATE Memory map_memories[most_arguments];
RISE_STATE Pages map_pages[most_arguments];
RISE_STATE int maps_used;

// All maps of an array, and the array itself, share one memory.
RISE_CODE Memory* memory_of(const Argument& argument, const MapDescription& description) {
  for (Memory& memory : memories)
    if (memory.data == description.data && memory.bytes) return &memory;
  for (int number = 0; number < maps_used; number++)
    if (map_memories[number].data == description.data) return &map_memories[number];
  Memory& memory = map_memories[maps_used];
  map_pages[maps_used].give_back();
  int64_t size = description.element_bytes;
  memory = {argument.name,
            static_cast<char*>(description.data),
            description.bytes,
            size,
            (description.flags & flag_initialised) != 0,
            false,
            map_pages[maps_used].take<Shadow>(description.bytes / size + 1),
            nullptr,
            (description.flags & flag_ready) != 0, false};
  return &map_memories[maps_used++];
}

template <>
struct Parameter<TensorMap> {
  RISE_MEMBER static bool fits(const Argument& argument) {
    if (argument.length == tensor_map) return true;
    complain(ArgumentMismatch, 0, "%s is not a tensor map, the parameter is one", argument.name);
    return false;
  }

  RISE_MEMBER static TensorMap take(const Argument& argument, int) {
    const auto* description = static_cast<const MapDescription*>(argument.data);
    return {memory_of(argument, *description), description};
  }
};

RISE_CODE int64_t swizzled(int64_t address, int span) {
  return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

// A box at some position in a tensor: its elements in the order that they have in shared memory.
struct Box {
  TensorMap map;
  int corner[most_dimensions];

  RISE_MEMBER int element_size() const { return map.description->element_bytes; }
  RISE_MEMBER int64_t elements() const {
    int64_t count = 1;
    for (int d = 0; d < map.description->rank; d++) count *= map.description->box[d];
    return count;
  }
  RISE_MEMBER int64_t bytes() const { return elements() * element_size(); }

  // The offset of an element in its array, in bytes; -1 for one outside the tensor.
  RISE_MEMBER int64_t source(int64_t element) const {
    int64_t byte = 0;
    for (int d = 0; d < map.description->rank; d++) {
      int64_t place = corner[d] + element % map.description->box[d];
      element /= map.description->box[d];
      if (place < 0 || place >= map.description->sizes[d]) return -1;
      byte += place * map.description->strides[d];
    }
    return byte;
  }

  // The offset of an element in shared memory, for a box that starts at `target`.
  RISE_MEMBER int64_t place(int64_t start, int64_t element) const {
    int64_t address = start + element * element_size();
    return map.description->swizzle ? swizzled(address, map.description->swizzle) : address;
  }
};

RISE_CODE void check_box(const Box& box, const Access& access, int rank, const char* operation) {
  const MapDescription& description = *box.map.description;
  int line = access.line, size = static_cast<int>(access.size);
  if (!access.memory || !access.memory->shared)
    RISE_FAULT(IllegalOperand, line, "%s: the box is not in shared memory", operation);
  if (description.rank != rank)
    RISE_FAULT(IllegalOperand, line, "%s with %d coordinates; the tensor %s has %d", operation, rank,
               box.map.memory->name, description.rank);
  if (box.element_size() != size)
    RISE_FAULT(IllegalOperand, line, "%s of %d-byte elements; those of the tensor %s have %d bytes",
               operation, size, box.map.memory->name, box.element_size());
  // an H200 reports an illegal instruction for anything else
  if (box.corner[0] * box.element_size() % 16 != 0)
    RISE_FAULT(IllegalOperand, line, "%s: the box starts at byte %d of a row, not a multiple of 16", operation,
               box.corner[0] * box.element_size());
  check_alignment(access, description.swizzle ? description.swizzle * 8 : 128, operation);
  if (access.byte() < 0 || access.byte() + box.bytes() > access.memory->bytes)
    RISE_FAULT(WriteOutOfBounds, line, "%s: a box of %lld bytes at byte %lld, outside %lld bytes",
               operation, static_cast<long long>(box.bytes()), static_cast<long long>(access.byte()),
               static_cast<long long>(access.memory->bytes));
}

}  // namespace rise_emulation
