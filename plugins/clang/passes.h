// The passes between Clang's code and code generation.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace strata_clang {

// vectorize: texts without vectors, whose loops say that they may be.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, bool vectorize);

}  // namespace strata_clang
