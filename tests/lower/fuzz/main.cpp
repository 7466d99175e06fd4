// Fused kernels against their unfused form: `fuzz_kernels_test [--programs N] [--seed S] [--only NUMBER] [--mutate]`.
// Random programs, each kernel alone with its results in memory, and as few kernels as fusing makes of them; both as
// C99 by gcc and, as the build prints them, for each instruction set: equal bits, equal status, and no touch outside of
// memory.
#include <unistd.h>
#include <map>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lower/fuzz/mutate.h"
#include "lower/fuzz/run.h"

namespace strata::lower::fuzz {
namespace {

constexpr int kBatch = 50;

struct Folder {
  std::string path;
  Folder() {
    path = (std::filesystem::temp_directory_path() / "strata-fuzz-XXXXXX").string();
    if (!mkdtemp(path.data())) throw std::runtime_error("no folder for compiled programs");
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

struct Case {
  Program program;
  FusedProgram fused;
};

Case made(Program program) {
  Case c{std::move(program), {}};
  c.fused = fuse_program(c.program);
  return c;
}

// Jobs on both cores.
void run_all(std::vector<std::function<void()>> jobs) {
  std::mutex lock;
  size_t next = 0;
  auto work = [&] {
    for (;;) {
      std::unique_lock hold(lock);
      if (next == jobs.size()) return;
      const auto& job = jobs[next++];
      hold.unlock();
      job();
    }
  };
  std::thread other(work);
  work();
  other.join();
}

std::vector<const Nest*> nests(const std::vector<Case>& cases, bool fused) {
  std::vector<const Nest*> all;
  for (const Case& c : cases)
    for (const Value& v : fused ? c.fused.values : c.program.values) all.push_back(&v.nest);
  return all;
}

// Kernels compiled for a target: all of some programs, fused or each alone.
struct Compiled {
  std::string name;
  bool fused;
  std::unique_ptr<Library> library;
};

// The first difference of a case from the first library, or nothing.
std::string compare(Arenas& arenas, const Case& c, const std::vector<Compiled>& compiled) {
  for (const Setting& s : settings(c.program, c.fused)) {
    Bench bench(arenas, c.program, s);
    std::vector<Outcome> outcomes;
    for (const Compiled& k : compiled) {
      outcomes.push_back(
          bench.run(k.fused ? c.fused.values : c.program.values, [&](const Nest& n) { return k.library->find(n); }));
      const std::string text = differ(outcomes[0], outcomes.back());
      if (!text.empty()) return describe(s) + "\n  " + k.name + ": " + text;
    }
  }
  return "";
}

// Fused for every target; unfused as C99 and, since that takes longest, for one of the others in turn.
std::vector<Compiled> build(const std::vector<Case>& cases, const std::vector<Target>& all, size_t turn,
                            const std::string& folder) {
  std::vector<std::function<void()>> jobs;
  std::vector<Compiled> compiled;
  for (bool fused : {false, true})
    for (size_t t = 0; t < all.size(); ++t) {
      if (!fused && t > 0 && t != 1 + turn % (all.size() - 1)) continue;
      compiled.push_back({all[t].name + (fused ? ", fused" : ", each kernel alone"), fused, nullptr});
      jobs.push_back([&, t, fused, k = compiled.size() - 1] {
        compiled[k].library = compile(all[t], nests(cases, fused), folder);
      });
    }
  run_all(std::move(jobs));
  return compiled;
}

// The fewest values of a failing program that still fail.
void shrink(Arenas& arenas, const Program& program, const std::vector<Target>& all, size_t turn,
            const std::string& folder) {
  const size_t count = program.values.size();
  for (size_t length = 1; length < count; ++length)
    for (size_t first = 0; first + length <= count; ++first) {
      std::vector<Case> one;
      one.push_back(made(window(program, first, first + length)));
      const std::string text = compare(arenas, one[0], build(one, all, turn, folder));
      if (text.empty()) continue;
      std::printf("  the same of fewer values, %s\n%s", text.c_str(), describe(one[0].program).c_str());
      return;
    }
}

int fuzz(int programs, uint64_t seed, int only) {
  const std::vector<Target> all = targets();
  Folder folder;
  Arenas arenas;
  int passed = 0, failed = 0, kernels = 0, fused_kernels = 0, inlined = 0;
  std::map<std::string, int> refused;
  for (int first = 0; first < programs; first += kBatch) {
    std::vector<Case> cases;
    for (int k = first; k < std::min(programs, first + kBatch); ++k)
      cases.push_back(made(make_program(seed, only >= 0 ? only : k)));
    const size_t turn = size_t(only >= 0 ? only : first) / kBatch;
    const std::vector<Compiled> compiled = build(cases, all, turn, folder.path);
    for (const Case& c : cases) {
      kernels += int(c.program.values.size());
      fused_kernels += int(c.fused.values.size());
      inlined += c.fused.inlined;
      for (const auto& [reason, count] : c.fused.refused) refused[reason] += count;
      const std::string text = compare(arenas, c, compiled);
      ++(text.empty() ? passed : failed);
      if (text.empty()) continue;
      std::printf("FAILED: --seed %lu --only %d: %s\n%s", static_cast<unsigned long>(seed), c.program.number,
                  text.c_str(), describe(c.program).c_str());
      shrink(arenas, c.program, all, turn, folder.path);
    }
    std::fprintf(stderr, "%d of %d programs, %d failed\n", passed + failed, programs, failed);
  }
  std::printf("%d kernels became %d; %d inlined\n", kernels, fused_kernels, inlined);
  for (const auto& [reason, count] : refused) std::printf("%d not fused: %s\n", count, reason.c_str());
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}

// Of each kind of mutation one is made in every program that has a place for it; a kind that no program shows is a
// failure.
int mutate(int programs, uint64_t seed) {
  const Target target = targets()[0];
  Folder folder;
  Arenas arenas;
  const std::vector<Mutation>& kinds = mutations();
  std::vector<int> made_of(kinds.size(), 0), detected(kinds.size(), 0);
  for (int first = 0; first < programs; first += kBatch) {
    std::vector<Case> cases;
    for (int k = first; k < std::min(programs, first + kBatch); ++k) cases.push_back(made(make_program(seed, k)));
    std::vector<std::vector<Case>> changed(kinds.size());  // without the programs that have no place for it
    std::vector<std::unique_ptr<Library>> libraries(kinds.size() + 1);
    std::vector<std::function<void()>> jobs = {
        [&] { libraries.back() = compile(target, nests(cases, false), folder.path); }};
    for (size_t k = 0; k < kinds.size(); ++k) {
      for (const Case& c : cases) {
        Case one = c;
        Random rng(seed + uint64_t(c.program.number) * 31 + k);
        for (Value& v : one.fused.values)
          if (kinds[k].change(rng, v.nest)) {
            changed[k].push_back(std::move(one));
            break;
          }
      }
      jobs.push_back([&, k] { libraries[k] = compile(target, nests(changed[k], true), folder.path, kinds[k].text); });
    }
    run_all(std::move(jobs));
    for (size_t k = 0; k < kinds.size(); ++k)
      for (const Case& c : changed[k]) {
        ++made_of[k];
        detected[k] += std::ranges::any_of(settings(c.program, c.fused), [&](const Setting& s) {
          Bench bench(arenas, c.program, s);
          const Outcome good = bench.run(c.program.values, [&](const Nest& n) { return libraries.back()->find(n); });
          return !differ(good, bench.run(c.fused.values, [&](const Nest& n) { return libraries[k]->find(n); })).empty();
        });
      }
    std::fprintf(stderr, "%d of %d programs\n", std::min(programs, first + kBatch), programs);
  }
  int passed = 0;
  for (size_t k = 0; k < kinds.size(); ++k) {
    std::printf("without %s: %d of %d detected\n", kinds[k].name, detected[k], made_of[k]);
    passed += detected[k] > 0;
  }
  std::printf("%d passed, %d failed\n", passed, int(kinds.size()) - passed);
  return passed < int(kinds.size());
}

}  // namespace
}  // namespace strata::lower::fuzz

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // progress is seen in a file, too
  int programs = 2000, only = -1;
  uint64_t seed = 1;
  bool mutations = false;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    const char* value = k + 1 < argc ? argv[k + 1] : nullptr;
    if (word == "--mutate") {
      mutations = true;
    } else if (value && word == "--programs") {
      programs = std::atoi(argv[++k]);
    } else if (value && word == "--seed") {
      seed = std::strtoull(argv[++k], nullptr, 10);
    } else if (value && word == "--only") {
      only = std::atoi(argv[++k]), programs = 1;
    } else {
      std::fprintf(stderr, "usage: %s [--programs N] [--seed S] [--only NUMBER] [--mutate]\n", argv[0]);
      return 2;
    }
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    using namespace strata::lower::fuzz;
    return mutations ? mutate(programs, seed) : fuzz(programs, seed, only);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
