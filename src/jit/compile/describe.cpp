// What people are told of a plan.
#include <algorithm>
#include <set>

#include "base/log.h"
#include "jit/compile/driver.h"
#include "jit/compile/lines.h"
#include "jit/compile/plan.h"
#include "jit/compile/rows.h"

namespace strata::jit {

namespace {

// Of the elements that a place has, each once.
int64_t bytes_of(const Operand& o) {
  int64_t n = o.block < 0 ? 0 : itemsize(o.dtype);
  for (size_t d = 0; d < o.sizes.size(); ++d) n *= o.strides[d] == 0 ? std::min<int64_t>(o.sizes[d], 1) : o.sizes[d];
  return n;
}

}  // namespace

Plan::Traffic Plan::traffic() const {
  Traffic t;
  std::set<int> read, written;
  for (const Group& g : groups_) {
    if (g.fused)
      for (const auto* list : {&g.fused->outs, &g.fused->ins})
        for (const FusedOperand& o : *list) t.moved += bytes_of(o.memory);
    for (int i : g.launches) {
      const Launch& l = list_.launches[size_t(i)];
      for (const Operand& o : l.outs) {
        if (!g.fused) t.moved += bytes_of(o);
        written.insert(o.block);
      }
      for (const Operand& o : l.ins) {
        if (!g.fused) t.moved += bytes_of(o);
        read.insert(o.block);
      }
    }
  }
  std::set<int> counted;
  for (const Operand& o : list_.params)
    if (counted.insert(o.block).second)
      t.least += bytes_of(o) * (int64_t(read.count(o.block)) + int64_t(written.count(o.block)));
  for (const Operand& o : list_.results)
    if (counted.insert(o.block).second) t.least += bytes_of(o);
  return t;
}

std::string Plan::kernel_name(size_t program) const {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (source_of_[g] == int(program)) return groups_[g].fused ? groups_[g].fused->kernel.text : "";
  return "";
}

std::string Plan::cache() const {
  std::string out;
  if (!without_compiler_.empty())
    out += "no kernels: " + without_compiler_ + "\n";
  else if (program_)
    out += str_cat(program_->compiled, " kernels compiled for ", list_.device, " together; strata.cache.stats(\"",
                   list_.device, "\") has all of them\n");
  else if (programs_.empty())
    out += "no kernels: nothing is fused\n";
  for (size_t i = 0; i < programs_.size(); ++i)
    out += str_cat("kernel ", i, " (", kernel_name(i), "): ", explain_origin(*programs_[i], origins_[i]), "\n");
  return out;
}

void Plan::tell() const {
  if (logs(Log::Passes)) write_log(Log::Passes, passes_.text());
  if (logs(Log::Fusion)) write_log(Log::Fusion, explain());
  if (logs(Log::OutputCode)) write_log(Log::OutputCode, source(options_.lines));
  if (logs(Log::Cache)) write_log(Log::Cache, cache());
}

// Of a fused group.
lower::Kernel Plan::kernel_of(const Group& g) const {
  if (!g.fused->kernel.passes.empty()) return g.fused->kernel;
  // From the disk came what it needs to run.
  std::vector<char> stores(list_.blocks.size());
  for (const FusedOperand& o : g.fused->outs) stores[size_t(o.memory.block)] = true;
  std::string why;
  std::optional<Fused> made = fuse(list_, g.launches, stores, why);
  STRATA_INTERNAL(made, "a kept plan has a kernel that its launches do not give: ", why);
  made->kernel.text = g.fused->kernel.text;
  find_row_values(*made);
  return std::move(made->kernel);
}

std::string Plan::source(bool lines) const {
  if (program_) return program_->source();
  // As compiled, but for names that tell kernels apart, and a driver.
  std::vector<lower::Kernel> kernels(programs_.size());
  std::vector<std::pair<const Fused*, int>> uses;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (source_of_[g] < 0 || !groups_[g].fused) continue;
    lower::Kernel& k = kernels[size_t(source_of_[g])];
    k = kernel_of(groups_[g]);
    k.name = k.source = str_cat("fused_", source_of_[g]);
    k.lines = lines ? source_lines(list_, groups_[g]) : std::vector<std::string>();
    uses.emplace_back(&*groups_[g].fused, source_of_[g]);
  }
  if (uses.empty())
    return "// no kernel of its own: each operator runs by itself, for the reasons that explain() gives\n";
  return lower::print_file("fused", kernels, programs_[0]->isa()) + print_driver(uses);
}

// What numerics="fast" did to a kernel.
static std::string dropped_text(const std::array<int, 2>& dropped) {
  std::string out;
  const char* types[] = {"bfloat16", "float16"};
  const int halves[] = {256, 2048};  // of a unit in the last place: a part of the value
  for (size_t k = 0; k < 2; ++k)
    if (dropped[k])
      out += str_cat("  numerics=\"fast\": ", dropped[k], dropped[k] == 1 ? " rounding" : " roundings", " to ",
                     types[k], " left out, of at most 1/", halves[k], " of the value each\n");
  return out;
}

std::string Plan::explain() const {
  const auto [moved, least] = traffic();
  std::string out = str_cat(kernels(), " fused kernels, ", by_themselves(), " operators by themselves\n", moved,
                            " bytes moved; inputs and results alone are ", least, "\n");
  for (const auto& [stage, ms] : stages_)
    out += str_cat(&stage == &stages_[0].first ? "compiled in: " : ", ", stage, ' ', ms, " ms");
  out += "\n";
  if (options_.fast) {
    int all = 0, kernels = 0;
    for (const Group& g : groups_)
      if (const int n = g.fused ? g.fused->dropped[0] + g.fused->dropped[1] : 0) all += n, ++kernels;
    out += str_cat("numerics=\"fast\": ", all, " roundings left out, in ", kernels,
                   " kernels; results are eager's but for these\n");
  }
  if (!without_compiler_.empty()) out += "not fused: " + without_compiler_ + "\n";
  if (!not_planned_.empty()) out += "operator by operator: " + not_planned_ + "\n";
  if (program_)
    out += str_cat("on ", list_.device, ": ", program_->compiled, " kernels compiled together in ", program_->ms,
                   " ms, the others were there\n");
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (g.fused) {
      const std::string from = program_ ? str_cat("for ", list_.device) : [&] {
        const Origin& o = origins_[size_t(source_of_[i])];
        return str_cat("from ", how_name(o.how), " in ", o.ms, " ms");
      }();
      out += str_cat("kernel over ", g.fused->shape,
                     g.fused->reduced.empty() ? "" : str_cat(", rows along dims ", g.fused->reduced), ", reads ",
                     g.fused->ins.size(), ", writes ", g.fused->outs.size(), "; ", from, "\n");
      out += dropped_text(g.fused->dropped);
    } else {
      out += "by itself\n";
    }
    for (int k : g.launches) {
      const Launch& l = list_.launches[size_t(k)];
      out += "  " + l.operator_name();
      if (l.node && !l.node->span.empty()) out += "  # " + l.node->span;
      out += "\n";
    }
    if (i) out += "  not one with what is before it: " + g.alone + "\n";
  }
  return out;
}

std::string Plan::memory() const {
  std::string out = str_cat("arena of ", std::max<int64_t>(arena_, 0), " bytes (", unshared_, " without reuse)\n");
  for (size_t b = 0; b < place_.size(); ++b) {
    if (place_[b] < 0) continue;
    const auto [first, last] = alive_[b];
    out += str_cat("  b", b, ": ", list_.blocks[b].bytes, " bytes at ", place_[b], ", from step ", first, " to ", last);
    // Who makes it.
    for (int i : groups_[size_t(first)].launches) {
      const Launch& l = list_.launches[size_t(i)];
      if (std::none_of(l.outs.begin(), l.outs.end(), [&](const Operand& o) { return o.block == int(b); })) continue;
      out += str_cat(": ", l.operator_name(), l.node && !l.node->span.empty() ? "  # " + l.node->span : "");
      break;
    }
    out += "\n";
  }
  return out;
}

}  // namespace strata::jit
