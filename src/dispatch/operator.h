// Operators and their kernels: one row per operator, one slot per key, and for the Backend key one per device type.
// A slot holds a typed function pointer (fast) or a boxed kernel (fallbacks, Python). Registration is rare and locked;
// calls read slots without locks, so replaced kernels stay allocated.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/ivalue.h"
#include "dispatch/schema.h"
#include "dispatch/tls.h"

namespace strata {

class Operator;

// The keys that a call still has to pass, outermost first, and the device type that will serve it.
struct Dispatch {
  KeySet keys;
  int32_t device = 0;
  Dispatch below(Key k) const { return {keys.below(k), device}; }
};

// Takes the arguments from the stack and leaves the results there.
struct BoxedKernel {
  std::function<void(Operator&, Dispatch, Stack&)> fn;
  std::string source;  // who registered it, for warnings and dumps
};

// Beside the device types: kernels that serve every device, and those of tensors that a front end runs itself (Python
// subclasses), which come after autograd and bookkeeping like a device's.
constexpr int kCompositeSlot = -1;
constexpr int kForeignDevice = kMaxDeviceTypes;

struct Slot {
  std::atomic<void*> typed{nullptr};
  std::atomic<const BoxedKernel*> boxed{nullptr};
  const char* source = nullptr;
  bool fallthrough = false;
  bool empty() const { return !typed.load(std::memory_order_relaxed) && !boxed.load(std::memory_order_relaxed); }
};

class Operator {
 public:
  const char* schema_text;
  const char* record = nullptr;  // what the table says of it (dispatch/info.h)
  std::string name;              // "aten::add.Tensor"
  // Calls a typed kernel with arguments from a stack.
  void (*call_typed_boxed)(void* typed, Dispatch d, Stack& stack) = nullptr;

  Slot slots[kKeyCount];
  Slot backend[kMaxDeviceTypes + 1];
  Slot composite;  // serves every device that has no kernel of its own, above autograd
  std::atomic<uint32_t> handled{1};

  const Schema& schema() const;  // parsed at first use
  bool is_composite() const { return !composite.empty(); }
  // The slot that serves `d`, or an error that lists what exists.
  const Slot& find(Dispatch d) const {
    Key k = d.keys.highest();
    if (STRATA_LIKELY(k == Key::Backend)) {
      const Slot& s = backend[d.device];
      if (STRATA_LIKELY(!s.empty())) return s;
      if (!composite.empty()) return composite;
      return missing(d);
    }
    const Slot& s = slots[static_cast<int>(k)];
    return STRATA_LIKELY(!s.empty()) ? s : key_fallback(k, d);
  }

 private:
  const Slot& missing(Dispatch d) const;
  const Slot& key_fallback(Key k, Dispatch d) const;
  mutable std::atomic<const Schema*> schema_{nullptr};
};

class OperatorTable {
 public:
  static OperatorTable& instance();
  // Raises when an operator of that name exists with another schema.
  Operator& define(const char* schema_text);
  // Takes the name out of the table; the operator itself stays, since calls may be running.
  void remove(Operator& op);
  Operator* find(std::string_view name);                    // "aten::add.Tensor"; null when there is none
  Operator& get(std::string_view name);                     // or a Runtime error with near names
  std::vector<Operator*> overloads(std::string_view base);  // of "aten::add"
  // Its overloads, or where there are none the operators whose names differ least, in one or two letters.
  std::vector<std::string> near_names(std::string_view name);
  std::vector<Operator*> all();

  // `device` matters for Key::Backend, where kCompositeSlot is one too. A kernel that is there already is replaced with
  // a warning that names both sources, unless `quiet`. Returns what was there, for restore().
  struct Saved {
    void* typed;
    const BoxedKernel* boxed;
    const char* source;
    bool fallthrough;
  };
  Saved impl(Operator& op, Key key, int device, void* typed, const BoxedKernel* boxed, const char* source,
             bool quiet = false);
  void restore(Operator& op, Key key, int device, Saved saved);
  void composite(Operator& op, void* typed, const char* source);
  Saved fallthrough(Operator& op, Key key);
  // Whole-key registration: serves every operator without a kernel for `key` that is not set to fall through.
  void fallback(Key key, const BoxedKernel* kernel);  // null removes it
  const BoxedKernel* fallback_of(Key key) const;
  // What serves the operators without a kernel of their own for `key`; it changes in fallback() alone, and keeps the
  // last kernel when that is taken away, for calls that have found it.
  const Slot& fallback_slot(Key key);
  // Serves every operator that is not composite for kForeignDevice.
  void foreign(const BoxedKernel* kernel);
  const Slot& foreign_slot();
  // Serves every operator that is not composite and has no kernel of its own for a device from outside.
  void device(int type, const BoxedKernel* kernel);
  // The same of a program, for any device: it comes before that. Null removes it.
  void device_fallback(int type, const BoxedKernel* kernel);
  // What serves those operators: a program's fallback, unless it is asked for what is below that.
  const Slot& device_slot(int type, bool below_fallback = false);
  std::string dump(const Operator& op);

 private:
  void refresh(Operator& op, Key key);  // whether calls of the operator stop at that key
  struct State;
  State& state();
};

// A typed kernel of the table, whose source is the operator's entry.
enum class TableSlot : uint8_t { Backend, Composite, Autograd, InplaceOrView };
void table_kernel(Operator& op, TableSlot slot, void* typed);

// Recorded around each call while a profiler runs.
struct CallObserver {
  void (*begin)(Operator& op);
  void (*end)(Operator& op);
  // After begin, for each argument in order, where it is set: no tensors and no list where it is something else.
  void (*argument)(const Tensor* tensors, size_t count, bool list) = nullptr;
};
extern std::atomic<const CallObserver*> call_observer;

std::string explain_dispatch(Operator& op, const Stack& args);

}  // namespace strata
