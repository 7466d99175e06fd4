// The exported symbol, and workers that are lent out: as many as compile at once, one context each.
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "clang/Basic/Version.h"
#include "escape.h"
#include "vendor/compiler.h"
#include "worker.h"

namespace strata_clang {

namespace {

constexpr uint32_t kIsas = 3;

thread_local std::string error;

class Workers {
 public:
  std::unique_ptr<Worker> take(uint32_t isa, bool lines) {
    {
      std::lock_guard lock(mutex_);
      std::vector<std::unique_ptr<Worker>>& idle = idle_[lines][isa];
      if (!idle.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle.back());
        idle.pop_back();
        return worker;
      }
    }
    return std::make_unique<Worker>(isa, lines);
  }
  void give_back(uint32_t isa, bool lines, std::unique_ptr<Worker> worker) {
    std::lock_guard lock(mutex_);
    idle_[lines][isa].push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_[2][kIsas];
};

// Never destroyed: threads may still compile while the process ends.
Workers& workers() {
  static Workers* all = new Workers;
  return *all;
}

const char* last_error() { return error.c_str(); }

int fail(int status, std::string why) {
  error = std::move(why);
  return status;
}

std::optional<llvm::SmallVector<char, 0>> compile_for(uint32_t isa, bool lines, llvm::StringRef text) {
  std::unique_ptr<Worker> worker = workers().take(isa, lines);
  try {
    struct Work {
      Worker& worker;
      llvm::StringRef text;
      std::optional<llvm::SmallVector<char, 0>> object;
    } work{*worker, text, {}};
    Escape escape;
    const bool ended = escape.run(
        [](void* on) {
          Work& w = *static_cast<Work*>(on);
          w.object = w.worker.compile(w.text);
        },
        &work);
    if (!ended) {
      (void)worker.release();
      if (escape.endless()) return std::nullopt;  // at the set below other rules meet
      throw Fatal{escape.why()};
    }
    workers().give_back(isa, lines, std::move(worker));
    return std::move(work.object);
  } catch (const WrongText&) {
    workers().give_back(isa, lines, std::move(worker));
    throw;
  } catch (...) {
    // Its parts are in no state to be taken down.
    (void)worker.release();
    throw;
  }
}

int compile(const StrataCompilerJob* job, StrataCompilerObject* out) {
  try {
    // A caller of 1.0 has no word about lines.
    constexpr size_t kFirst = offsetof(StrataCompilerJob, lines);
    if (!job || !out || job->size < kFirst || out->size < sizeof(StrataCompilerObject) || !job->text ||
        job->isa >= kIsas || job->text[job->bytes] != 0)
      return fail(STRATA_LIBRARY_INVALID, "error: compile: the job is not filled in");
    start();
    const bool lines = job->size > kFirst && job->lines;
    for (uint32_t isa = job->isa; isa < kIsas; --isa)
      if (auto made = compile_for(isa, lines, {job->text, job->bytes})) {
        auto object = std::make_unique<llvm::SmallVector<char, 0>>(std::move(*made));
        out->data = object->data();
        out->bytes = object->size();
        out->owner = object.release();
        out->isa = isa;
        return STRATA_LIBRARY_OK;
      }
    return fail(STRATA_LIBRARY_FAILED,
                "at no instruction set does LLVM come to an end with this text, with code that can be trusted");
  } catch (const WrongText& wrong) {
    return fail(STRATA_LIBRARY_INVALID, wrong.what);
  } catch (const Fatal& fatal) {
    return fail(STRATA_LIBRARY_FAILED, fatal.reason);
  } catch (const std::bad_alloc&) {
    return fail(STRATA_LIBRARY_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return fail(STRATA_LIBRARY_FAILED, e.what());
  }
}

void release(StrataCompilerObject* object) {
  delete static_cast<llvm::SmallVector<char, 0>*>(object->owner);
  object->owner = nullptr;
}

const StrataCompiler table = {sizeof(StrataCompiler),
                              STRATA_COMPILER_MAJOR,
                              STRATA_COMPILER_MINOR,
                              "Clang",
                              CLANG_VERSION_STRING,
                              last_error,
                              compile,
                              release};

}  // namespace

}  // namespace strata_clang

extern "C" __attribute__((visibility("default"))) const StrataCompiler* strata_compiler_v1() {
  return &strata_clang::table;
}
