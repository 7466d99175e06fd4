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

uint64_t draws();  // of this thread, from any generator, since it began

}  // namespace strata
