// One compilation at a time in a context of its own. What can be kept between texts is kept: making it anew costs as
// much as a small kernel.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "clang/Basic/FileManager.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Target/TargetMachine.h"

namespace strata_clang {

// Thrown by LLVM's handler of fatal errors, which must not return: nothing ends the process.
struct Fatal {
  std::string reason;
};
// A text that is not right C; `what` has the lines of compiler.h.
struct WrongText {
  std::string what;
};

class Worker {
 public:
  Worker(uint32_t isa, bool lines);
  ~Worker();
  // Nothing where LLVM's code for this instruction set cannot be trusted (emit.h): the set below gives the same bits.
  // Raises WrongText, Fatal or std::bad_alloc; after Fatal the worker must not be used again.
  std::optional<llvm::SmallVector<char, 0>> compile(llvm::StringRef text);

 private:
  std::optional<llvm::SmallVector<char, 0>> attempt(llvm::StringRef text, bool combine);

  uint32_t isa_;
  std::shared_ptr<clang::CompilerInvocation> invocation_;
  llvm::IntrusiveRefCntPtr<clang::FileManager> files_;
  std::unique_ptr<llvm::LLVMTargetMachine> machine_;
};

// Once in the process: registers the one target and trims its code generation.
void start();

}  // namespace strata_clang
