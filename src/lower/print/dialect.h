// Dialects of C: what differs between the languages that nests are printed in. A printer names a spelling by its field
// and knows no language. Every dialect must evaluate float arithmetic as written (no contraction, no reassociation).
#pragma once
#include <string>

namespace strata::lower {

struct Dialect {
  const char* name;        // "c99"
  const char* head;        // the first lines of a file: types i8 to f64, `bit` (an int that is 0 or 1), BITS
  const char* function;    // before the name of a kernel, a blank behind it
  const char* memory;      // before the pointer type of an operand
  const char* helper;      // before a helper function
  const char* real[6][2];  // sqrt, floor, ceil, trunc, rint, fma: of f32 and f64
  const char* infinity[2];
  const char* nan[2];
  // Before a loop whose turns may run in any order, together too. Null: the innermost loop is printed once, for any
  // strides; else also for elements that lie side by side (pass/inner_loop.h).
  const char* any_order = nullptr;
  const char* backwards = "";    // the same before one that reads from the end on, and so waits for each turned vector
  const char* each_lane = "";    // before a loop of a few turns, which is to be unrolled
  const char* seldom = nullptr;  // a function of a condition that is seldom true, where compilers are told
  // A function of an address that is read some turns later: what meets in few elements waits for each of them, and a
  // processor that waits does not see far ahead.
  const char* ahead = nullptr;
  // Behind an array's name: that it begins where a line of the cache does, for vectors that are stored and read again
  // wait where they lie across two.
  const char* on_line = "";
  // Between type and name of an output's memory: that no other operand reaches it, but for the same elements of a
  // kernel that reads them at their own place.
  const char* apart = "";
  // Entry points of devices (print/print_entry.h; include/strata/sdk/device.h says what each is).
  const char* entry = "void ";
  bool slots = false;
  const char *first_item = "", *item_step = "", *or_status = "", *each_item = "";
  // Groups of items, which share memory and wait for each other. `group`: how many items, of a device the most that one
  // may have; 0: there are none.
  int group = 0;
  const char *group_entry = "", *local = "", *group_memory = "";
  const char *first_group = "", *group_step = "", *lane = "", *barrier = "";
};

// Portable C99: one lane, standard headers only.
extern const Dialect c99;
// The same with hints to the build's compilers: a loop for elements that lie side by side becomes vectors.
extern const Dialect hinted_c;

// By name; raises Value for one that does not exist, naming those that do.
const Dialect& dialect(const std::string& name);

}  // namespace strata::lower
