#include "jit/service/compile.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>

#include "base/env.h"
#include "core/parallel.h"
#include "jit/service/compilers.h"
#include "jit/service/disk_cache.h"
#include "jit/service/explain.h"
#include "jit/service/gate.h"
#include "jit/service/hash.h"

namespace strata::jit {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Of what makes plans: this library's file.
std::string library_identity() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&how_name), &info) && info.dli_fname ? file_identity(info.dli_fname) : "";
}

class Service {
 public:
  Service()
      : disk_(DiskCache::of_environment()),
        plans_(disk_.folder(), disk_.limit(), DiskCache::kPlans),
        library_(library_identity()) {
    const std::string wanted = env_text("STRATA_COMPILER");
    STRATA_CHECK_VALUE(wanted.empty() || wanted == "clang" || wanted == "system" || wanted == "none",
                       "STRATA_COMPILER: expected clang, system or none, got ", wanted);
    if (wanted == "none") {
      why_ = "switched off by STRATA_COMPILER";
      return;
    }
    auto add = [&](std::unique_ptr<Compiler> compiler, const std::string& why) {
      if (compiler)
        compilers_.push_back(std::move(compiler));
      else
        why_ += str_cat(why_.empty() ? "" : "; ", why);
    };
    std::string why;
    if (wanted != "system") add(clang_compiler(&why), why);
    if (wanted != "clang") add(system_compiler(&why), why);
  }

  // `warning` is for the caller to give once it holds no lock. Null where it would have to be compiled and may not be.
  // `had`: what one compiler has on disk, read already.
  struct Had {
    const Compiler* compiler;
    DiskCache::Found found;
  };
  ProgramRef compile(const Request& request, Origin& origin, std::string& warning, bool may_compile,
                     Had* had = nullptr) {
    const auto start = Clock::now();
    const Key key = key_of(hash(request.text), request.isa, request.lines);
    std::unique_lock lock(mutex_);
    while (true) {
      Slot& slot = programs_[key];
      if (ProgramRef live = slot.program.lock();
          live && live->isa() == request.isa && live->lines() == request.lines && live->text() == request.text) {
        ++stats_.memory_hits;
        origin = {How::Memory, ms_since(start)};
        return live;
      }
      if (!slot.at_work) {
        slot.at_work = true;
        break;
      }
      done_.wait(lock);
    }
    lock.unlock();
    Made made;
    try {
      made = make(request, warning, may_compile, had);
    } catch (...) {
      lock.lock();
      programs_.erase(key);
      done_.notify_all();
      throw;
    }
    origin = {made.how, ms_since(start)};
    lock.lock();
    stats_.refused += made.refused;
    if (!made.program) {
      programs_.erase(key);
      done_.notify_all();
      return nullptr;
    }
    (made.how == How::Disk ? stats_.disk_hits : stats_.misses) += 1;
    (made.how == How::Disk ? stats_.load_ms : stats_.compile_ms) += origin.ms;
    stats_.evictions += made.evicted;
    programs_[key] = {made.program, false};
    sweep();
    done_.notify_all();
    return made.program;
  }

  ProgramRef known(const Hash& text, lower::Isa isa, Origin& origin) {
    const auto start = Clock::now();
    {
      std::unique_lock lock(mutex_);
      if (const auto at = programs_.find(key_of(text, isa, false)); at != programs_.end())
        if (ProgramRef live = at->second.program.lock();
            live && live->isa() == isa && !live->lines() && live->text_hash() == text) {
          ++stats_.memory_hits;
          origin = {How::Memory, ms_since(start)};
          return live;
        }
    }
    for (const auto& compiler : compilers_) {
      DiskCache::Found found = disk_.load(compiler->identity(isa, false), text);
      count_refused(found);
      if (!found.object) continue;
      const Request request{std::move(found.text), isa, false};
      std::string warning;
      Had had{compiler.get(), std::move(found)};
      return compile(request, origin, warning, false, &had);
    }
    return nullptr;
  }

  bool keeps_plans() const { return plans_.on() && !compilers_.empty() && !library_.empty(); }
  std::optional<std::string> load_plan(std::string_view key) {
    DiskCache::Found found = plans_.load(library_, key);
    count_refused(found);
    return std::move(found.object);
  }
  void store_plan(std::string_view key, std::string_view plan) {
    int64_t evicted;
    const std::string why = plans_.store(library_, key, plan, &evicted);  // kernels tell of a folder that is none
    if (!why.empty()) return;
    std::unique_lock lock(mutex_);
    stats_.evictions += evicted;
  }

  CacheStats stats() {
    std::unique_lock lock(mutex_);
    CacheStats s = stats_;
    for (const auto& [key, slot] : programs_) s.live += !slot.program.expired();
    lock.unlock();
    DiskCache::Size size = disk_.size();
    s.files = size.files, s.bytes = size.bytes, s.limit = disk_.limit(), s.folder = disk_.folder();
    return s;
  }
  void clear() { disk_.clear(); }
  std::string explain_miss(const Program& program) {
    for (const auto& c : compilers_)
      if (c->name() == program.compiler())
        return jit::explain_miss(disk_, c->identity(program.isa(), program.lines()), program.text());
    return "its compiler is gone";
  }

  bool has_compiler() {
    return std::any_of(compilers_.begin(), compilers_.end(), [](const auto& c) { return c->open().empty(); });
  }
  std::string report() {
    for (const auto& c : compilers_)
      if (c->open().empty()) return c->name() + (c->how() == How::Clang ? ", in the process" : "");
    return "none: " + reasons();
  }

 private:
  void count_refused(const DiskCache::Found& found) {
    if (!found.refused) return;
    std::unique_lock lock(mutex_);
    ++stats_.refused;
  }
  using Key = std::pair<uint64_t, uint64_t>;
  static Key key_of(const Hash& text, lower::Isa isa, bool lines) {
    return {text.a + 2 * uint64_t(isa) + lines, text.b};
  }
  struct Slot {
    std::weak_ptr<const Program> program;
    bool at_work = false;
  };
  struct Made {
    ProgramRef program;
    How how = How::Disk;
    int64_t refused = 0, evicted = 0;
  };

  // By the first way that has it on disk or can compile it.
  Made make(const Request& request, std::string& warning, bool may_compile, Had* had) {
    Made made;
    for (const auto& compiler : compilers_) {
      if (had && had->compiler != compiler.get()) continue;
      const std::string maker = compiler->identity(request.isa, request.lines);
      DiskCache::Found found = had ? std::move(had->found) : disk_.load(maker, request.text);
      made.refused += found.refused;
      if (found.object) {
        try {
          made.program = std::make_shared<Program>(request, compiler->name(), *found.object);
          made.how = How::Disk;
          return made;
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::Runtime) throw;  // memory
          disk_.remove(maker, request.text);
          ++made.refused;
        }
      }
      if (!may_compile) return made;
      if (!compiler->open().empty()) continue;
      std::string object;
      try {
        object = compiler->object(request);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::Runtime || compiler == compilers_.back() || !compilers_.back()->open().empty())
          throw;
        warning = str_cat(e.message(), "; ", compilers_.back()->name(), " is taken");
        continue;
      }
      made.program = std::make_shared<Program>(request, compiler->name(), object);
      made.how = compiler->how();
      std::string why = disk_.store(maker, request.text, object, &made.evicted);
      if (!why.empty() && !warned_.exchange(true))
        warning =
            str_cat("compile: the cache folder ", disk_.folder(), " cannot be written (", why,
                    "): kernels will be compiled anew in each process. Set STRATA_CACHE_DIR to a folder that can be "
                    "written, or STRATA_CACHE_BYTES=0 to do without");
      return made;
    }
    throw_error(
        ErrorKind::NotImplemented,
        str_cat("compile: there is no compiler: ", reasons(),
                ". Install one (Debian: apt install gcc; any of gcc, clang-19, clang, cc on the PATH, or STRATA_CC "
                "naming one) or build Strata's Clang plugin (./run build, with llvm-19-dev and libclang-19-dev)"));
  }
  std::string reasons() {
    std::string all = why_;
    for (const auto& c : compilers_)
      if (std::string why = c->open(); !why.empty()) all += str_cat(all.empty() ? "" : "; ", why);
    return all;
  }
  // Programs that nobody holds leave their slot behind; once they are half of all, they are swept out.
  void sweep() {
    if (programs_.size() < next_sweep_) return;
    std::erase_if(programs_, [](const auto& p) { return !p.second.at_work && p.second.program.expired(); });
    next_sweep_ = std::max<size_t>(64, 2 * programs_.size());
  }

  const DiskCache disk_, plans_;
  const std::string library_;
  std::vector<std::unique_ptr<Compiler>> compilers_;
  std::string why_;  // those that are not in the list are not
  std::atomic<bool> warned_{false};

  std::mutex mutex_;
  std::condition_variable done_;
  std::map<Key, Slot> programs_;
  size_t next_sweep_ = 64;
  CacheStats stats_;
};

// Never destroyed: programs may be compiled while the process ends.
Service& service() {
  static Service* one = new Service;
  return *one;
}

}  // namespace

const char* how_name(How how) {
  static constexpr const char* names[] = {"memory", "disk", "clang", "system"};
  return names[int(how)];
}

std::string_view Program::title() const {
  constexpr size_t kLongest = 200;
  const std::string_view text = request_.text, sign = "\n//   ";
  size_t at = text.find(sign);
  if (at == text.npos) return {};
  at += sign.size();
  return text.substr(at, std::min(text.find('\n', at) - at, kLongest));
}

void* Program::symbol(std::string_view name) const {
  if (void* found = image_.symbol(name)) return found;
  std::string all;
  for (const std::string& n : symbols()) all += (all.empty() ? "" : ", ") + n;
  throw_error(ErrorKind::Value, str_cat("symbol: the compiled text defines ", all, "; got '", name, "'"));
}

namespace {

ProgramRef find(const Request& request, Origin& origin, std::string& warning, bool may_compile) {
  AtWork at_work;
  return service().compile(request, origin, warning, may_compile);
}

}  // namespace

ProgramRef compile(const Request& request, Origin* origin) {
  Origin unasked;
  std::string warning;
  ProgramRef program = find(request, origin ? *origin : unasked, warning, true);
  if (!warning.empty()) warn(warning);
  return program;
}

std::vector<ProgramRef> compile_all(ArrayRef<Request> requests, std::vector<Origin>* origins) {
  std::map<std::tuple<std::string_view, lower::Isa, bool>, size_t> index;
  std::vector<size_t> first, which(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& r = requests[i];
    auto [at, is_new] = index.emplace(std::tuple{std::string_view(r.text), r.isa, r.lines}, first.size());
    if (is_new) first.push_back(i);
    which[i] = at->second;
  }
  std::vector<ProgramRef> made(first.size()), all(requests.size());
  std::vector<Origin> how(first.size());
  std::vector<std::string> warnings(first.size());
  // To load one takes less than to start threads.
  std::vector<size_t> order;
  for (size_t k = 0; k < first.size(); ++k) {
    if (!threads_started()) made[k] = find(requests[first[k]], how[k], warnings[k], false);
    if (!made[k]) order.push_back(k);
  }
  // Each thread takes the next one, long texts first: what they take differs by much.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[first[a]].text.size() > requests[first[b]].text.size(); });
  std::atomic<size_t> next{0};
  parallel_for(0, std::min<int64_t>(int64_t(order.size()), num_threads()), 1, [&](int64_t, int64_t) {
    for (size_t n; (n = next++) < order.size();) {
      const size_t k = order[n];
      made[k] = find(requests[first[k]], how[k], warnings[k], true);
    }
  });
  // Here, and not in the loop: who hears a warning may need a lock that this thread holds while it waits for the
  // others.
  for (const std::string& w : warnings)
    if (!w.empty()) warn(w);
  if (origins) origins->resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    all[i] = made[which[i]];
    if (origins) (*origins)[i] = first[which[i]] == i ? how[which[i]] : Origin{How::Memory, 0};
  }
  return all;
}

ProgramRef known_program(const Hash& text, lower::Isa isa, Origin* origin) {
  AtWork at_work;
  return service().known(text, isa, *origin);
}
std::optional<std::string> load_plan(std::string_view key) {
  AtWork at_work;
  return service().load_plan(key);
}
void store_plan(std::string_view key, std::string_view plan) {
  AtWork at_work;
  service().store_plan(key, plan);
}
bool keeps_plans() {
  AtWork at_work;
  return service().keeps_plans();
}

std::string compiler_report() {
  AtWork at_work;
  return service().report();
}
bool has_compiler() {
  AtWork at_work;
  return service().has_compiler();
}
CacheStats cache_stats() {
  AtWork at_work;
  return service().stats();
}
std::string explain_origin(const Program& program, const Origin& origin) {
  if (origin.how == How::Memory) return "hit: this process had it";
  if (origin.how == How::Disk) return str_cat("hit: loaded from disk in ", origin.ms, " ms");
  AtWork at_work;
  return str_cat("miss: compiled by ", program.compiler(), " in ", origin.ms, " ms; ", service().explain_miss(program));
}
void cache_clear() {
  AtWork at_work;
  service().clear();
}

std::string file_identity(const std::string& path) {
  char real[PATH_MAX];
  struct stat s;
  if (!realpath(path.c_str(), real) || stat(real, &s) != 0) return path;
  return str_cat(real, ' ', s.st_size, ' ', s.st_mtim.tv_sec, '.', s.st_mtim.tv_nsec);
}

void refuse_text(const std::string& text, const std::string& lines) {
  // The first error, with its line of the text; the others follow from it more often than not.
  const std::string first = lines.substr(0, lines.find('\n'));
  const long number = std::strtol(first.c_str(), nullptr, 10);
  size_t at = 0;
  for (long n = 1; n < number && at != text.npos; ++n) {
    at = text.find('\n', at);
    if (at != text.npos) ++at;
  }
  std::string shown;
  if (number > 0 && at < text.size()) shown = "\n  " + text.substr(at, text.find('\n', at) - at);
  throw_error(ErrorKind::Value, str_cat("compile: line ", first, shown));
}

}  // namespace strata::jit
