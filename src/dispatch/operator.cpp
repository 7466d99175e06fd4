#include "dispatch/operator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/near.h"
#include "dispatch/boxed.h"

namespace strata {

constinit thread_local DispatchTls dispatch_tls;
std::atomic<const CallObserver*> call_observer{nullptr};

struct OperatorTable::State {
  std::recursive_mutex lock;
  std::unordered_map<std::string_view, Operator*> by_name;
  std::vector<Operator*> order;
  std::vector<Operator*> sorted;  // by name; empty until it is asked for and after a change
  uint32_t with_fallback = 0;     // a bit for each key of `fallbacks`
  Slot fallbacks[kKeyCount], served[kKeyCount];
  Slot foreign, devices[kMaxDeviceTypes], device_fallbacks[kMaxDeviceTypes];
  std::atomic<uint64_t> with_device_fallback{0};  // a bit for each device of `device_fallbacks`
  static_assert(kMaxDeviceTypes <= 64);
};

OperatorTable& OperatorTable::instance() {
  static OperatorTable* t = new OperatorTable;
  return *t;
}

OperatorTable::State& OperatorTable::state() {
  static State* s = [] {
    State* made = new State;
    made->by_name.reserve(4096);  // the table's operators and some more
    made->order.reserve(4096);
    return made;
  }();
  return *s;
}

const Schema& Operator::schema() const {
  const Schema* s = schema_.load(std::memory_order_acquire);
  if (s) return *s;
  const Schema* fresh = new Schema(parse_schema(schema_text));
  if (!schema_.compare_exchange_strong(s, fresh)) {
    delete fresh;
    return *s;
  }
  return *fresh;
}

namespace {
// Operators live for ever, and nearly all are defined while the library is opened: side by side in a large page they
// cost one page fault where they cost 430, a millisecond at least. Called with the table's lock held.
void* room_for_operator() {
  constexpr size_t kLargePage = 2 << 20;
  static char* at = nullptr;
  static size_t left = 0;
  if (left < sizeof(Operator)) {
    at = static_cast<char*>(std::aligned_alloc(kLargePage, kLargePage));
    if (!at) throw std::bad_alloc();
    madvise(at, kLargePage, MADV_HUGEPAGE);
    left = kLargePage;
  }
  left -= sizeof(Operator);
  return std::exchange(at, at + sizeof(Operator));
}
}  // namespace

Operator& OperatorTable::define(const char* schema_text) {
  std::string_view text = schema_text;
  const std::string_view name = text.substr(0, text.find('('));
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  if (auto it = s.by_name.find(name); it != s.by_name.end()) {
    STRATA_CHECK(it->second->schema_text == text, "define: operator ", name, " exists already with the schema ",
                 it->second->schema_text, "; got ", text, "; use another name or overload");
    return *it->second;
  }
  Operator* op = new (room_for_operator()) Operator;
  op->schema_text = schema_text;
  op->name = name;
  op->handled = 1 | s.with_fallback;
  s.by_name.emplace(op->name, op);
  s.order.push_back(op);
  s.sorted.clear();
  return *op;
}

void OperatorTable::remove(Operator& op) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  s.by_name.erase(op.name);
  s.sorted.clear();
  s.order.erase(std::remove(s.order.begin(), s.order.end(), &op), s.order.end());
}

Operator* OperatorTable::find(std::string_view name) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  auto it = s.by_name.find(name);
  return it == s.by_name.end() ? nullptr : it->second;
}

Operator& OperatorTable::get(std::string_view name) {
  if (Operator* op = find(name)) return *op;
  std::string near;
  for (const std::string& other : near_names(name)) near += " " + other;
  throw_error(ErrorKind::Runtime, str_cat("operator: expected the name of a registered operator, got ", name,
                                          near.empty() ? "; see strata.ops.names()" : "; did you mean one of", near));
}

namespace {
std::string_view without_overload(std::string_view name) { return name.substr(0, name.find('.')); }
}  // namespace

std::vector<std::string> OperatorTable::near_names(std::string_view name) {
  std::vector<std::string> found;
  for (Operator* op : overloads(without_overload(name))) found.push_back(op->name);
  if (!found.empty()) return found;
  size_t least = 3;  // more letters are another word
  for (Operator* op : all()) {
    const std::string_view a = without_overload(name), b = without_overload(op->name);
    if (a.size() > b.size() + 2 || b.size() > a.size() + 2) continue;
    const size_t d = letters_apart(a, b);
    if (d < least) found.clear();
    if (d <= least && d < 3) found.push_back(op->name);
    least = std::min(least, d);
  }
  return found;
}

std::vector<Operator*> OperatorTable::overloads(std::string_view base) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  if (s.sorted.empty()) {
    s.sorted = s.order;
    std::ranges::sort(s.sorted, {}, &Operator::name);
  }
  std::vector<Operator*> found;
  const auto first =
      std::ranges::lower_bound(s.sorted, base, {}, [](Operator* op) -> std::string_view { return op->name; });
  for (auto it = first; it != s.sorted.end() && (*it)->name.starts_with(base); ++it) {
    const std::string& n = (*it)->name;
    if (n.size() == base.size() || n[base.size()] == '.') found.push_back(*it);
  }
  return found;
}

std::vector<Operator*> OperatorTable::all() {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  return s.order;
}

namespace {
Slot& slot_of(Operator& op, Key key, int device) {
  if (key != Key::Backend) return op.slots[static_cast<int>(key)];
  return device == kCompositeSlot ? op.composite : op.backend[device];
}
std::string slot_name(Key key, int device) {
  if (key != Key::Backend) return key_name(key);
  return device == kCompositeSlot ? "Composite" : str_cat("Backend of ", device_type_name(device));
}
}  // namespace

OperatorTable::Saved OperatorTable::impl(Operator& op, Key key, int device, void* typed, const BoxedKernel* boxed,
                                         const char* source, bool quiet) {
  Saved saved;
  {
    std::lock_guard<std::recursive_mutex> hold(state().lock);
    Slot& slot = slot_of(op, key, device);
    saved = {slot.typed.load(), slot.boxed.load(), slot.source, slot.fallthrough};
  }
  // Without the lock: a front end's warning runs the user's code, and may raise.
  if ((saved.typed || saved.boxed) && !quiet)
    warn(str_cat("Overriding a previously registered kernel for the same operator and the same dispatch key: operator ",
                 op.name, ", key ", slot_name(key, device), ", previous kernel from ",
                 saved.source ? saved.source : "an unknown source", ", new kernel from ",
                 source ? source : "an unknown source"));
  restore(op, key, device, {typed, boxed, source, false});
  return saved;
}

void OperatorTable::restore(Operator& op, Key key, int device, Saved saved) {
  std::lock_guard<std::recursive_mutex> hold(state().lock);
  Slot& slot = slot_of(op, key, device);
  // A reader that finds no typed kernel reads the boxed one next, so that one is written first.
  slot.boxed.store(saved.boxed, std::memory_order_release);
  slot.typed.store(saved.typed, std::memory_order_release);
  slot.source = saved.source;
  slot.fallthrough = saved.fallthrough;
  refresh(op, key);
}

void OperatorTable::composite(Operator& op, void* typed, const char* source) {
  std::lock_guard<std::recursive_mutex> hold(state().lock);
  op.composite.typed = typed;
  op.composite.source = source;
}

void table_kernel(Operator& op, TableSlot slot, void* typed) {
  OperatorTable& table = OperatorTable::instance();
  const char* source = op.record + 1;  // its first field (dispatch/info.h)
  if (slot == TableSlot::Composite) return table.composite(op, typed, source);
  const Key key = slot == TableSlot::Backend    ? Key::Backend
                  : slot == TableSlot::Autograd ? Key::Autograd
                                                : Key::InplaceOrView;
  table.impl(op, key, 0, typed, nullptr, source, true);
}

OperatorTable::Saved OperatorTable::fallthrough(Operator& op, Key key) {
  std::lock_guard<std::recursive_mutex> hold(state().lock);
  Slot& slot = op.slots[static_cast<int>(key)];
  Saved saved{slot.typed.load(), slot.boxed.load(), slot.source, slot.fallthrough};
  slot.fallthrough = true;
  refresh(op, key);
  return saved;
}

void OperatorTable::fallback(Key key, const BoxedKernel* kernel) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  if (kernel) s.served[static_cast<int>(key)].boxed.store(kernel, std::memory_order_release);
  s.fallbacks[static_cast<int>(key)].boxed = kernel;
  const uint32_t bit = 1u << static_cast<int>(key);
  s.with_fallback = kernel ? s.with_fallback | bit : s.with_fallback & ~bit;
  for (Operator* op : s.order) refresh(*op, key);
}

const BoxedKernel* OperatorTable::fallback_of(Key key) const {
  return const_cast<OperatorTable*>(this)->state().fallbacks[static_cast<int>(key)].boxed;
}

const Slot& OperatorTable::fallback_slot(Key key) { return state().served[static_cast<int>(key)]; }

void OperatorTable::foreign(const BoxedKernel* kernel) { state().foreign.boxed = kernel; }
const Slot& OperatorTable::foreign_slot() { return state().foreign; }

void OperatorTable::device(int type, const BoxedKernel* kernel) { state().devices[type].boxed = kernel; }

// As the fallback of a key, the last one stays in its slot for calls that have found it.
void OperatorTable::device_fallback(int type, const BoxedKernel* kernel) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> hold(s.lock);
  if (kernel) s.device_fallbacks[type].boxed.store(kernel, std::memory_order_release);
  const uint64_t bit = uint64_t(1) << type;
  const uint64_t on = s.with_device_fallback.load(std::memory_order_relaxed);
  s.with_device_fallback.store(kernel ? on | bit : on & ~bit, std::memory_order_release);
}

const Slot& OperatorTable::device_slot(int type, bool below_fallback) {
  State& s = state();
  const bool fallback = s.with_device_fallback.load(std::memory_order_acquire) >> type & 1;
  return fallback && !below_fallback ? s.device_fallbacks[type] : s.devices[type];
}

void OperatorTable::refresh(Operator& op, Key key) {
  if (key == Key::Backend) return;  // every operator handles it
  const int k = static_cast<int>(key);
  const uint32_t bit = 1u << k;
  const bool handles = !op.slots[k].fallthrough && (!op.slots[k].empty() || (state().with_fallback & bit));
  op.handled.store(handles ? op.handled | bit : op.handled & ~bit, std::memory_order_release);
}

const Slot& Operator::key_fallback(Key k, Dispatch) const {
  OperatorTable& table = OperatorTable::instance();
  STRATA_CHECK_NOT_IMPLEMENTED(table.fallback_of(k), name, ": no kernel for the key ", key_name(k),
                               "; register one with strata.library");
  return table.fallback_slot(k);
}

const Slot& Operator::missing(Dispatch d) const {
  if (d.device == kForeignDevice) {
    if (const Slot& slot = OperatorTable::instance().foreign_slot(); !slot.empty()) return slot;
  } else if (const Slot& slot = OperatorTable::instance().device_slot(d.device); !slot.empty()) {
    return slot;
  }
  // Every kernel of the CPU stops at the shape when a tensor has no memory.
  if (Device{int8_t(d.device), -1}.is_meta() && !backend[0].empty()) return backend[0];
  std::string have;
  for (int i = 0; i < kMaxDeviceTypes; ++i)
    if (!backend[i].empty()) have += (have.empty() ? "" : ", ") + device_type_name(i);
  throw_error(ErrorKind::NotImplemented,
              str_cat("Could not run '", name, "' with arguments from the '", device_type_name(d.device),
                      "' device: it has no kernel for it; kernels exist for: ", have.empty() ? "no device" : have,
                      "; load the plugin that offers the device, register a kernel with strata.library or move the "
                      "tensors"));
}

namespace {
std::string describe(const Slot& slot) {
  if (slot.fallthrough) return "falls through";
  if (slot.empty()) return "-";
  return str_cat(slot.typed.load() ? "typed" : "boxed", " kernel from ",
                 slot.source ? slot.source : "an unknown source");
}
}  // namespace

std::string OperatorTable::dump(const Operator& op) {
  std::string out = str_cat(op.schema_text, "\n");
  for (int k = kKeyCount - 1; k > 0; --k) {
    const Slot& slot = op.slots[k];
    const BoxedKernel* fallback = state().fallbacks[k].boxed;
    if (slot.empty() && !slot.fallthrough && !fallback) continue;
    out += str_cat(
        "  ", key_name(static_cast<Key>(k)), ": ",
        slot.empty() && !slot.fallthrough ? str_cat("fallback of the key, from ", fallback->source) : describe(slot),
        "\n");
  }
  for (int d = 0; d < kMaxDeviceTypes; ++d)
    if (!op.backend[d].empty()) out += str_cat("  Backend[", device_type_name(d), "]: ", describe(op.backend[d]), "\n");
  if (op.is_composite()) out += str_cat("  Composite: ", describe(op.composite), "\n");
  return out;
}

namespace {
// What serves operators without a kernel of their own for a device.
std::string device_wide(int device) {
  if (device == kForeignDevice) return "no kernel";
  const BoxedKernel* kernel = OperatorTable::instance().device_slot(device).boxed.load();
  return kernel ? str_cat("what serves all operators of the device, from ", kernel->source) : "no kernel";
}
}  // namespace

std::string explain_dispatch(Operator& op, const Stack& args) {
  Dispatch all = dispatch_of_stack(args);
  KeySet handled(op.handled.load());
  std::string out = str_cat(op.schema_text, "\n");
  for (int k = kKeyCount - 1; k >= 0; --k) {
    Key key = static_cast<Key>(k);
    if (!all.keys.has(key)) continue;
    const Slot& slot = key == Key::Backend ? op.backend[all.device] : op.slots[k];
    std::string what;
    if (key == Key::Backend) {
      what = !slot.empty()       ? describe(slot)
             : op.is_composite() ? str_cat("composite of other operators, from ", op.composite.source)
                                 : device_wide(all.device);
      out += str_cat("  ", key_name(key), "[", device_type_name(all.device), "]: ", what, "\n");
      continue;
    }
    if (!handled.has(key))
      what = slot.fallthrough ? "falls through" : "passed: nothing registered";
    else
      what = slot.empty() ? str_cat("fallback of the key, from ", OperatorTable::instance().fallback_of(key)->source)
                          : describe(slot);
    out += str_cat("  ", key_name(key), ": ", what, "\n");
  }
  KeySet masked = dispatch_tls.mask;
  for (int k = kKeyCount - 1; k > 0; --k)
    if (masked.has(static_cast<Key>(k))) out += str_cat("  ", key_name(static_cast<Key>(k)), ": off on this thread\n");
  Dispatch d{all.keys & handled, all.device};
  out += str_cat("  first: ", key_name(d.keys.highest()), "\n");
  return out;
}

}  // namespace strata
