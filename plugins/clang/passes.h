// The passes between Clang's code and code generation.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace strata_clang {

// vectorize: texts without vectors, whose loops say that they may be. combine: simplify
// instructions, which makes code a tenth faster.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, bool vectorize, bool combine);

}  // namespace strata_clang
