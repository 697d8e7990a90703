// Behaviour that C++ leaves undefined and that would crash the caller, or silently go wrong: division by
// zero, signed overflow, shifts that are too far, indices out of bounds of plain arrays. The compiler's
// checks (-fsanitize) call these functions, which a sanitizer library normally provides.
#pragma once

#include "machine.hpp"

namespace rise_emulation {

struct CheckedPlace {  // the start of the record that each check passes
  const char* file;
  uint32_t line, column;
};

RISE_COLD void undefined_at(int line, const char* what) {
  RISE_FAULT(Undefined, line, "%s: %s", place_name(machine.current).characters, what);
}

RISE_CODE void undefined(const void* record, const char* what) {
  undefined_at(static_cast<int>(static_cast<const CheckedPlace*>(record)->line), what);
}

}  // namespace rise_emulation

#ifndef RISE_DECLARED
#define RISE_CHECK(name, what)                                           \
  extern "C" void __ubsan_handle_##name(void* record, void*, void*) {    \
    rise_emulation::undefined(record, what);                             \
  }

RISE_CHECK(add_overflow, "signed overflow in an addition")
RISE_CHECK(sub_overflow, "signed overflow in a subtraction")
RISE_CHECK(mul_overflow, "signed overflow in a multiplication")
RISE_CHECK(negate_overflow, "signed overflow in a negation")
RISE_CHECK(divrem_overflow, "division by zero, or overflow in a division")
RISE_CHECK(shift_out_of_bounds, "a shift by more bits than the number has")
RISE_CHECK(out_of_bounds, "an index out of bounds of an array of the kernel")
#undef RISE_CHECK
#endif
