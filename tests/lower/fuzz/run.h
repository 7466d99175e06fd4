// Compiled programs and their runs.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "lower/fuzz/memory.h"
#include "lower/kernel_abi.h"

namespace strata::lower::fuzz {

// A compiler with flags, and what is printed for it.
struct Target {
  std::string name, command;  // the command ends where the names of the files follow
  bool portable;              // C99 alone; else as the build prints kernels of index spaces
};
std::vector<Target> targets();  // those that this machine can compile for and run; C99 by gcc first

// A loaded file of kernels; empty where it could not be compiled.
class Library {
 public:
  explicit Library(const std::string& file);
  ~Library();
  Library(const Library&) = delete;
  StrataNestFn find(const Nest& nest) const;

 private:
  void* handle_ = nullptr;
};

// Prints and compiles kernels for one target; `changed` may change the text first.
using Change = std::function<void(std::string&)>;
std::unique_ptr<Library> compile(const Target& target, const std::vector<const Nest*>& nests, const std::string& folder,
                                 const Change& changed = {});

// How a program runs: its sizes, and values of inputs and scalars.
struct Setting {
  std::vector<int64_t> sizes;
  bool tame = false, stray = false;
  uint64_t seed = 0;
};
std::vector<Setting> settings(const Program& program, const FusedProgram& fused);
std::string describe(const Setting& setting);

struct Outcome {
  int32_t status = 0;
  std::string trouble;                // why a run ended early: memory that it must not touch
  std::map<std::string, Block> made;  // by tensor
};

// Memory of inputs and of the results of one setting; each run has its own results.
class Bench {
 public:
  Bench(Arenas& arenas, const Program& program, const Setting& setting);
  Outcome run(const std::vector<Value>& values, const std::function<StrataNestFn(const Nest&)>& find);

 private:
  std::vector<int64_t> sizes_of(const Tensor& t) const;
  Arenas& arenas_;
  const Setting& setting_;
  Random rng_;
  std::map<std::string, Block> inputs_;
  std::map<std::string, Layout> layouts_;  // of what is made
};

// Whether two runs agree in all that `a` and `b` have made, and in the status; else a message.
std::string differ(const Outcome& a, const Outcome& b);

}  // namespace strata::lower::fuzz
