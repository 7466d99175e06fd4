// Code generation to an object in memory.
#pragma once
#include "llvm/ADT/SmallVector.h"

namespace llvm {
class LLVMTargetMachine;
class Module;
}  // namespace llvm

namespace strata_clang {

// False where the code holds an instruction that LLVM is known to get wrong; `object` is then of no use.
bool emit(llvm::Module& module, llvm::LLVMTargetMachine& machine, llvm::SmallVector<char, 0>& object);

}  // namespace strata_clang
