// A pointwise kernel in stages (pass/stages.h): a function for each, and one that calls them.
#include <algorithm>

#include "base/error.h"
#include "lower/print/print_c.h"

namespace strata::lower {

Stages stages_of(const Kernel& k, Isa isa) {
  if (!k.fused || k.kind != KernelKind::Pointwise || isa == Isa::Base) return {{{k, {}}}, {}};
  Needs unused;
  return in_stages(k, BodyPrinter(k, k.passes[0], true, unused).rarely());
}

void cut_passes(Kernel& k, size_t most) {
  std::vector<Pass> out;
  Needs unused;
  const size_t lasting = k.scratch.size();
  for (Pass& pass : k.passes) {
    std::vector<DType> scratch = k.scratch;
    std::vector<Pass> parts = cut_pass(pass, BodyPrinter(k, pass, true, unused).rarely(), scratch);
    const bool fits =
        std::ranges::none_of(scratch, [&](DType t) { return itemsize(t) > itemsize(traits(k.dtype).compute); });
    if (writes_rows(pass) || scratch.size() > most || !fits) parts = {pass}, scratch = k.scratch;
    k.scratch = std::move(scratch);
    for (Pass& part : parts) out.push_back(std::move(part));
  }
  k.passes = std::move(out);
  k.local_scratch = k.scratch.size() - lasting;
}

std::string print_stages(const Kernel& k, const Stages& stages, Isa isa, Needs& needs) {
  std::string out, calls;
  for (const Stage& stage : stages.parts) {
    std::string text = print_pointwise(stage.kernel, isa, needs);
    out += text.insert(text.find("\nvoid ") + 1, "static __attribute__((noinline)) ");
    std::string places, steps;
    bool keeps = false;
    for (size_t i = 0; i < stage.operands.size(); ++i) {
      const int o = stage.operands[i];
      const std::string separator = i ? ", " : "";
      places += separator + (o < 0 ? str_cat("kept_", -1 - o) : str_cat("at[", o, "]"));
      steps +=
          separator + (o < 0 ? std::to_string(16 * itemsize(stages.kept[size_t(-1 - o)])) : str_cat("step[", o, "]"));
      keeps |= o < 0 && i < stage.kernel.outputs.size();
    }
    calls += str_cat("    {\n      char* const own[] = {", places, "};\n      const i64 steps[] = {", steps,
                     "};\n      ", kernel_symbol(stage.kernel, isa), "(own, steps, params, here, ",
                     keeps ? "0" : "flags", ", status);\n    }\n");
  }
  const size_t operands = k.outputs.size() + k.inputs.size();
  out += comment(k, ", its stages after each other") + "void " + kernel_symbol(k, isa) +
         "(char* const* ptr, const i64* step, const void* params, i64 blocks, i64 flags, i32* status) {\n"
         "  enum { TOGETHER = 64 };\n";
  for (size_t i = 0; i < stages.kept.size(); ++i)
    out += str_cat("  char kept_", i, "[TOGETHER * ", 16 * itemsize(stages.kept[i]),
                   "] __attribute__((aligned(4096)));\n");
  return out + str_cat("  char* at[", operands, "];\n  for (i64 i = 0; i < ", operands, "; i++) at[i] = ptr[i];\n") +
         "  for (; blocks > 0; blocks -= TOGETHER) {\n    const i64 here = blocks < TOGETHER ? blocks : TOGETHER;\n" +
         calls + str_cat("    for (i64 i = 0; i < ", operands, "; i++) at[i] += TOGETHER * step[i];\n  }\n}\n\n");
}

}  // namespace strata::lower
