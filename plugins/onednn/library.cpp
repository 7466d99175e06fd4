// The exported symbol, the plan runner and the plan cache.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "cache.h"
#include "common.h"

// Served by whichever OpenMP runtime came first in the process; declared here because a header of one particular
// runtime would suggest otherwise.
extern "C" int omp_get_max_threads(void);
extern "C" int omp_in_parallel(void);
extern "C" void omp_set_num_threads(int);
extern "C" void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);

namespace strata::onednn {
namespace {

thread_local char error_text[512];
std::atomic<int> wanted_threads{0};

// Scratch memory of a thread: grown to the largest plan that ran, given back when that was unusually large.
class Arena {
 public:
  ~Arena() { std::free(base_); }
  char* at_least(size_t bytes) {
    if (bytes > size_) {
      std::free(base_);
      size_ = 0;
      size_t rounded = (bytes + 4095) & ~size_t{4095};
      base_ = static_cast<char*>(std::aligned_alloc(4096, rounded));
      if (!base_) throw std::bad_alloc();
      size_ = rounded;
    }
    return base_;
  }
  void settle() {
    if (size_ <= keep_) return;
    std::free(base_);
    base_ = nullptr;
    size_ = 0;
  }

 private:
  static constexpr size_t keep_ = size_t{256} << 20;
  char* base_ = nullptr;
  size_t size_ = 0;
};
thread_local Arena arena;

const char* instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse4.1";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "unknown";
  }
}

int set_threads(int32_t count) {
  if (count < 0) return fail(STRATA_LIBRARY_INVALID, "set_threads", "count is negative");
  wanted_threads.store(count, std::memory_order_relaxed);
  return STRATA_LIBRARY_OK;
}

int cache_info(StrataLibraryCache* out) {
  if (!out || out->size < sizeof(StrataLibraryCache)) {
    return fail(STRATA_LIBRARY_INVALID, "cache_info", "out is null or its size field is too small");
  }
  PlanCache::instance().info(*out);
  return STRATA_LIBRARY_OK;
}

int cache_resize(int64_t capacity) {
  if (capacity < 0) return fail(STRATA_LIBRARY_INVALID, "cache_resize", "capacity is negative");
  return guarded("cache_resize", [&] {
    PlanCache::instance().resize(capacity);
    return int{STRATA_LIBRARY_OK};
  });
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl_stream_t stream() {
  thread_local dnnl::stream own(engine());
  return own.get();
}

int worker_count() {
  if (omp_in_parallel()) return 1;
  // OpenMP keeps its number per thread, so each thread that calls has to be told.
  int wanted = wanted_threads.load(std::memory_order_relaxed), now = omp_get_max_threads();
  if (wanted == 0 || wanted == now) return now;
  omp_set_num_threads(wanted);
  return wanted;
}

const char* openmp_runtime() {
  Dl_info found;
  return dladdr(reinterpret_cast<void*>(&GOMP_parallel), &found) && found.dli_fname ? found.dli_fname : "";
}

bool wide_vectors() {
  const auto core = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);  // the values are sets of bits
  static const bool wide = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & core) == core;
  return wide;
}

int fail(StrataLibraryStatus status, const char* where, const char* reason) noexcept {
  std::snprintf(error_text, sizeof error_text, "%s: %s", where, reason);
  return status;
}

const char* last_error() { return error_text; }

dnnl::primitive_attr scratch_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

int Plan::user(const dnnl::memory::desc& desc) {
  operands_.push_back({desc, users_++, 0});
  return static_cast<int>(operands_.size()) - 1;
}

int Plan::temporary(const dnnl::memory::desc& desc) {
  operands_.push_back({desc, -1, arena_});
  // An odd number of cache lines between operands keeps equal offsets out of the same cache set.
  arena_ += ((desc.get_size() + 63) & ~size_t{63}) + 17 * 64;
  return static_cast<int>(operands_.size()) - 1;
}

void Plan::step(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> argument_operands,
                const dnnl::memory::desc& scratchpad) {
  if (scratchpad.get_size() > 0) argument_operands.emplace_back(DNNL_ARG_SCRATCHPAD, temporary(scratchpad));
  steps_.push_back({primitive, std::move(argument_operands)});
}

int Plan::reordered(int from, const dnnl::memory::desc& wanted) {
  if (desc(from) == wanted) return from;
  int to = temporary(wanted);
  copied(from, to);
  return to;
}

void Plan::copied(int from, int to) {
  if (from == to) return;
  dnnl::reorder::primitive_desc how(engine(), desc(from), engine(), desc(to), scratch_attr());
  step(dnnl::reorder(how), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, how.scratchpad_desc());
}

std::unique_ptr<Binding> Plan::borrow() const {
  {
    std::lock_guard<std::mutex> lock(free_mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Binding> binding = std::move(free_.back());
      free_.pop_back();
      return binding;
    }
  }
  auto binding = std::make_unique<Binding>();
  for (const Operand& operand : operands_) {
    binding->memories.push_back(dnnl::memory(operand.desc, engine(), DNNL_MEMORY_NONE));
    binding->handles.push_back(nullptr);
  }
  for (const Step& step : steps_) {
    auto& args = binding->args.emplace_back();
    for (auto [arg, operand] : step.args) args.push_back({arg, binding->memories[operand].get()});
  }
  return binding;
}

int Plan::run(void* const* pointers) const {
  std::unique_ptr<Binding> binding = borrow();
  char* base = arena_ > 0 ? arena.at_least(arena_) : nullptr;
  for (size_t i = 0; i < operands_.size(); ++i) {
    void* handle = operands_[i].user >= 0 ? pointers[operands_[i].user] : base + operands_[i].offset;
    if (binding->handles[i] == handle) continue;
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(binding->memories[i].get(), handle), "cannot bind a pointer");
    binding->handles[i] = handle;
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& args = binding->args[i];
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(steps_[i].primitive.get(), stream(), static_cast<int>(args.size()), args.data()),
        "cannot execute");
  }
  {
    std::lock_guard<std::mutex> lock(free_mutex_);
    free_.push_back(std::move(binding));
  }
  arena.settle();
  return STRATA_LIBRARY_OK;
}

PlanCache& PlanCache::instance() {
  // Never destroyed: threads may still be in a call when the process ends.
  static PlanCache* cache = new PlanCache;
  return *cache;
}

bool PlanCache::find(const Key& key, CachedPlan& out) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = index_.find(key);
  if (found == index_.end()) {
    ++misses_;
    return false;
  }
  ++hits_;
  if (found->second != order_.begin()) order_.splice(order_.begin(), order_, found->second);
  out = found->second->second;
  return true;
}

void PlanCache::insert(const Key& key, const CachedPlan& value) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (capacity_ == 0 || index_.count(key)) return;  // another thread may have been faster
  order_.emplace_front(key, value);
  index_.emplace(key, order_.begin());
  trim();
}

void PlanCache::trim() {
  while (static_cast<int64_t>(order_.size()) > capacity_) {
    index_.erase(order_.back().first);
    order_.pop_back();
  }
}

void PlanCache::resize(int64_t capacity) {
  std::lock_guard<std::mutex> lock(mutex_);
  capacity_ = capacity;
  trim();
}

void PlanCache::info(StrataLibraryCache& out) {
  std::lock_guard<std::mutex> lock(mutex_);
  out.entries = static_cast<int64_t>(order_.size());
  out.capacity = capacity_;
  out.hits = hits_;
  out.misses = misses_;
}

static StrataLibrary table() {
  static const std::string version = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  StrataLibrary t{};
  t.size = sizeof(StrataLibrary);
  t.major = STRATA_LIBRARY_MAJOR;
  t.minor = STRATA_LIBRARY_MINOR;
  t.name = "oneDNN";
  t.version = version.c_str();
  t.instruction = instruction_set();
  t.last_error = last_error;
  t.openmp_runtime = openmp_runtime;
  t.set_threads = set_threads;
  t.matmul = matmul;
  t.conv_forward = conv_forward;
  t.conv_backward_data = conv_backward_data;
  t.conv_backward_weights = conv_backward_weights;
  t.cache_info = cache_info;
  t.cache_resize = cache_resize;
  t.prepare = prepare;
  return t;
}

}  // namespace strata::onednn

extern "C" __attribute__((visibility("default"))) const StrataLibrary* strata_library_v1(void) {
  try {
    static const StrataLibrary library = [] {
      strata::onednn::engine();
      // oneDNN keeps a table of primitives of its own; ours is the one that the host can bound.
      dnnl::set_primitive_cache_capacity(0);
      return strata::onednn::table();
    }();
    return &library;
  } catch (...) {
    return nullptr;
  }
}
