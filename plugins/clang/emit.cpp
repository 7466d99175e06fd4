#include "emit.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "worker.h"

namespace strata_clang {

namespace {

// AVX-512's logic of three operands under a mask, with one from memory: to bring that one last LLVM 19 reorders the
// operands, and gives two of the orders each other's table of truth.
class Suspect : public llvm::MachineFunctionPass {
 public:
  explicit Suspect(bool& found) : MachineFunctionPass(id), found_(found) {}
  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    const llvm::TargetInstrInfo& names = *function.getSubtarget().getInstrInfo();
    for (const llvm::MachineBasicBlock& block : function)
      for (const llvm::MachineInstr& instruction : block) {
        llvm::StringRef name = names.getName(instruction.getOpcode());
        found_ |= name.starts_with("VPTERNLOG") && (name.ends_with("rmik") || name.ends_with("rmbik"));
      }
    return false;
  }
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  static char id;

 private:
  bool& found_;
};
char Suspect::id = 0;

}  // namespace

bool emit(llvm::Module& module, llvm::LLVMTargetMachine& machine, llvm::SmallVector<char, 0>& object) {
  bool suspect = false;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(functions);
  // Before later passes take the load out again.
  config->insertPass(&llvm::FinalizeISelID, llvm::IdentifyingPassPtr(new Suspect(suspect)));
  if (config->addISelPasses()) throw Fatal{"LLVM selects no instructions for this target"};
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile, functions->getMMI().getContext()))
    throw Fatal{"LLVM emits no objects for this target"};
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return !suspect;
}

}  // namespace strata_clang
