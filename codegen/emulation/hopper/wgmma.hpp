// Products by a warpgroup. A wgmma is checked when it is issued, and executed when it is waited for: until
// then nobody may touch its accumulators or its operands in registers, or write its operands in shared
// memory.
#pragma once

#include "descriptor.hpp"

struct tf32;
struct e4m3;

namespace rise_emulation {

// The representation of a type in memory, and the number that it denotes to the tensor cores.
template <class T>
struct Tensor {
  using Storage = T;
  using Number = float;
  static float number(T value) { return value; }
};
template <>
struct Tensor<tf32> {
  using Storage = float;
  using Number = float;
  static float number(float value) { return bit_cast<float>(bit_cast<uint32_t>(value) & 0xffffe000u); }
  static float number(tf32 value) { return number(value.number); }
};
template <>
struct Tensor<e4m3> {
  using Storage = unsigned char;
  using Number = float;
  static float number(unsigned char bits) {
    float sign = bits & 0x80 ? -1.0f : 1.0f;
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    if (exponent == 15 && fraction == 7) return __builtin_nanf("");
    if (exponent == 0) return sign * static_cast<float>(fraction) * 0x1p-9f;
    return sign * __builtin_ldexpf(1.0f + static_cast<float>(fraction) / 8, exponent - 7);
  }
};
template <>
struct Tensor<signed char> {
  using Storage = signed char;
  using Number = int;
  static int number(signed char value) { return value; }
};

template <int n, class T, class D, Major a, Major b>
constexpr bool wgmma_exists =
    n >= 8 && n <= 256 && n % 8 == 0 &&
    (std::is_same<T, signed char>::value ? std::is_same<D, int>::value && (n <= 32 || n % 16 == 0) && n != 40
     : std::is_same<T, half>::value || std::is_same<T, e4m3>::value
         ? std::is_same<D, float>::value || std::is_same<D, half>::value
         : std::is_same<D, float>::value) &&
    (sizeof(typename Tensor<T>::Storage) == 2 || (a == Major::K && b == Major::K));

// A pending wgmma. Its registers have the same offset in the stacks of all threads.
struct Flight {
  void (*perform)(const Flight& flight, int first);
  Descriptor a, b;
  ptrdiff_t d, registers;  // offsets in a stack; -1: A is in shared memory
  ptrdiff_t d_end, registers_end;
  bool scale;
  int n, line;
  unsigned commit;
};

constexpr int most_flights = 128;

struct Flights {
  Flight queue[most_flights];
  int count;
  unsigned committed;
  int32_t done;  // counts the events of this warpgroup as an agent
  uint64_t version;  // of the clocks, when the common knowledge of the threads was computed
};

RISE_STATE Flights flights[most_cluster][most_groups];

RISE_CODE int running_group() { return machine.current / threads_per_group; }
RISE_CODE Flights& own_flights() { return flights[block_rank][running_group()]; }

RISE_CODE ptrdiff_t place_in_stack(const void* variable, int thread) {
  return static_cast<const char*>(variable) - machine.stacks[static_cast<size_t>(thread)];
}

template <class Array>
static inline Array& in_stack(ptrdiff_t place, int thread) {
  return *reinterpret_cast<Array*>(machine.stacks[static_cast<size_t>(thread)] + place);
}

RISE_CODE bool in_flight(const Flights& own, ptrdiff_t place) {
  for (int i = 0; i < own.count; i++)
    if (own.queue[i].d == place || own.queue[i].registers == place) return true;
  return false;
}

// Whether a pending wgmma uses any of the bytes.
RISE_CODE bool works_on(const Flights& own, ptrdiff_t place, size_t bytes) {
  ptrdiff_t end = place + static_cast<ptrdiff_t>(bytes);
  for (int i = 0; i < own.count; i++) {
    const Flight& flight = own.queue[i];
    if ((flight.d < end && place < flight.d_end) || (flight.registers < end && place < flight.registers_end))
      return true;
  }
  return false;
}

// --- operands in shared memory ----------------------------------------------------------------

// What every thread of the running warpgroup knows.
RISE_CODE int32_t* common_knowledge() {
  Flights& own = own_flights();
  int32_t* row = common_row(block_rank, running_group());
  if (own.version == clocks.version) return row;
  int first = first_of_group();
  copy_row(row, clocks.row(clocks.thread(block_rank, first)));
  for (int i = 1; i < threads_per_group; i++)
    forget_more_than(row, clocks.row(clocks.thread(block_rank, first + i)));
  own.version = clocks.version;
  return row;
}

RISE_CODE Actor tensor_cores(int line) {
  int32_t* known = common_knowledge();
  Flights& own = own_flights();
  return {known, known + clocks.agents, static_cast<uint16_t>(clocks.group(block_rank, running_group())),
          own.done + 1, line, running_agent()};
}

RISE_CODE void hold_operand(const Operand& operand, int rows, int size, const char* name, int line) {
  Actor actor = tensor_cores(line);
  for_chunks(operand, rows, size, [&](int64_t address, int row, int k) {
    if (address + 16 > shared_bytes.bytes)
      RISE_FAULT(ReadOutOfBounds, line, "wgmma reads %s, row %d, k %d at byte %lld, outside shared memory",
                 name, row, k, static_cast<long long>(address));
    for_bytes(address, 16, shared_bytes, [&](int64_t byte, Cell& cell) {
      check_written(actor, shared_bytes, byte, cell);
      check_no_barrier(actor, shared_bytes, byte, cell);
      check_write_before(actor, shared_bytes, byte, cell, "multiplies");
      if (cell.layout != unknown_layout && cell.layout != operand.span)
        RISE_FAULT(IllegalOperand, line,
                   "the descriptor of %s has a swizzle of %d bytes, but the bulk copy into byte %lld (line %d) "
                   "had one of %d", name, operand.span, static_cast<long long>(byte), cell.write.line,
                   cell.layout);
      note_read_by(actor, cell);
      cell.being_read++;
    });
  });
}

RISE_CODE void release_operand(const Operand& operand, int rows, int size, int line) {
  Actor actor = tensor_cores(line);
  for_chunks(operand, rows, size, [&](int64_t address, int, int) {
    for_bytes(address, 16, shared_bytes, [&](int64_t, Cell& cell) {
      cell.being_read--;
      note_read_by(actor, cell);
    });
  });
}

// The operand's numbers, `steps` for each row.
template <class T>
static inline void read_operand(const Operand& operand, int rows, typename Tensor<T>::Number* numbers) {
  using Storage = typename Tensor<T>::Storage;
  constexpr int size = sizeof(Storage), steps = 32 / size, elements = 16 / size;
  for_chunks(operand, rows, size, [&](int64_t address, int row, int k) {
    Storage chunk[elements];
    __builtin_memcpy(chunk, shared_bytes.data + address, 16);
    for (int e = 0; e < elements; e++) {
      int place = operand.major == Major::K ? row * steps + k + e : (row + e) * steps + k;
      numbers[place] = Tensor<T>::number(chunk[e]);
    }
  });
}

// --- operands in registers --------------------------------------------------------------------

RISE_COLD void wgmma_fence_missing(const char* what, int thread, int line) {
  RISE_FAULT(FenceMissing, line, "wgmma_fence is missing: %s %s since the last one",
             place_name(thread).characters, what);
}

template <class Array>
static inline void hold_registers(ptrdiff_t place, int count, bool is_read, bool shared_with_others, int line) {
  int first = first_of_group();
  for (int thread = first; thread < first + threads_per_group; thread++) {
    Array& array = in_stack<Array>(place, thread);
    Mark now = running_block().marks[thread];
    if (now == first_mark) wgmma_fence_missing("has executed none", thread, line);
    for (int i = 0; i < count; i++) {
      Mark mark = array.written[i];
      if (mark == held && !shared_with_others)
        RISE_FAULT(RegistersInUse, line, "registers of a pending wgmma are used by another one of a different "
                   "shape");
      if (mark == now) wgmma_fence_missing("wrote registers of this wgmma", thread, line);
      if (mark == unwritten && is_read)
        RISE_FAULT(UninitialisedLocal, line, "wgmma reads register %d of %s before it is written", i,
                   place_name(thread).characters);
    }
  }
  for (int thread = first; thread < first + threads_per_group; thread++)
    for (int i = 0; i < count; i++) in_stack<Array>(place, thread).written[i] = held;
}

RISE_CODE int accumulator_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + (i >> 1 & 1) * 8;
}
RISE_CODE int accumulator_column(int thread, int i) { return (i >> 2) * 8 + thread % 4 * 2 + (i & 1); }

// A in registers: `together` elements of a row in each of four registers.
template <class T, class Array>
static inline void read_registers(ptrdiff_t place, int first, typename Tensor<T>::Number* numbers) {
  constexpr int together = 4 / sizeof(typename Tensor<T>::Storage), steps = 8 * together;
  for (int thread = 0; thread < threads_per_group; thread++)
    for (int i = 0; i < 4 * together; i++) {
      int number = i / together;
      int row = thread / 32 * 16 + thread % 32 / 4 + (number & 1) * 8;
      int k = thread % 4 * together + i % together + (number >> 1) * 4 * together;
      numbers[row * steps + k] = Tensor<T>::number(in_stack<Array>(place, first + thread).values[i]);
    }
}

// --- the product ------------------------------------------------------------------------------

template <int n, class T, Major a_major, Major b_major, class D, class Accumulators, class Registers>
struct Wgmma {
  static void perform(const Flight& flight, int first) {
    using Number = typename Tensor<T>::Number;
    // sums of integers wrap when they are converted to results
    using Sum = typename std::conditional<std::is_same<Number, int>::value, int64_t, Number>::type;
    constexpr int size = sizeof(typename Tensor<T>::Storage), steps = 32 / size;
    static Number a[64 * steps], b[n * steps];
    Operand right(flight.b, b_major);
    read_operand<T>(right, n, b);
    if constexpr (std::is_void<Registers>::value) {
      Operand left(flight.a, a_major);
      read_operand<T>(left, 64, a);
      release_operand(left, 64, size, flight.line);
    } else {
      read_registers<T, Registers>(flight.registers, first, a);
    }
    release_operand(right, n, size, flight.line);
    for (int thread = 0; thread < threads_per_group; thread++) {
      Accumulators& d = in_stack<Accumulators>(flight.d, first + thread);
      for (int i = 0; i < n / 2; i++) {
        const Number* row = a + accumulator_row(thread, i) * steps;
        const Number* column = b + accumulator_column(thread, i) * steps;
        Sum sum = flight.scale ? static_cast<Sum>(d.values[i]) : Sum(0);
        for (int k = 0; k < steps; k++) sum += row[k] * column[k];
        d.values[i] = D(sum);
      }
    }
  }

  static void issue(void** operands, int line);
};

struct Issue {
  ptrdiff_t d, registers;
  Descriptor a, b;
  bool scale;
};

RISE_CODE const Issue& common_issue(void** operands, int line) {
  const Issue& first = *static_cast<const Issue*>(operands[0]);
  for (int i = 1; i < threads_per_group; i++) {
    const Issue& own = *static_cast<const Issue*>(operands[i]);
    if (own.d != first.d || own.registers != first.registers || own.a != first.a || own.b != first.b ||
        own.scale != first.scale)
      RISE_FAULT(DivergentCollective, line,
                 "divergent collective: %s passes other operands to wgmma than %s of its warpgroup",
                 place_name(first_of_group() + i).characters, thread_name(first_of_group()).characters);
  }
  return first;
}

template <int n, class T, Major a_major, Major b_major, class D, class Accumulators, class Registers>
void Wgmma<n, T, a_major, b_major, D, Accumulators, Registers>::issue(void** operands, int line) {
  constexpr int size = sizeof(typename Tensor<T>::Storage);
  const Issue& issue = common_issue(operands, line);
  Flights& own = own_flights();
  if (own.count == most_flights)
    RISE_FAULT(LaunchLimits, line, "more than %d wgmma of a warpgroup are under way", most_flights);
  // registers that no wait has named may belong to a wgmma that is complete
  bool continues = !works_on(own, issue.d, sizeof(Accumulators));
  ptrdiff_t d_end = issue.d + static_cast<ptrdiff_t>(sizeof(Accumulators)), registers_end = -1;
  for (int i = 0; i < own.count; i++)
    continues = continues || (own.queue[i].d == issue.d && own.queue[i].n == n);
  hold_registers<Accumulators>(issue.d, n / 2, issue.scale, continues, line);
  check_descriptor(issue.b, line);
  hold_operand(Operand(issue.b, b_major), n, size, "B", line);
  if constexpr (std::is_void<Registers>::value) {
    check_descriptor(issue.a, line);
    hold_operand(Operand(issue.a, a_major), 64, size, "A", line);
  } else {
    registers_end = issue.registers + static_cast<ptrdiff_t>(sizeof(Registers));
    bool over = !works_on(own, issue.registers, sizeof(Registers));
    bool again = issue.registers != issue.d && (over || in_flight(own, issue.registers));
    hold_registers<Registers>(issue.registers, 16 / size, true, again, line);
  }
  products[block_rank][running_group()].issued++;
  own.queue[own.count++] = {perform, issue.a, issue.b, issue.d, issue.registers, d_end, registers_end,
                            issue.scale, n, line, own.committed};
}

// the usual sums of a thread; B has 64 columns
#ifdef RISE_INSTANCE
using UsualSums = LocalArray<float, 32, UninitialisedLocal>;
RISE_INSTANCE Wgmma<64, half, Major::K, Major::K, float, UsualSums, void>;
RISE_INSTANCE Wgmma<64, half, Major::K, Major::MN, float, UsualSums, void>;
RISE_INSTANCE Wgmma<64, half, Major::MN, Major::K, float, UsualSums, void>;
RISE_INSTANCE Wgmma<64, half, Major::MN, Major::MN, float, UsualSums, void>;
#endif

template <int n, class T, Major a_major = Major::K, Major b_major = Major::K, class D, int count, Fault fault>
static inline void wgmma(LocalArray<D, count, fault>& d, Descriptor a, Descriptor b, bool scale = true,
                         int line = __builtin_LINE()) {
  static_assert(wgmma_exists<n, T, D, a_major, b_major>, "the hardware does not have this wgmma");
  static_assert(count == n / 2, "64 x n accumulators are n / 2 for each thread");
  Issue issue{place_in_stack(&d, machine.current), -1, a, b, scale};
  using Operation = Wgmma<n, T, a_major, b_major, D, LocalArray<D, count, fault>, void>;
  meet_group("wgmma", line, Operation::issue, &issue);
}

// A in registers: along k, in the layout of accumulators.
template <int n, class T, Major b_major = Major::K, class D, int count, Fault fault, class R, int length,
          Fault other>
static inline void wgmma(LocalArray<D, count, fault>& d, LocalArray<R, length, other>& a, Descriptor b,
                         bool scale = true, int line = __builtin_LINE()) {
  static_assert(wgmma_exists<n, T, D, Major::K, b_major>, "the hardware does not have this wgmma");
  static_assert((std::is_same<R, typename Tensor<T>::Storage>::value || std::is_same<R, T>::value) &&
                    length * sizeof(R) == 16,
                "a thread has 16 bytes of A");
  static_assert(count == n / 2, "64 x n accumulators are n / 2 for each thread");
  Issue issue{place_in_stack(&d, machine.current), place_in_stack(&a, machine.current), 0, b, scale};
  using Operation = Wgmma<n, T, Major::K, b_major, D, LocalArray<D, count, fault>, LocalArray<R, length, other>>;
  meet_group("wgmma", line, Operation::issue, &issue);
}

// --- fence, commit, wait ----------------------------------------------------------------------

RISE_CODE void fence_group(void**, int) {
  int first = first_of_group();
  for (int thread = first; thread < first + threads_per_group; thread++) {
    Mark& mark = running_block().marks[thread];
    mark = mark == 0xffff ? first_mark + 1 : static_cast<Mark>(mark + 1);
  }
}

RISE_CODE void commit_group(void**, int) { own_flights().committed++; }

RISE_CODE void complete_all_but(int pending) {
  Flights& own = own_flights();
  int first = first_of_group(), left = 0;
  for (int i = 0; i < own.count; i++) {
    if (own.queue[i].commit + pending < own.committed)
      own.queue[i].perform(own.queue[i], first);
    else
      own.queue[left++] = own.queue[i];
  }
  unsigned over = static_cast<unsigned>(own.count - left);
  own.count = left;
  own.done++;
  note_products_over(products[block_rank][running_group()], over, own.done);
  int agent = clocks.group(block_rank, running_group());
  for (int thread = first; thread < first + threads_per_group; thread++)
    clocks.row(clocks.thread(block_rank, thread))[agent] = own.done;
  clocks.version++;
}

template <int pending>
static inline void complete_flights(void**, int) {
  complete_all_but(pending);
}

// Returns registers to the thread, unless a pending wgmma still uses them.
template <class Array>
static inline void hand_back(Array& array) {
  if (in_flight(own_flights(), place_in_stack(&array, machine.current))) return;
  for (Mark& mark : array.written)
    if (mark == held) mark = settled;
}

// Naming registers in a fence counts as a use.
template <class Array>
static inline void check_free(const Array& array, int line) {
  for (Mark mark : array.written)
    if (mark == held) element_is_held("names in wgmma_fence", 0, line);
}

// Orders the threads' accesses to the registers before the following wgmmas.
template <class... Arrays>
static inline void wgmma_fence_of(int line, const Arrays&... arrays) {
  (check_free(arrays, line), ...);
  meet_group("wgmma_fence", line, fence_group, nullptr);
  written_mark = running_block().marks[machine.current];
}

template <int pending, class... Arrays>
static inline void wgmma_wait_of(int line, Arrays&... arrays) {
  meet_group("wgmma_wait", line, complete_flights<pending>, nullptr);
  (hand_back(arrays), ...);
}

// Naming registers before a fence counts as a use, too.
template <class A>
static inline void pin_registers(A& a, int line = __builtin_LINE()) {
  check_free(a, line);
}

RISE_CODE void wgmma_fence(int line = __builtin_LINE()) { wgmma_fence_of(line); }
template <class A>
static inline void wgmma_fence(A& a, int line = __builtin_LINE()) {
  wgmma_fence_of(line, a);
}
template <class A, class B>
static inline void wgmma_fence(A& a, B& b, int line = __builtin_LINE()) {
  wgmma_fence_of(line, a, b);
}
template <class A, class B, class C>
static inline void wgmma_fence(A& a, B& b, C& c, int line = __builtin_LINE()) {
  wgmma_fence_of(line, a, b, c);
}
template <class A, class B, class C, class D>
static inline void wgmma_fence(A& a, B& b, C& c, D& d, int line = __builtin_LINE()) {
  wgmma_fence_of(line, a, b, c, d);
}

template <int pending>
static inline void wgmma_wait(int line = __builtin_LINE()) {
  wgmma_wait_of<pending>(line);
}
template <int pending, class A>
static inline void wgmma_wait(A& a, int line = __builtin_LINE()) {
  wgmma_wait_of<pending>(line, a);
}
template <int pending, class A, class B>
static inline void wgmma_wait(A& a, B& b, int line = __builtin_LINE()) {
  wgmma_wait_of<pending>(line, a, b);
}
template <int pending, class A, class B, class C>
static inline void wgmma_wait(A& a, B& b, C& c, int line = __builtin_LINE()) {
  wgmma_wait_of<pending>(line, a, b, c);
}
template <int pending, class A, class B, class C, class D>
static inline void wgmma_wait(A& a, B& b, C& c, D& d, int line = __builtin_LINE()) {
  wgmma_wait_of<pending>(line, a, b, c, d);
}

RISE_CODE void wgmma_commit(int line = __builtin_LINE()) {
  meet_group("wgmma_commit", line, commit_group, nullptr);
}

RISE_CODE void check_flights_at_end() {
  for (int rank = 0; rank < block_count; rank++)
    for (int group = 0; group < clocks.groups; group++)
      if (flights[rank][group].count)
        return complain(EarlyExit, flights[rank][group].queue[0].line,
                        "warpgroup %d ends without wgmma_wait for its wgmma (line %d)", group,
                        flights[rank][group].queue[0].line);
}

}  // namespace rise_emulation
