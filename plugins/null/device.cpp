// The null device: its dialect is the host compiler's, with groups.
#include "null.h"

namespace null {

namespace {

struct Null {
  static constexpr const char *name = "null", *version = "0.1";
  using Memory = null::Memory;
  using Kernel = null::Kernel;
  using Queue = null::Queue;
  using Event = null::Event;
  struct Module {
    Module(int32_t device, const char* text) : program((check_device(device), text)) {}
    Kernel kernel(const char* entry) { return reinterpret_cast<Kernel>(program.entry(entry)); }
    sdk::HostProgram program;
  };
  static int32_t count() { return devices(); }
  static Memory allocate(int32_t device, uint64_t bytes) { return null::allocate(device, bytes); }
  static void release(int32_t device, Memory memory) { null::release(device, memory); }
  static void* host_allocate(int32_t device, uint64_t bytes) { return null::host_allocate(device, bytes); }
  static void host_release(int32_t device, void* memory) { null::host_release(device, memory); }
  // The host's compiler keeps its programs itself.
  static const char* identity(int32_t) { return "the host's compiler"; }
  static bool offers(int32_t, const char* op) { return null::offers(op); }
  using Operator = null::Operator;
  static Operator find_operator(int32_t device, const char* name) { return null::find_operator(device, name); }
  static bool run_operator(Queue* queue, Operator op, const StrataOperand* results, uint32_t result_count,
                           const StrataOperand* arguments, uint32_t argument_count) {
    return null::run_operator(queue, op, results, result_count, arguments, argument_count);
  }

  static StrataDialect dialect() {
    StrataDialect d = sdk::host_dialect();
    d.apart = "restrict ";
    d.group = 16;
    d.group_entry = "void ";
    d.barrier = "((void (*)(void))scratch[-1])();";
    return d;
  }
};

}  // namespace

}  // namespace null

STRATA_OFFER_DEVICE(null::Null)
