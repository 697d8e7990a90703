// Fibers: stacks to switch between. On x86-64 Linux a switch saves six registers; elsewhere ucontext does it.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "once.hpp"

#if defined(__x86_64__) && defined(__linux__) && !defined(RISE_UCONTEXT)

namespace rise_emulation {
struct Context {
  void* stack_pointer;
};
}  // namespace rise_emulation

extern "C" __attribute__((visibility("hidden"))) void rise_switch(
    rise_emulation::Context* from, const rise_emulation::Context* to);

#ifndef RISE_DECLARED
// Saves the callee-saved registers on the current stack, and restores those of the other.
asm(R"(
  .text
  .globl rise_switch
  .hidden rise_switch
  .type rise_switch, @function
rise_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size rise_switch, .-rise_switch
)");
#endif

namespace rise_emulation {

RISE_CODE void switch_context(Context& from, const Context& to) { rise_switch(&from, &to); }

RISE_CODE void prepare(Context& context, char* stack, size_t bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + bytes);
  *--top = nullptr;  // the return address of `entry`, which never returns; also aligns the stack
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; saved++) *--top = nullptr;
  context.stack_pointer = top;
}

}  // namespace rise_emulation

#else

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include <ucontext.h>

namespace rise_emulation {

struct Context {
  ucontext_t state;
};

RISE_CODE void switch_context(Context& from, const Context& to) {
  swapcontext(&from.state, &to.state);
}

RISE_CODE void prepare(Context& context, char* stack, size_t bytes, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = stack;
  context.state.uc_stack.ss_size = bytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

}  // namespace rise_emulation

#endif

namespace rise_emulation {

// One stack per thread, with an unmapped guard page below each that catches overflows.
struct Stacks {
  static constexpr size_t usable = 256 * 1024;
  static constexpr size_t guard = 16 * 1024;
  char* base = nullptr;
  size_t count = 0;

  bool reserve(size_t threads) {
    if (threads <= count) return true;
    release();
    void* memory = mmap(nullptr, threads * (usable + guard), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    base = static_cast<char*>(memory);
    count = threads;
    for (size_t thread = 0; thread < threads; thread++)
      mprotect(base + thread * (usable + guard), guard, PROT_NONE);
    return true;
  }

  RISE_MEMBER char* operator[](size_t thread) const { return base + thread * (usable + guard) + guard; }

  void release() {
    if (base) munmap(base, count * (usable + guard));
    base = nullptr;
    count = 0;
  }
};

}  // namespace rise_emulation
