// The profiler's recording: operator calls and backward nodes as events in a buffer per thread, without the interpreter
// lock. Off, it costs a call one load.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>

#include "dispatch/boxed.h"
#include "grad/engine.h"
#include "py_tensor.h"
#include "py_types.h"

namespace strata::py {

namespace {

enum Kind : int64_t { OperatorCall, BackwardNode };

struct Event {
  const char* name;
  int64_t start, end;
  int64_t sequence_nr;
  Kind kind;
};

struct Buffer {
  std::mutex lock;  // against the collection only
  int64_t thread_id;
  uint64_t session = 0;
  std::vector<Event> events;
  std::vector<size_t> open;
};

std::mutex registry_lock;
std::vector<std::shared_ptr<Buffer>>& registry() {
  static auto* buffers = new std::vector<std::shared_ptr<Buffer>>;
  return *buffers;
}
std::atomic<uint64_t> session{0};  // odd while recording

Buffer& buffer() {
  static thread_local std::shared_ptr<Buffer> mine;
  if (!mine) {
    mine = std::make_shared<Buffer>();
    mine->thread_id = syscall(SYS_gettid);
    std::lock_guard<std::mutex> hold(registry_lock);
    registry().push_back(mine);
  }
  return *mine;
}

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

void open_event(const char* name, int64_t sequence_nr, Kind kind) {
  Buffer& b = buffer();
  std::lock_guard<std::mutex> hold(b.lock);
  uint64_t s = session.load(std::memory_order_relaxed);
  if (b.session != s) {
    b.session = s;
    b.events.clear();
    b.open.clear();
  }
  b.open.push_back(b.events.size());
  b.events.push_back({name, 0, 0, sequence_nr, kind});
  b.events.back().start = now();
}

void close_event() {
  int64_t at = now();
  Buffer& b = buffer();
  std::lock_guard<std::mutex> hold(b.lock);
  // What was begun in a session that has ended is not missed.
  if (b.session != session.load(std::memory_order_relaxed) || b.open.empty()) return;
  Event& e = b.events[b.open.back()];
  b.open.pop_back();
  e.end = at;
  // A call that made no node has no backward to be linked to.
  if (e.kind == OperatorCall && e.sequence_nr == int64_t(Node::current_sequence())) e.sequence_nr = -1;
}

// "add" of "aten::add.Tensor", "mylib::f" of "mylib::f"; one text per operator.
const char* event_name(Operator& op) {
  static thread_local std::unordered_map<Operator*, const char*> names;
  const char*& name = names[&op];
  if (!name) {
    std::string text = op.name.substr(0, op.name.find('.'));
    name = lasting_text(text.starts_with("aten::") ? text.substr(6) : text);
  }
  return name;
}

void begin_call(Operator& op) { open_event(event_name(op), int64_t(Node::current_sequence()), OperatorCall); }
void end_call(Operator&) { close_event(); }
void begin_node(Node& node) {
  open_event(lasting_text(node.name()), node.is_accumulator() ? -1 : int64_t(node.sequence_nr), BackwardNode);
}
void end_node(Node&) { close_event(); }

constexpr CallObserver calls{begin_call, end_call};
constexpr NodeObserver nodes{begin_node, end_node};

// _profiler_start(record_shapes=False)
PyObject* start(PyObject*, PyObject* args) {
  int record_shapes = 0;
  if (!PyArg_ParseTuple(args, "|p", &record_shapes)) return nullptr;
  return guarded([&]() -> PyObject* {
    STRATA_CHECK_NOT_IMPLEMENTED(!record_shapes, "profiler: record_shapes=True is not there yet; leave it False");
    STRATA_CHECK(session.load() % 2 == 0, "profiler: it is recording already; stop it first");
    ++session;
    call_observer = &calls;
    node_observer = &nodes;
    Py_RETURN_NONE;
  });
}

// _profiler_stop() -> [(name, start_ns, end_ns, thread_id, seq_nr, kind)]; open events end now.
PyObject* stop(PyObject*, PyObject*) {
  return guarded([&] {
    STRATA_CHECK(session.load() % 2 == 1, "profiler: it is not recording; start it first");
    call_observer = nullptr;
    node_observer = nullptr;
    uint64_t ended = session++;
    int64_t at = now();
    std::vector<std::shared_ptr<Buffer>> buffers;
    {
      std::lock_guard<std::mutex> hold(registry_lock);
      buffers = registry();
    }
    Own list(checked(PyList_New(0)));
    for (const auto& b : buffers) {
      std::vector<Event> events;
      {
        std::lock_guard<std::mutex> hold(b->lock);
        if (b->session != ended) continue;
        events.swap(b->events);
        b->open.clear();
      }
      for (const Event& e : events) {
        Own item(checked(Py_BuildValue("(sLLLLL)", e.name, static_cast<long long>(e.start),
                                       static_cast<long long>(e.end ? e.end : at), static_cast<long long>(b->thread_id),
                                       static_cast<long long>(e.sequence_nr), static_cast<long long>(e.kind))));
        checked(PyList_Append(list.get(), item.get()));
      }
    }
    return list.release();
  });
}

PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(session.load() % 2 == 1); }

PyMethodDef functions[] = {{"_profiler_start", start, METH_VARARGS, nullptr},
                           {"_profiler_stop", stop, METH_NOARGS, nullptr},
                           {"_profiler_enabled", is_recording, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_profiler(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
