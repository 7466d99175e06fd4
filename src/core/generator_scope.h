// For code of the CPU that works in the place of a device: while a scope lives, this thread's default generator of the
// CPU is another one.
#pragma once
#include "core/generator.h"

namespace strata {

class GeneratorScope {
 public:
  explicit GeneratorScope(Generator& instead);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;

 private:
  Generator* before_;
};

uint32_t draws();  // of this thread, from any generator, since it began

// Where this thread's default generator of the CPU is, so that what the thread draws from there can be taken back.
struct DrawMark {
  PhiloxState state;
  uint32_t counters;  // that the thread has drawn from default generators
};
DrawMark draw_mark();
// False, and nothing happens, where another thread drew, too: what it has would be drawn again.
bool rewind_draws(const DrawMark& mark);

// What this thread draws while it lives, so that it can be drawn again.
class DrawTape {
 public:
  struct Drawn {
    bool any = false, torn = false;  // torn: others drew in between, or it is of several generators
    PhiloxState begin;               // a generator that begins here draws it again
  };
  DrawTape();
  ~DrawTape();
  DrawTape(const DrawTape&) = delete;
  const Drawn& drawn() const { return drawn_; }
  static void note(PhiloxState begin, uint64_t counters);  // what was handed out

 private:
  Drawn drawn_;
  PhiloxState end_;
  DrawTape* outer_;
};

}  // namespace strata
