// The passes between Clang's code and code generation.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace strata_clang {

void run_passes(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace strata_clang
