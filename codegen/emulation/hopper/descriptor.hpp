// The location of a wgmma's operand in shared memory: the 64-bit descriptor of the instruction, and the
// 16-byte chunks that it denotes.
#pragma once

#include "bulk.hpp"

enum class Swizzle { None = 0, B128 = 1, B64 = 2, B32 = 3 };
enum class Major { K = 0, MN = 1 };
using Descriptor = unsigned long long;

namespace rise_emulation {

struct Operand {
  int64_t start, leading, stride;
  int span;  // of the swizzle, in bytes
  Major major;

  RISE_MEMBER Operand(Descriptor bits, Major major)
      : start(static_cast<int64_t>(bits & 0x3fff) << 4),
        leading(static_cast<int64_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<int64_t>(bits >> 32 & 0x3fff) << 4),
        span((bits >> 62) ? 256 >> (bits >> 62) : 0),
        major(major) {}

  RISE_MEMBER int64_t swizzle(int64_t address) const { return span ? swizzled(address, span) : address; }

  // Chunk `c` of the 32 bytes of row `r`, for rows along k.
  RISE_MEMBER int64_t along_k(int r, int c) const {
    if (!span) return start + r / 8 * stride + r % 8 * 16 + c * leading;
    return swizzle(start + r / 8 * stride + r % 8 * span + c * 16);
  }

  // Chunk `c` of row `k`, for rows along m or n.
  RISE_MEMBER int64_t along_mn(int k, int c) const {
    if (!span) return start + c * stride + k / 8 * leading + k % 8 * 16;
    int chunks = span / 16;
    return swizzle(start + c / chunks * leading + k / 8 * stride + k % 8 * span + c % chunks * 16);
  }
};

// Calls `visit` with each chunk's address, its first row (along m or n) and its first k.
template <class Visit>
static inline void for_chunks(const Operand& operand, int rows, int element_size, Visit visit) {
  int elements = 16 / element_size, steps = 32 / element_size;
  if (operand.major == Major::K) {
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < 2; c++) visit(operand.along_k(r, c), r, c * elements);
  } else {
    for (int k = 0; k < steps; k++)
      for (int c = 0; c < rows / elements; c++) visit(operand.along_mn(k, c), c * elements, k);
  }
}

RISE_CODE void check_descriptor(Descriptor bits, int line) {
  if (bits >> 46 & 7 || bits >> 49 & 7 || bits >> 52 & 0x3ff || bits >> 30 & 3 || bits >> 14 & 3)
    RISE_FAULT(IllegalOperand, line, "%#llx is not a descriptor of shared memory", bits);
}

RISE_CODE int64_t field_of(int64_t bytes, const char* name, int line) {
  if (bytes < 0 || bytes % 16 || bytes >> 18)
    RISE_FAULT(IllegalOperand, line, "shared_descriptor with a %s of %lld bytes, not a multiple of 16 below 2^18",
               name, static_cast<long long>(bytes));
  return bytes >> 4;
}

RISE_CODE Descriptor descriptor_of(const Access& access, int leading, int stride, Swizzle swizzle) {
  int line = access.line;
  if (!access.memory || !access.memory->shared)
    RISE_FAULT(IllegalOperand, line, "shared_descriptor of an address outside shared memory");
  auto bits = static_cast<Descriptor>(field_of(access.byte(), "start", line));
  bits |= static_cast<Descriptor>(field_of(leading, "leading offset", line)) << 16;
  bits |= static_cast<Descriptor>(field_of(stride, "stride", line)) << 32;
  return bits | static_cast<Descriptor>(swizzle) << 62;
}

template <class T>
static inline Descriptor shared_descriptor(Pointer<T> pointer, int leading, int stride, Swizzle swizzle,
                                           int line = __builtin_LINE()) {
  return descriptor_of(pointer.at(0, machine.current, line), leading, stride, swizzle);
}

// The operand `bytes` bytes further on, within the 2^18 bytes that a descriptor can address.
RISE_CODE Descriptor further(Descriptor made, int bytes, int line = __builtin_LINE()) {
  int64_t start = (static_cast<int64_t>(made & 0x3fff) << 4) + bytes;
  return (made & ~0x3fffull) | static_cast<Descriptor>(field_of(start, "start", line));
}

}  // namespace rise_emulation

// The value must be warp-uniform; here each thread returns its own.
RISE_CODE int uniform(int value) { return value; }
