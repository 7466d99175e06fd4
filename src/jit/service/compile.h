// The CPU's compile service: a printed text to functions in memory. A text comes from this process's programs, from the
// cache on disk, or from a compiler: the Clang plugin, in the process, or the system's where the plugin is absent.
// Everything here may be called from many threads at once and after a fork.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/array_ref.h"
#include "jit/service/hash.h"
#include "jit/service/loader.h"
#include "lower/print/print_c.h"

namespace strata::jit {

struct Request {
  std::string text;  // a whole C file
  lower::Isa isa;
  bool lines = false;  // with a table of its lines, which debuggers and profilers of this process are told of
};

enum class How : uint8_t { Memory, Disk, Clang, System };
const char* how_name(How how);  // "memory", "disk", "clang", "system"

// Where a program came from, for explain().
struct Origin {
  How how = How::Memory;
  double ms = 0;
};

class Program {
 public:
  Program(Request request, std::string compiler, std::string_view object)
      : request_(std::move(request)),
        text_hash_(hash(request_.text)),
        compiler_(std::move(compiler)),
        image_(object, request_.lines, title()) {}

  // A function or object that the text defines and that is not static. Raises Value where it defines none of that name.
  void* symbol(std::string_view name) const;
  const std::vector<std::string>& symbols() const { return image_.names(); }
  const std::string& text() const { return request_.text; }
  const Hash& text_hash() const { return text_hash_; }
  lower::Isa isa() const { return request_.isa; }
  bool lines() const { return request_.lines; }
  const std::string& compiler() const { return compiler_; }  // "Clang 19.1.7 (...)"
  size_t bytes() const { return image_.bytes(); }            // of memory

 private:
  std::string_view title() const;  // what its first comment on a function says: the operators of a fused kernel
  Request request_;
  Hash text_hash_;
  std::string compiler_;
  Image image_;
};
using ProgramRef = std::shared_ptr<const Program>;

// Functions of a program may be called while it lives. Equal requests share a program.
// Raises Value with the compiler's message where the text is wrong, NotImplemented where there is no compiler.
ProgramRef compile(const Request& request, Origin* origin = nullptr);
// In parallel, equal texts once. With an error of the first that failed.
std::vector<ProgramRef> compile_all(ArrayRef<Request> requests, std::vector<Origin>* origins = nullptr);

// A program of this process, or from disk, by the hash of its text alone; null where neither has it.
ProgramRef known_program(const Hash& text, lower::Isa isa, Origin* origin);
// Plans of graphs beside the kernels: what was stored for these bytes by this very build of the library.
std::optional<std::string> load_plan(std::string_view key);
void store_plan(std::string_view key, std::string_view plan);
bool keeps_plans();  // there are a folder and a compiler

// What would compile: "Clang 19.1.7, in the process", "/usr/bin/gcc"; or why there is nothing.
std::string compiler_report();
bool has_compiler();

struct CacheStats {
  int64_t memory_hits = 0, disk_hits = 0, misses = 0, evictions = 0, refused = 0;  // refused: damaged files
  int64_t live = 0;                                                                // programs in memory
  int64_t files = 0, bytes = 0, limit = 0;                                         // on disk
  double compile_ms = 0, load_ms = 0;                                              // of all misses, of all hits on disk
  std::string folder;                                                              // empty: none
};
CacheStats cache_stats();
// Whether a program came from the cache, and if not, what of its key differed from what was there.
std::string explain_origin(const Program& program, const Origin& origin);
void cache_clear();  // the files; programs that live stay

}  // namespace strata::jit
