// What fusion made of a list of launches, kept on disk beside the kernels: a new process that has the same list asks
// for its kernels by the hashes of their texts, and neither tries which launches go together nor prints anything.
//
// A file is found by all that fusion looks at, and by the file of this library: what another build decided is not read.
// Lists that hang on more than that are not kept: kernels that a program has added, devices of plugins, texts with the
// user's lines.
#pragma once
#include "jit/compile/group.h"
#include "jit/service/compile.h"

namespace strata::jit {

struct KeptPlan {
  std::vector<Group> groups;         // kernels of theirs have a dtype and no passes
  std::vector<ProgramRef> programs;  // per group; null where it has no kernel
  std::vector<Origin> origins;
};

// The list as bytes, to find its plan by; empty where none is kept.
std::string plan_key(const LaunchList& list, lower::Isa isa);
// Nothing where there is no such plan or one of its kernels is gone.
std::optional<KeptPlan> kept_plan(const LaunchList& list, const std::string& key, lower::Isa isa);
void keep_plan(const LaunchList& list, const std::string& key, const std::vector<Group>& groups,
               ArrayRef<ProgramRef> programs);

}  // namespace strata::jit
