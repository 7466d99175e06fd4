#include "dispatch/autocast.h"

#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "dispatch/boxed.h"
#include "strata/generated/ops/copy.h"

namespace strata {

namespace {

// A leaf and its lower-precision copy, valid for one version of the leaf's storage. The leaf is kept, so that its
// address cannot become another tensor's.
struct Cached {
  Tensor leaf, copy;
  uint32_t version;
};

struct Saved {
  int device_type;
  AutocastState state;
  bool cache_enabled;
  bool excluded;  // the key was off on the thread, as it is in a backward run
};

struct ThreadState {
  AutocastState devices[kMaxDeviceTypes];
  bool cache_enabled = true;
  std::vector<Saved> scopes;
  std::unordered_map<TensorImpl*, Cached> cache;
};

ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

bool eligible(const Tensor& t, int device_type) {
  return t.defined() && t.device().type == device_type && t.is_floating_point() && t.dtype() != DType::F64;
}

Tensor cast(const Tensor& t, DType wanted, int device_type) {
  if (!eligible(t, device_type) || t.dtype() == wanted) return t;
  ThreadState& state = thread_state();
  bool keep = state.cache_enabled && dispatch_tls.grad_enabled && wanted == state.devices[device_type].dtype &&
              t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf() && !t.is_view() && !t.keys().has(Key::Python);
  if (!keep) return ops::to(t, wanted);
  auto at = state.cache.find(t.impl());
  if (at != state.cache.end() && at->second.version == t.version()) return at->second.copy;
  Tensor copy = ops::to(t, wanted);
  state.cache.insert_or_assign(t.impl(), Cached{t, copy, t.version()});
  return copy;
}

template <class F>
void each_tensor(Stack& stack, F&& f) {
  for (IValue& v : stack) {
    if (v.is_tensor()) {
      v = IValue(f(v.get<Tensor>()));
    } else if (v.is_tensors()) {
      IValue::TensorVec list = v.get<IValue::TensorVec>();
      for (Tensor& t : list) t = f(t);
      v = IValue(std::move(list));
    }
  }
}

constexpr const char* kSources[] = {"", "src/dispatch/autocast.cpp: lower precision",
                                    "src/dispatch/autocast.cpp: float32", "src/dispatch/autocast.cpp: widest"};

void run_cast(Autocast policy, int device_type, Operator& op, Dispatch d, Stack& stack) {
  AutocastState state = thread_state().devices[device_type];
  ExcludeGuard below{KeySet(Key::Autocast)};
  if (state.enabled) {
    DType wanted = policy == Autocast::Lower ? state.dtype : DType::F32;
    if (policy == Autocast::Promote) {
      wanted = state.dtype;
      each_tensor(stack, [&](const Tensor& t) {
        if (eligible(t, device_type) && t.dtype() == DType::F32) wanted = DType::F32;
        return t;
      });
    }
    each_tensor(stack, [&](const Tensor& t) { return cast(t, wanted, device_type); });
  }
  // Keys of the arguments may have changed: a copy of a leaf needs autograd as the leaf did. Those further inside are
  // the call's.
  const KeySet now = dispatch_of_stack(stack).keys.below(Key::Autocast);
  redispatch_boxed(op, {(now - now.below(Key::InplaceOrView)) | d.keys.below(Key::InplaceOrView), d.device}, stack);
}

template <Autocast Cpu, Autocast Devices>
void autocast_kernel(Operator& op, Dispatch d, Stack& stack) {
  const int device_type = d.device == kForeignDevice ? dispatch_of_stack(stack).device : d.device;
  const Autocast policy = device_type == 0 ? Cpu : Devices;
  if (policy == Autocast::Untouched) return redispatch_boxed(op, d.below(Key::Autocast), stack);
  run_cast(policy, device_type, op, d, stack);
}

// A result that is given has the dtype that is wanted: out= forms compute in it, as their operands say.
void out_kernel(Operator& op, Dispatch d, Stack& stack) {
  ExcludeGuard below{KeySet(Key::Autocast)};
  redispatch_boxed(op, d.below(Key::Autocast), stack);
}

template <size_t... I>
std::array<BoxedKernel, sizeof...(I)> all_kernels(std::index_sequence<I...>) {
  return {BoxedKernel{&autocast_kernel<Autocast(I / 4), Autocast(I % 4)>, kSources[I / 4 ? I / 4 : I % 4]}...};
}

void register_policies() {
  OperatorTable& table = OperatorTable::instance();
  static const auto kernels = all_kernels(std::make_index_sequence<16>());
  static const BoxedKernel for_out{out_kernel, "src/dispatch/autocast.cpp: out="};
  for (const AutocastPolicy* p = autocast_policies; p->op; ++p) {
    Operator& op = table.get(p->op);
    const BoxedKernel& kernel = kernels[size_t(p->cpu) * 4 + size_t(p->devices)];
    auto give = [&](Operator& to, const BoxedKernel& of) {
      if (to.slots[static_cast<int>(Key::Autocast)].empty())
        table.impl(to, Key::Autocast, 0, nullptr, &of, of.source.c_str(), true);
    };
    give(op, kernel);
    const std::string base = op.name.substr(0, op.name.find('.'));
    for (Operator* form : table.overloads(base)) {
      const auto& args = form->schema().args;
      if (!args.empty() && args.back().type.written && args.back().keyword_only) give(*form, for_out);
    }
  }
}

constexpr KeySet kKey(Key::Autocast);

void set_excluded(bool excluded) {
  dispatch_tls.exclude = excluded ? dispatch_tls.exclude | kKey : dispatch_tls.exclude - kKey;
  refresh_tls_mask();
}

void refresh_keys() {
  bool any = false;
  for (const AutocastState& s : thread_state().devices) any |= s.enabled;
  dispatch_tls.include = any ? dispatch_tls.include | kKey : dispatch_tls.include - kKey;
}

}  // namespace

AutocastState autocast_state(int device_type) { return thread_state().devices[device_type]; }

void set_autocast_state(int device_type, AutocastState state) {
  static std::once_flag once;
  std::call_once(once, register_policies);
  STRATA_CHECK_VALUE(!state.enabled || state.dtype == DType::BF16 || state.dtype == DType::F16,
                     "autocast: expected dtype ", "strata.bfloat16 or strata.float16, got ", state.dtype);
  thread_state().devices[device_type] = state;
  refresh_keys();
}

bool autocast_cache_enabled() { return thread_state().cache_enabled; }
void set_autocast_cache_enabled(bool enabled) { thread_state().cache_enabled = enabled; }
void clear_autocast_cache() { thread_state().cache.clear(); }
int autocast_depth() { return int(thread_state().scopes.size()); }

void autocast_enter(int device_type, DType dtype, bool enabled, bool cache_enabled) {
  ThreadState& state = thread_state();
  Saved saved{device_type, state.devices[device_type], state.cache_enabled, dispatch_tls.exclude.has(Key::Autocast)};
  set_autocast_state(device_type, {enabled, dtype});
  if (enabled) set_excluded(false);
  state.cache_enabled = cache_enabled;
  state.scopes.push_back(saved);
}

void autocast_exit() {
  ThreadState& state = thread_state();
  STRATA_CHECK(!state.scopes.empty(), "autocast: exit without enter");
  Saved saved = state.scopes.back();
  state.scopes.pop_back();
  if (state.scopes.empty()) clear_autocast_cache();
  state.cache_enabled = saved.cache_enabled;
  state.devices[saved.device_type] = saved.state;
  set_excluded(saved.excluded);
  refresh_keys();
}

}  // namespace strata
