// Elements of checked arrays in expressions: `a[i] * 2 + a[j]` reads, `a[i] += 1` reads and writes.
// An accessor stands for one element; every operator first reads the value of its accessors. Operands
// are passed by value, so that the compiler notices the use of an uninitialised variable.
#pragma once

#include <type_traits>

#include "machine.hpp"

struct __half;
struct __nv_bfloat16;
struct tf32;

namespace rise_emulation {

struct Accessor {};

template <class A>
constexpr bool is_accessor = std::is_base_of<Accessor, A>::value;

// Qualified, so that it is not confused with a `value` in the kernel's text.
template <class A>
static inline auto value(A operand) {
  if constexpr (is_accessor<A>) {
    return operand.read();
  } else {
    return operand;
  }
}

// An index, with the line of the CUDA text in which it is used.
struct Index {
  int64_t value;
  int line;

  template <class I>
  Index(const I& index, int line = __builtin_LINE())
      : value(static_cast<int64_t>(::rise_emulation::value(index))), line(line) {}
};

// The operators shared by all accessors. `Derived` has `Value read() const` and
// `void write(Value) const`.
template <class Derived, class Value>
struct Element : Accessor {
  // The value of an element of class type in arithmetic contexts; the class itself has a constructor from
  // accessors.
  using Number = typename std::conditional<std::is_arithmetic<Value>::value, Value, float>::type;

  const Derived& self() const { return static_cast<const Derived&>(*this); }

  operator Number() const { return static_cast<Number>(self().read()); }

  template <class V>
  const Derived& assign(V operand) const {
    Value converted = ::rise_emulation::value(operand);
    self().write(converted);
    return self();
  }

#define RISE_ASSIGNMENT(operation)                                           \
  template <class V>                                                         \
  const Derived& operator operation##=(V operand) const {                    \
    return assign(self().read() operation ::rise_emulation::value(operand)); \
  }
  RISE_ASSIGNMENT(+)
  RISE_ASSIGNMENT(-)
  RISE_ASSIGNMENT(*)
  RISE_ASSIGNMENT(/)
  RISE_ASSIGNMENT(%)
  RISE_ASSIGNMENT(&)
  RISE_ASSIGNMENT(|)
  RISE_ASSIGNMENT(^)
  RISE_ASSIGNMENT(<<)
  RISE_ASSIGNMENT(>>)
#undef RISE_ASSIGNMENT
};

template <class A, class B>
using IfAccessor = typename std::enable_if<is_accessor<A> || is_accessor<B>, int>::type;

#define RISE_OPERATOR(operation)                                                   \
  template <class A, class B, IfAccessor<A, B> = 0>                                \
  static inline auto operator operation(A left, B right) {                         \
    return ::rise_emulation::value(left) operation ::rise_emulation::value(right); \
  }

RISE_OPERATOR(+)
RISE_OPERATOR(-)
RISE_OPERATOR(*)
RISE_OPERATOR(/)
RISE_OPERATOR(%)
RISE_OPERATOR(<)
RISE_OPERATOR(>)
RISE_OPERATOR(<=)
RISE_OPERATOR(>=)
RISE_OPERATOR(==)
RISE_OPERATOR(!=)
RISE_OPERATOR(&)
RISE_OPERATOR(|)
RISE_OPERATOR(^)
RISE_OPERATOR(<<)
RISE_OPERATOR(>>)
#undef RISE_OPERATOR

template <class A, IfAccessor<A, A> = 0>
static inline auto operator-(A operand) {
  return -::rise_emulation::value(operand);
}

// The types of elements: numbers, the two classes of 16-bit floats, and tf32.
template <class T>
constexpr bool is_number = std::is_arithmetic<T>::value || std::is_same<T, __half>::value ||
                           std::is_same<T, __nv_bfloat16>::value || std::is_same<T, tf32>::value;

template <class T, Fault uninitialised>
struct LocalElement;

// The state of an element of a thread-private array. Written elements record the time of the write for
// instructions that need it (hopper/wgmma.hpp).
using Mark = uint16_t;
constexpr Mark unwritten = 0, settled = 1, held = 2, first_mark = 3;
RISE_STATE Mark written_mark RISE_INITIALLY(settled);

RISE_COLD void element_is_held(const char* verb, int index, int line) {
  RISE_FAULT(RegistersInUse, line, "%s %s element %d of an array that a wgmma under way uses",
             place_name(machine.current).characters, verb, index);
}

// A pointer into a thread-private array.
template <class T, Fault uninitialised>
struct LocalPointer {
  T* place;
  Mark* written;
  int index, length;

  LocalElement<T, uninitialised> at(int offset, int line) const {
    if (index + offset < 0 || index + offset >= length)
      RISE_FAULT(WriteOutOfBounds, line, "%s uses element %d of a local array of %d",
                 place_name(machine.current).characters, index + offset, length);
    return {place + offset, written + offset, index + offset, length, line};
  }
};

// One number of a thread-private array, and whether it has been written.
template <class T, Fault uninitialised>
struct LocalElement : Element<LocalElement<T, uninitialised>, T> {
  T* place;
  Mark* written;
  int index, length, line;

  LocalElement(T* place, Mark* written, int index, int length, int line)
      : place(place), written(written), index(index), length(length), line(line) {}
  LocalElement(const LocalElement&) = default;

  T read() const {
    if (*written == held) element_is_held("reads", index, line);
    if (*written == unwritten)
      RISE_FAULT(uninitialised, line, "%s reads element %d of %s of %d before it is written",
                 place_name(machine.current).characters, index,
                 uninitialised == UninitialisedFragment ? "a fragment" : "a local array", length);
    return *place;
  }

  void write(T number) const {
    if (*written == held) element_is_held("writes", index, line);
    *place = number;
    *written = written_mark;
  }

  template <class V>
  const LocalElement& operator=(V operand) const {
    return this->assign(operand);
  }
  const LocalElement& operator=(const LocalElement& operand) const {
    return this->assign(operand);
  }
  LocalPointer<T, uninitialised> operator&() const { return {place, written, index, length}; }
};

RISE_CODE void check_local(const Index& index, int length) {
  machine.threads[machine.current].line = index.line;
  if (index.value < 0 || index.value >= length)
    RISE_FAULT(WriteOutOfBounds, index.line, "%s uses element %lld of a local array of %d",
               place_name(machine.current).characters, static_cast<long long>(index.value),
               length);
}

template <class T, int count, Fault uninitialised, bool number = is_number<T>>
struct LocalArray {
  T values[count];
  Mark written[count];

  LocalArray() : written() {}
  template <class First, class... Rest,
            typename std::enable_if<std::is_convertible<First, T>::value, int>::type = 0>
  LocalArray(First first, Rest... rest)
      : values{static_cast<T>(first), static_cast<T>(rest)...} {
    static_assert(sizeof...(rest) < count, "more elements than the array has");
    for (int i = 0; i < count; i++) written[i] = written_mark;
  }

  LocalElement<T, uninitialised> operator[](Index index) {
    check_local(index, count);
    return {values + index.value, written + index.value, static_cast<int>(index.value), count,
            index.line};
  }
  T operator[](Index index) const {
    return (*const_cast<LocalArray*>(this))[index].read();
  }
};

// Arrays of fragments and of arrays: their elements make the checks.
template <class T, int count, Fault uninitialised>
struct LocalArray<T, count, uninitialised, false> {
  T values[count];

  T& operator[](Index index) {
    check_local(index, count);
    return values[index.value];
  }
  const T& operator[](Index index) const {
    check_local(index, count);
    return values[index.value];
  }
};

template <class T, int length>
using Local = LocalArray<T, length, UninitialisedLocal>;

}  // namespace rise_emulation
