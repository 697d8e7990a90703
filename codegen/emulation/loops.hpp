// Counts the iterations of loops in the text that follows, so that an endless one is stopped, whatever it
// does. An iteration counts after the condition has held; `else` keeps a following `else` bound correctly.
// The emulator includes this after the text's own includes, whose loops are not counted.

#define for(...)                                                                 \
  for (__VA_ARGS__)                                                              \
    if (!::rise_emulation::loop_step(__func__, __LINE__)) {                      \
    } else
#define while(...) while ((__VA_ARGS__) && ::rise_emulation::loop_step(__func__, __LINE__))
#define goto                                               \
  if (!::rise_emulation::loop_step(__func__, __LINE__)) {  \
  } else                                                   \
    goto
