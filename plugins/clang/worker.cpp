// Text to object, in memory: a front end without actions or a driver, three passes over Clang's code (inlining what
// must be inlined, values in registers, common subexpressions), code generation without what kernels do not gain from.
#include "worker.h"

#include "escape.h"

#include <mutex>

#include "clang/AST/ASTContext.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/CodeGen/ModuleBuilder.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Parse/ParseAST.h"
#include "clang/Sema/Sema.h"
#include "emit.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "passes.h"

namespace strata_clang {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
constexpr const char* kCpu[] = {"x86-64", "x86-64-v3", "x86-64-v4"};

// Errors as "LINE:COLUMN: error: what"; lines are those that `#line` gives.
class Errors : public clang::DiagnosticConsumer {
 public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    clang::DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level < clang::DiagnosticsEngine::Error) return;
    llvm::SmallString<128> message;
    info.FormatDiagnostic(message);
    llvm::raw_string_ostream out(text);
    if (info.hasSourceManager() && info.getLocation().isValid()) {
      clang::PresumedLoc at = info.getSourceManager().getPresumedLoc(info.getLocation());
      if (at.isValid()) out << at.getLine() << ':' << at.getColumn() << ": ";
    }
    out << "error: " << message << '\n';
  }
  std::string text;
};

// LLVM's own errors, which would otherwise end the process.
class BackEndErrors : public llvm::DiagnosticHandler {
 public:
  explicit BackEndErrors(std::string& text) : text_(text) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream out(text_);
      llvm::DiagnosticPrinterRawOStream printer(out);
      out << "error: ";
      info.print(printer);
      out << '\n';
    }
    return true;
  }

 private:
  std::string& text_;
};

void fatal(void*, const char* reason, bool) {
  Escape::leave(reason, false);
  throw Fatal{reason};
}

}  // namespace

void start() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    llvm::install_fatal_error_handler(fatal);
    // The printer has done this work already: what it prints is in the order that it wants. Half of the time of code
    // generation went here for code of the same speed. The options are this library's own copy of LLVM's.
    const char* options[] = {"strata",
                             "-enable-misched=0",
                             "-disable-lsr",
                             "-disable-cgp",
                             "-disable-machine-sink",
                             "-disable-machine-cse",
                             "-disable-copyprop",
                             "-disable-branch-fold",
                             "-disable-tail-duplicate",
                             "-disable-early-taildup",
                             "-disable-post-ra",
                             "-disable-x86-domain-reassignment"};
    llvm::cl::ParseCommandLineOptions(std::size(options), options);
  });
}

Worker::Worker(uint32_t isa, bool lines) : isa_(isa) {
  const char* cpu = kCpu[isa];
  std::vector<const char*> args = {"-triple",
                                   kTriple,
                                   "-target-cpu",
                                   cpu,
                                   "-tune-cpu",
                                   "generic",
                                   "-emit-obj",
                                   "-x",
                                   "c",
                                   "-std=gnu11",
                                   "-O2",
                                   "-disable-llvm-passes",
                                   "-disable-lifetime-markers",
                                   "-w",
                                   "-nostdsysteminc",
                                   "-nobuiltininc",
                                   "-ffp-contract=off",
                                   "-fwrapv",
                                   "-relaxed-aliasing",
                                   "-mrelocation-model",
                                   "pic",
                                   "-pic-level",
                                   "2",
                                   "-fvisibility=hidden",
                                   "-mframe-pointer=none",
                                   "-main-file-name",
                                   "kernel.c"};
  if (isa == 2) args.push_back("-mprefer-vector-width=512");
  // What is inlined has the line of its call: that is the user's, and helpers are not.
  if (lines)
    args.insert(args.end(), {"-debug-info-kind=line-tables-only", "-dwarf-version=4", "-debugger-tuning=gdb",
                             "-gno-inline-line-tables"});
  args.push_back("kernel.c");
  clang::IgnoringDiagConsumer ignore;
  clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs, new clang::DiagnosticOptions, &ignore, false);
  invocation_ = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation_, args, diagnostics))
    throw Fatal{"Clang refused its flags"};
  // No file is there: a text that includes one is wrong.
  files_ = new clang::FileManager(clang::FileSystemOptions(), new llvm::vfs::InMemoryFileSystem);

  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, why);
  if (!target) throw Fatal{why};
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.NoTrappingFPMath = true;
  machine_.reset(static_cast<llvm::LLVMTargetMachine*>(target->createTargetMachine(
      kTriple, cpu, "", options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default)));
  if (!machine_) throw Fatal{"LLVM made no code generator for " + std::string(cpu)};
}

Worker::~Worker() = default;

std::optional<llvm::SmallVector<char, 0>> Worker::compile(llvm::StringRef text) {
  // Most often it is a choice of masks that leads there, and combining makes it.
  if (auto object = attempt(text, true)) return object;
  return attempt(text, false);
}

std::optional<llvm::SmallVector<char, 0>> Worker::attempt(llvm::StringRef text, bool combine) {
  Errors errors;
  std::string back_end;
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);  // nobody reads the text of what is compiled
  context.setDiagnosticHandler(std::make_unique<BackEndErrors>(back_end));
  std::unique_ptr<llvm::Module> module;
  {
    clang::CompilerInstance clang;
    clang.setInvocation(invocation_);
    clang.createDiagnostics(&errors, false);
    clang.setFileManager(files_.get());
    clang.createSourceManager(*files_);
    if (!clang.createTarget()) throw WrongText{errors.text};
    clang::SourceManager& sources = clang.getSourceManager();
    sources.setMainFileID(sources.createFileID(llvm::MemoryBuffer::getMemBuffer(text, "kernel.c")));
    clang.createPreprocessor(clang::TU_Complete);
    clang::Preprocessor& preprocessor = clang.getPreprocessor();
    preprocessor.getBuiltinInfo().initializeBuiltins(preprocessor.getIdentifierTable(), clang.getLangOpts());
    clang.createASTContext();
    clang::CodeGenerator* generator = clang::CreateLLVMCodeGen(
        clang.getDiagnostics(), "kernel.c", files_->getVirtualFileSystemPtr(), clang.getHeaderSearchOpts(),
        clang.getPreprocessorOpts(), clang.getCodeGenOpts(), context);
    clang.setASTConsumer(std::unique_ptr<clang::ASTConsumer>(generator));
    clang.createSema(clang::TU_Complete, nullptr);
    errors.BeginSourceFile(clang.getLangOpts(), &preprocessor);
    clang::ParseAST(clang.getSema());
    errors.EndSourceFile();
    if (errors.getNumErrors()) throw WrongText{errors.text};
    module.reset(generator->ReleaseModule());
    clang.setSema(nullptr);
    clang.setASTConsumer(nullptr);
  }
  if (!module) throw WrongText{errors.text};
  run_passes(*module, *machine_, isa_ == 0, combine);

  llvm::SmallVector<char, 0> object;
  const bool good = emit(*module, *machine_, object);
  if (!back_end.empty()) throw WrongText{back_end};
  if (!good) return std::nullopt;
  return object;
}

}  // namespace strata_clang
