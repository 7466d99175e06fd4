#include "escape.h"

#include <cstdint>
#include <cstdlib>

namespace llvm {
class SDNode;
class SDValue;
class SelectionDAG;
class Value;
}  // namespace llvm

namespace strata_clang {

namespace {

constexpr int64_t kUnlimited = INT64_MAX;
thread_local int64_t left = kUnlimited;
thread_local Escape* running = nullptr;

void count() {
  if (--left < 0) Escape::leave("LLVM came to no end with this text", true);
}

int64_t most() {
  const char* named = std::getenv("STRATA_CLANG_LIMIT");
  const int64_t n = named ? std::atoll(named) : 0;
  return n > 0 ? n : 1'000'000;
}

}  // namespace

void Escape::leave(const char* why, bool endless) {
  Escape* way = running;
  running = nullptr;
  left = kUnlimited;
  if (!way) return;
  way->why_ = why;
  way->endless_ = endless;
  // Not an exception: Clang's and LLVM's frames have no handlers, so what is on them would stay linked to what
  // destructors of ours take down.
  std::longjmp(way->place_, 1);
}

bool Escape::run(void (*work)(void*), void* on) {
  static const int64_t n = most();
  if (setjmp(place_)) return false;
  running = this;
  left = n;
  try {
    work(on);
  } catch (...) {
    running = nullptr;
    left = kUnlimited;
    throw;
  }
  running = nullptr;
  left = kUnlimited;
  return true;
}

// Each rule ends by replacing what it was for. The linker gives these calls to what is here (--wrap).
#define COUNTED(NAME, FROM, TO)                     \
  extern "C" void __real_##NAME(FROM, TO);          \
  extern "C" void __wrap_##NAME(FROM from, TO to) { \
    count();                                        \
    __real_##NAME(from, to);                        \
  }
#define COUNTED_OF(NAME, SELF, FROM, TO)                       \
  extern "C" void __real_##NAME(SELF, FROM, TO);               \
  extern "C" void __wrap_##NAME(SELF self, FROM from, TO to) { \
    count();                                                   \
    __real_##NAME(self, from, to);                             \
  }
COUNTED_OF(_ZN4llvm12SelectionDAG18ReplaceAllUsesWithEPNS_6SDNodeES2_, llvm::SelectionDAG*, llvm::SDNode*,
           llvm::SDNode*)
COUNTED_OF(_ZN4llvm12SelectionDAG18ReplaceAllUsesWithEPNS_6SDNodeEPKNS_7SDValueE, llvm::SelectionDAG*, llvm::SDNode*,
           const llvm::SDValue*)
COUNTED(_ZN4llvm5Value18replaceAllUsesWithEPS0_, llvm::Value*, llvm::Value*)

}  // namespace strata_clang
