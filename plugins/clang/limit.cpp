#include "limit.h"

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

void count() {
  if (--left >= 0) return;
  left = kUnlimited;  // what is taken down meanwhile may replace, too
  throw Endless{{"LLVM came to no end with this text"}};
}

int64_t most() {
  const char* named = std::getenv("STRATA_CLANG_LIMIT");
  const int64_t n = named ? std::atoll(named) : 0;
  return n > 0 ? n : 1'000'000;
}

}  // namespace

Limit::Limit() {
  static const int64_t n = most();
  left = n;
}
Limit::~Limit() { left = kUnlimited; }

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
