// The Clang plugin (vendor/compiler.h).
#include <sys/stat.h>

#include <mutex>

#include "base/log.h"
#include "jit/service/compilers.h"
#include "vendor/compiler.h"
#include "vendor/plugin.h"

namespace strata::jit {

namespace {

class ClangCompiler : public Compiler {
 public:
  explicit ClangCompiler(std::string file) : file_(std::move(file)), identity_(file_identity(file_)) {}

  std::string identity(lower::Isa isa, bool lines) const override {
    return str_cat("clang ", lower::isa_name(isa), lines ? " lines " : " ", identity_);
  }
  How how() const override { return How::Clang; }
  std::string name() const override {
    return table_ ? str_cat(table_->name, ' ', table_->version) : "the Clang plugin";
  }
  std::string open() override {
    std::call_once(opened_, [&] {
      const auto found =
          eager::open_table<StrataCompiler>("clang", "STRATA_CLANG", STRATA_COMPILER_SYMBOL, STRATA_COMPILER_MAJOR,
                                            "it has no compiler of this interface");
      table_ = found.table;
      if (!table_) why_ = str_cat(file_, ": ", found.report);
    });
    return why_;
  }
  std::string object(const Request& request) override {
    STRATA_CHECK_NOT_IMPLEMENTED(!request.lines || table_->minor >= 1,
                                 "compile: this Clang plugin makes no tables of lines; build it anew");
    const StrataCompilerJob job{sizeof job, uint32_t(request.isa), request.text.c_str(), request.text.size(),
                                uint32_t(request.lines)};
    StrataCompilerObject out{sizeof out, 0, nullptr, 0, nullptr};
    switch (table_->compile(&job, &out)) {
      case STRATA_LIBRARY_OK:
        break;
      case STRATA_LIBRARY_INVALID:
        refuse_text(request.text, table_->last_error());
      case STRATA_LIBRARY_MEMORY:
        throw_error(ErrorKind::OutOfMemory, "compile: the Clang plugin ran out of memory");
      default:
        throw_error(ErrorKind::Runtime, str_cat("compile: the Clang plugin failed: ", table_->last_error(),
                                                "; STRATA_COMPILER=system takes the system's compiler"));
    }
    if (table_->minor >= 2 && out.isa < job.isa && logs(Log::Cache))
      write_log(Log::Cache, str_cat(name(), " fails with a kernel at ", lower::isa_name(request.isa), ": compiled for ",
                                    lower::isa_name(lower::Isa(out.isa))));
    std::string object(static_cast<const char*>(out.data), out.bytes);
    table_->release(&out);
    return object;
  }

 private:
  const std::string file_, identity_;
  std::once_flag opened_;
  std::string why_;
  const StrataCompiler* table_ = nullptr;
};

}  // namespace

std::unique_ptr<Compiler> clang_compiler(std::string* why) {
  std::string file = eager::plugin_file("clang", "STRATA_CLANG");
  if (file.empty()) {
    *why = "the Clang plugin (libstrata_clang.so) is not there";
    return nullptr;
  }
  return std::make_unique<ClangCompiler>(std::move(file));
}

}  // namespace strata::jit
