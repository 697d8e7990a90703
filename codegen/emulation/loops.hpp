// Counts the steps of loops in the text that follows, so that one that never ends is stopped, whatever it
// does. A step is counted after the condition has held; `else` keeps those of the text where they belong.
// Included by the emulator after the text's own includes, whose loops nobody counts.

#define for(...)                                                                 \
  for (__VA_ARGS__)                                                              \
    if (!::rise_emulation::loop_step(__func__, __LINE__)) {                      \
    } else
#define while(...) while ((__VA_ARGS__) && ::rise_emulation::loop_step(__func__, __LINE__))
#define goto                                               \
  if (!::rise_emulation::loop_step(__func__, __LINE__)) {  \
  } else                                                   \
    goto
