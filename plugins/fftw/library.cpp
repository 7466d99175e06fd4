// The C table of src/vendor/fourier.h over FFTW: plans of lines, in a bounded table.
#include <fftw3.h>

#include <climits>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>

#include "vendor/fourier.h"

// A plan of either precision; the other one is null.
struct StrataFourierPlan {
  fftw_plan f64 = nullptr;
  fftwf_plan f32 = nullptr;
  int32_t kind = 0;
  mutable int64_t users = 0;  // its place in the table is one; guarded by the table's mutex
};

namespace {

thread_local char error_text[256];

int fail(StrataLibraryStatus status, const char* reason) noexcept {
  std::snprintf(error_text, sizeof error_text, "prepare: %s", reason);
  return status;
}
const char* last_error() { return error_text; }

// FFTW's functions for one precision.
struct Double {
  using Real = double;
  using Complex = fftw_complex;
  static constexpr auto alloc = fftw_malloc;
  static constexpr auto free = fftw_free;
  static constexpr auto complex = fftw_plan_many_dft;
  static constexpr auto real = fftw_plan_many_dft_r2c;
  static constexpr auto half = fftw_plan_many_dft_c2r;
};
struct Single {
  using Real = float;
  using Complex = fftwf_complex;
  static constexpr auto alloc = fftwf_malloc;
  static constexpr auto free = fftwf_free;
  static constexpr auto complex = fftwf_plan_many_dft;
  static constexpr auto real = fftwf_plan_many_dft_r2c;
  static constexpr auto half = fftwf_plan_many_dft_c2r;
};

// An estimate reads and writes no element, but its plan is for memory that lies as well as this.
template <class F>
auto make(const StrataFourierLines& lines) {
  const int n = int(lines.length), count = int(lines.count), half = n / 2 + 1;
  const size_t bytes = sizeof(typename F::Complex) * size_t(n + 2) * size_t(count);
  std::unique_ptr<void, decltype(F::free)> a(F::alloc(bytes), F::free), b(F::alloc(bytes), F::free);
  if (!a || !b) throw std::bad_alloc();
  auto* complex = static_cast<typename F::Complex*>(a.get());
  auto* result = static_cast<typename F::Complex*>(b.get());
  auto* real = static_cast<typename F::Real*>(a.get());
  constexpr unsigned keep = FFTW_ESTIMATE | FFTW_PRESERVE_INPUT;
  switch (lines.kind) {
    case STRATA_FOURIER_REAL:
      return F::real(1, &n, count, real, nullptr, 1, n, result, nullptr, 1, half, keep);
    case STRATA_FOURIER_HALF:
      return F::half(1, &n, count, result, nullptr, 1, half, real, nullptr, 1, n, FFTW_ESTIMATE | FFTW_DESTROY_INPUT);
    default:
      return F::complex(1, &n, count, complex, nullptr, 1, n, result, nullptr, 1, n,
                        lines.kind == STRATA_FOURIER_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD, keep);
  }
}

// All calls hold the mutex, which is FFTW's planner's, too: plans are made and destroyed by one thread at a time.
class Plans {
 public:
  static constexpr size_t capacity = 256;

  const StrataFourierPlan* get(const StrataFourierLines& lines) {
    const Key key{lines.precise != 0, lines.kind, lines.length, lines.count};
    const std::lock_guard lock(mutex_);
    if (auto at = index_.find(key); at != index_.end()) {
      ++hits_;
      order_.splice(order_.begin(), order_, at->second);
    } else {
      ++misses_;
      auto plan = std::make_unique<StrataFourierPlan>();
      plan->kind = lines.kind;
      if (lines.precise)
        plan->f64 = make<Double>(lines);
      else
        plan->f32 = make<Single>(lines);
      if (!plan->f64 && !plan->f32) return nullptr;
      plan->users = 1;
      order_.emplace_front(key, plan.get());
      index_[key] = order_.begin();
      plan.release();
      if (order_.size() > capacity) {
        drop(order_.back().second);
        index_.erase(order_.back().first);
        order_.pop_back();
      }
    }
    const StrataFourierPlan* found = order_.front().second;
    ++found->users;
    return found;
  }

  void release(const StrataFourierPlan* plan) {
    const std::lock_guard lock(mutex_);
    drop(plan);
  }

  void info(StrataFourierCache& out) {
    const std::lock_guard lock(mutex_);
    out.plans = int64_t(order_.size());
    out.capacity = int64_t(capacity);
    out.hits = hits_;
    out.misses = misses_;
  }

 private:
  using Key = std::tuple<bool, int32_t, int64_t, int64_t>;
  using Entry = std::pair<Key, const StrataFourierPlan*>;

  void drop(const StrataFourierPlan* plan) {
    if (--plan->users) return;
    if (plan->f64) fftw_destroy_plan(plan->f64);
    if (plan->f32) fftwf_destroy_plan(plan->f32);
    delete plan;
  }

  std::mutex mutex_;
  std::list<Entry> order_;  // most recently used first
  std::map<Key, std::list<Entry>::iterator> index_;
  int64_t hits_ = 0, misses_ = 0;
};

// Never destroyed: threads may still transform while the process ends.
Plans& plans() {
  static Plans& all = *new Plans;
  return all;
}

int prepare(const StrataFourierLines* lines, const StrataFourierPlan** plan) {
  *plan = nullptr;
  if (lines->kind < STRATA_FOURIER_FORWARD || lines->kind > STRATA_FOURIER_HALF)
    return fail(STRATA_LIBRARY_INVALID, "an unknown kind");
  if (lines->length < 1 || lines->count < 1 || lines->length > (INT_MAX - 2) / lines->count)
    return fail(STRATA_LIBRARY_INVALID, "lengths go from 1 to 2^31 - 3 elements");
  try {
    *plan = plans().get(*lines);
    return *plan ? STRATA_LIBRARY_OK : fail(STRATA_LIBRARY_FAILED, "FFTW has no plan for this length");
  } catch (const std::bad_alloc&) {
    return fail(STRATA_LIBRARY_MEMORY, "out of memory");
  } catch (...) {
    return fail(STRATA_LIBRARY_FAILED, "unknown exception");
  }
}

void release(const StrataFourierPlan* plan) {
  if (plan) plans().release(plan);
}

void run(const StrataFourierPlan* plan, void* in, void* out) {
  switch (plan->kind) {
    case STRATA_FOURIER_REAL:
      return plan->f64 ? fftw_execute_dft_r2c(plan->f64, static_cast<double*>(in), static_cast<fftw_complex*>(out))
                       : fftwf_execute_dft_r2c(plan->f32, static_cast<float*>(in), static_cast<fftwf_complex*>(out));
    case STRATA_FOURIER_HALF:
      return plan->f64 ? fftw_execute_dft_c2r(plan->f64, static_cast<fftw_complex*>(in), static_cast<double*>(out))
                       : fftwf_execute_dft_c2r(plan->f32, static_cast<fftwf_complex*>(in), static_cast<float*>(out));
    default:
      return plan->f64
                 ? fftw_execute_dft(plan->f64, static_cast<fftw_complex*>(in), static_cast<fftw_complex*>(out))
                 : fftwf_execute_dft(plan->f32, static_cast<fftwf_complex*>(in), static_cast<fftwf_complex*>(out));
  }
}

void cache(StrataFourierCache* out) { plans().info(*out); }

// "3.3.10" of "fftw-3.3.10-sse2-avx".
const char* version() {
  static char text[32];
  std::sscanf(fftw_version, "fftw-%31[0-9.]", text);
  return text;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const StrataFourier* strata_fourier_v1(void) {
  static const StrataFourier table = {
      .size = sizeof(StrataFourier),
      .major = STRATA_FOURIER_MAJOR,
      .minor = STRATA_FOURIER_MINOR,
      .name = "FFTW",
      .version = version(),
      .last_error = last_error,
      .prepare = prepare,
      .release = release,
      .run = run,
      .cache = cache,
  };
  return &table;
}
