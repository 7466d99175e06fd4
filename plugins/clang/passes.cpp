// Analyses are registered one by one: LLVM's own list of passes would bring all of them into the library.
#include "passes.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/DemandedBits.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/LowerExpectIntrinsic.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Vectorize/LoopVectorize.h"

namespace strata_clang {

using namespace llvm;

namespace {

// Combining compares and multiplies halves that were widened as halves, for which these processors have nothing: code
// generation then goes lane by lane. What is behind a fence it takes as it is.
void fence_widened(Module& module) {
  for (Function& function : module)
    for (Instruction& i : make_early_inc_range(instructions(function))) {
      if (!isa<FPExtInst>(i) || !i.getOperand(0)->getType()->getScalarType()->isHalfTy()) continue;
      IRBuilder<> at(i.getNextNode());
      Value* fence = at.CreateArithmeticFence(&i, i.getType());
      i.replaceUsesWithIf(fence, [&](const Use& use) { return use.getUser() != fence; });
    }
}

// Masks that are joined and then turned round: code generation, which would rather turn each round and then join them,
// goes to and fro where they came from numbers and have other uses. As a choice it takes them as they are.
void choose_by_masks(Module& module) {
  for (Function& function : module)
    for (Instruction& i : make_early_inc_range(instructions(function))) {
      Value* mask;
      if (!isa<ZExtInst, SExtInst>(i) || !i.getType()->isVectorTy() ||
          !PatternMatch::match(i.getOperand(0), PatternMatch::m_Not(PatternMatch::m_Value(mask))) ||
          !mask->getType()->getScalarType()->isIntegerTy(1))
        continue;
      Constant* one = isa<ZExtInst>(i) ? ConstantInt::get(i.getType(), 1) : Constant::getAllOnesValue(i.getType());
      IRBuilder<> at(&i);
      i.replaceAllUsesWith(at.CreateSelect(mask, Constant::getNullValue(i.getType()), one));
      i.eraseFromParent();
    }
}

// Unrolls what LLVM's pass would, which takes the cost of a whole body before it asks how many turns there are.
struct UnrollCounted : PassInfoMixin<UnrollCounted> {
  PreservedAnalyses run(Loop& loop, LoopAnalysisManager& manager, LoopStandardAnalysisResults& all,
                        LPMUpdater& updater) {
    if (!all.SE.getSmallConstantMaxTripCount(&loop)) return PreservedAnalyses::all();
    return LoopFullUnrollPass(2, false, false).run(loop, manager, all, updater);
  }
};

}  // namespace

void run_passes(Module& module, TargetMachine& machine, bool vectorize, bool combine) {
  fence_widened(module);
  // The managers end in the reverse order: results of each hold the ones before it.
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  ModuleAnalysisManager modules;
  loops.registerPass([] { return PassInstrumentationAnalysis(); });
  loops.registerPass([&] { return FunctionAnalysisManagerLoopProxy(functions); });
  functions.registerPass([] { return PassInstrumentationAnalysis(); });
  functions.registerPass([] { return AssumptionAnalysis(); });
  functions.registerPass([] { return DominatorTreeAnalysis(); });
  functions.registerPass([] { return PostDominatorTreeAnalysis(); });
  functions.registerPass([] { return LoopAnalysis(); });
  functions.registerPass([] { return ScalarEvolutionAnalysis(); });
  functions.registerPass([] { return BranchProbabilityAnalysis(); });
  functions.registerPass([] { return BlockFrequencyAnalysis(); });
  functions.registerPass([] { return OptimizationRemarkEmitterAnalysis(); });
  functions.registerPass([] { return DemandedBitsAnalysis(); });
  functions.registerPass([] { return LoopAccessAnalysis(); });
  functions.registerPass([] { return ShouldRunExtraVectorPasses(); });
  functions.registerPass([] { return TargetLibraryAnalysis(); });
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  functions.registerPass([] { return BasicAA(); });
  functions.registerPass([] {
    AAManager manager;
    manager.registerFunctionAnalysis<BasicAA>();
    return manager;
  });
  functions.registerPass([&] { return LoopAnalysisManagerFunctionProxy(loops); });
  functions.registerPass([&] { return ModuleAnalysisManagerFunctionProxy(modules); });
  modules.registerPass([] { return PassInstrumentationAnalysis(); });
  modules.registerPass([] { return ProfileSummaryAnalysis(); });
  modules.registerPass([&] { return FunctionAnalysisManagerModuleProxy(functions); });

  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass(false));
  FunctionPassManager each;
  // Conditions that inlining made constant go first, with what they guard: of every load the part for ends of rows.
  each.addPass(LowerExpectIntrinsicPass());
  each.addPass(SROAPass(SROAOptions::ModifyCFG));
  each.addPass(EarlyCSEPass(false));
  each.addPass(SimplifyCFGPass());
  // Accumulators are arrays that loops marked WHOLLY walk over; registers once these are unrolled. The loop over the
  // lanes of a block, of one turn, disappears here too.
  each.addPass(createFunctionToLoopPassAdaptor(UnrollCounted()));
  each.addPass(SROAPass(SROAOptions::ModifyCFG));
  each.addPass(EarlyCSEPass(false));
  each.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass(true, false)));
  each.addPass(SimplifyCFGPass());
  if (combine) each.addPass(InstCombinePass());
  if (vectorize) {
    each.addPass(LoopVectorizePass());
    each.addPass(SimplifyCFGPass());
    each.addPass(InstCombinePass());
  }
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(each)));
  passes.run(module, modules);
  choose_by_masks(module);
}

}  // namespace strata_clang
