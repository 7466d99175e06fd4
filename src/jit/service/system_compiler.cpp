// The compiler that the system has, as a program beside this one: gcc, clang-19, clang or cc, or what STRATA_CC names.
// Clang's code for AVX-512 is not taken: LLVM's masked logic with an operand from memory computes another function
// (plugins/clang/emit.cpp finds it while it compiles; in an object it can no longer be told). AVX2 gives the same bits.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/env.h"
#include "jit/service/compilers.h"

extern char** environ;

namespace strata::jit {

namespace {

// Beside kCompileFlags, what distributions add to C that kernels have no use for, and what their loader does not know.
constexpr const char* kObjectFlags =
    "-c -x c -fvisibility=hidden -fno-asynchronous-unwind-tables -fno-stack-protector -fcf-protection=none -fno-lto";
// GCC 12 makes a product and a sum that alternate in sign one rounding (vfmaddsub), whatever -ffp-contract says, where
// it makes vectors of its own; those of the texts are written out. Where comparisons of vectors of two registers meet
// in a choice, what it propagates forward ends in an internal error.
constexpr const char* kGccFlags = " -fno-tree-vectorize -fno-tree-forwprop";
// Of kernels with lines: a table of these and no more; of functions that are inlined, the line of their call.
constexpr const char* kLineFlags = " -g1";
constexpr const char* kClangLineFlags = " -gline-tables-only -gno-inline-line-tables";

std::string in_path(const std::string& name) {
  if (name.find('/') != name.npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  std::stringstream folders(env_text("PATH", "/usr/local/bin:/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = str_cat(folder.empty() ? "." : folder, '/', name);
    struct stat s;
    if (access(file.c_str(), X_OK) == 0 && stat(file.c_str(), &s) == 0 && S_ISREG(s.st_mode)) return file;
  }
  return "";
}

// A folder that nobody else reads, removed with what is known to be in it.
class Folder {
 public:
  Folder() {
    const std::string base = env_text("TMPDIR", "/tmp");
    path_ = base + "/strata-XXXXXX";
    STRATA_CHECK(mkdtemp(path_.data()), "compile: no folder could be made in ", base,
                 " for the system's compiler: ", std::strerror(errno), "; set TMPDIR to one that can be written");
  }
  ~Folder() {
    for (const char* name : {"kernel.c", "kernel.o", "errors"}) unlink(file(name).c_str());
    rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return str_cat(path_, '/', name); }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// The exit status, or -1 where it did not run to its end or nobody may know.
int run(const std::vector<std::string>& command, const std::string& errors) {
  std::vector<char*> arguments, environment;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char language[] = "LC_ALL=C";  // messages are read
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "LC_ALL=", 7) != 0) environment.push_back(*e);
  environment.push_back(language);
  environment.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int failed = posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  STRATA_CHECK(failed == 0, "compile: the system's compiler ", command[0],
               " could not be started: ", std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;  // the program ignores its children's ends: the object says how it went
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// By the name of the program itself, which its identity ends with: folders on its way may be called anything.
bool is_gcc(const std::string& identity) { return identity.find("gcc", identity.rfind('/') + 1) != identity.npos; }

class SystemCompiler : public Compiler {
 public:
  explicit SystemCompiler(std::string file)
      : file_(std::move(file)), identity_(file_identity(file_)), gcc_(is_gcc(identity_)) {}

  std::string identity(lower::Isa isa, bool lines) const override {
    return str_cat("system ", lower::isa_name(isa), ' ', identity_, '\n', flags(isa, lines));
  }
  How how() const override { return How::System; }
  std::string name() const override { return file_; }
  std::string open() override { return ""; }
  std::string object(const Request& request) override {
    Folder folder;
    {
      std::ofstream out(folder.file("kernel.c"), std::ios::binary);
      out << request.text;
      out.close();
      STRATA_CHECK(out, "compile: ", folder.file("kernel.c"), " could not be written; is the disk full?");
    }
    std::vector<std::string> command{file_};
    std::stringstream words(flags(request.isa, request.lines));
    for (std::string flag; words >> flag;) command.push_back(flag);
    for (const std::string& word : {folder.file("kernel.c"), std::string("-o"), folder.file("kernel.o")})
      command.push_back(word);
    const int status = run(command, folder.file("errors"));
    std::string object = contents(folder.file("kernel.o"));
    if (status <= 0 && !object.empty()) return object;
    // "FOLDER/kernel.c:LINE:COLUMN: error: what"
    std::string errors = contents(folder.file("errors")), lines;
    const std::string prefix = folder.file("kernel.c:");
    std::stringstream all(errors);
    for (std::string line; std::getline(all, line);)
      if (line.find("error: ") != line.npos)
        lines += (line.starts_with(prefix) ? line.substr(prefix.size()) : line) + '\n';
    if (status == 1 && errors.find(prefix) != errors.npos && !lines.empty()) refuse_text(request.text, lines);
    throw_error(ErrorKind::Runtime, str_cat("compile: ", file_, " ended with status ", status, " and made no object: ",
                                            errors.substr(0, 2000), "; STRATA_CC names another compiler"));
  }

 private:
  std::string flags(lower::Isa isa, bool lines) const {
    const lower::Isa highest = gcc_ ? lower::Isa::V4 : lower::Isa::V3;
    return str_cat(lower::kCompileFlags, ' ', lower::isa_flags(std::min(isa, highest)), ' ', kObjectFlags,
                   gcc_ ? kGccFlags : "",
                   !lines ? ""
                   : gcc_ ? kLineFlags
                          : kClangLineFlags);
  }

  const std::string file_, identity_;
  const bool gcc_;
};

}  // namespace

std::unique_ptr<Compiler> system_compiler(std::string* why) {
  const std::string wanted = env_text("STRATA_CC");
  if (!wanted.empty()) {
    std::string file = in_path(wanted);
    if (!file.empty()) return std::make_unique<SystemCompiler>(std::move(file));
    *why = str_cat("STRATA_CC names ", wanted, ", which is no program");
    return nullptr;
  }
  for (const char* name : {"gcc", "clang-19", "clang", "cc"})
    if (std::string file = in_path(name); !file.empty()) return std::make_unique<SystemCompiler>(std::move(file));
  *why = "no C compiler (gcc, clang-19, clang, cc) is on the PATH";
  return nullptr;
}

}  // namespace strata::jit
