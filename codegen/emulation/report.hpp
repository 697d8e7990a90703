// The first fault of a kernel, as reported to the caller. `codegen/emulation/emulator.py` lists the codes;
// fault `n` is error R09nn there.
#pragma once

#include <stdarg.h>
#include <stdint.h>

#include "once.hpp"

namespace rise_emulation {

enum Fault : int {
  None = 0,
  ArgumentMismatch = 1,
  ReadOutOfBounds = 2,
  WriteOutOfBounds = 3,
  UninitialisedArray = 4,
  UninitialisedLocal = 5,
  UninitialisedFragment = 6,
  RaceInBlock = 7,
  RaceBetweenBlocks = 8,
  DivergentBarrier = 9,
  DivergentCollective = 10,
  LeadingDimension = 11,
  Misaligned = 12,
  Endless = 13,
  LaunchLimits = 14,
  Undefined = 15,
  CopyUnderWay = 16,
  Deadlock = 17,
  RegistersInUse = 18,
  OperandInUse = 19,
  FenceMissing = 20,
  BarrierMisuse = 21,
  IllegalOperand = 22,
  RegisterPool = 23,
  EarlyExit = 24,
  TooEarly = 25,
  PhaseUnknown = 26,
  PhaseUnfinished = 27,
  Interrupted = 99,  // the caller sets it while the kernel runs, which then ends
};

struct Report {
  int32_t code;
  int32_t line;  // in the CUDA text; 0 where no line is known
  char message[504];
  uint64_t finished;  // threads so far; the caller reads it meanwhile
};

// Text formatted into a fixed buffer: a part of a message.
struct Text {
  char characters[200];
};

__attribute__((format(printf, 1, 2))) RISE_CODE Text text(const char* format, ...) {
  Text result;
  va_list arguments;
  va_start(arguments, format);
  __builtin_vsnprintf(result.characters, sizeof result.characters, format, arguments);
  va_end(arguments);
  return result;
}

}  // namespace rise_emulation
