// The null device: its dialect is the host compiler's, with groups. STRATA_NULL_WITHOUT names parts of the table that
// it shall not have.
#include <cstring>

#include "null.h"

namespace null {

namespace {

struct Null {
  static constexpr const char *name = "null", *version = "0.1";
  using Memory = null::Memory;
  using Kernel = null::Kernel;
  using Queue = null::Queue;
  using Event = null::Event;
  using Graph = null::Graph;
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

StrataDialect without_groups() {
  StrataDialect d = Null::dialect();
  d.group = 0;
  return d;
}

StrataDevice without(const StrataDevice& whole) {
  const char* names = std::getenv("STRATA_NULL_WITHOUT");
  const auto lacks = [&](const char* part) { return names && std::strstr(names, part); };
  static const StrataDialect plain = without_groups();
  StrataDevice t = whole;
  if (lacks("groups")) t.dialect = &plain;
  if (lacks("identity")) t.identity = nullptr;
  if (lacks("events")) t.event_create = nullptr;
  if (lacks("pinned")) t.host_allocate = nullptr;
  if (lacks("peers")) t.peer_copy = nullptr;
  if (lacks("library")) t.operator_find = nullptr;
  if (lacks("graphs")) t.graph_create = nullptr;
  return t;
}

}  // namespace

}  // namespace null

extern "C" __attribute__((visibility("default"))) const StrataDevice* strata_device_v0(const StrataHost* host,
                                                                                       char* error, uint64_t room) {
  const StrataDevice* whole = strata::sdk::offer<null::Null>(host, error, room);
  if (!whole) return nullptr;
  static const StrataDevice table = null::without(*whole);
  return &table;
}
