// The profiler's recording: operator calls and backward nodes as events in a buffer per thread, without the interpreter
// lock. Off, it costs a call one load.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>

#include "bind/process/lock.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"
#include "dispatch/boxed.h"
#include "grad/engine/engine.h"

namespace strata::py {

namespace {

enum Kind : int64_t { OperatorCall, BackwardNode };

// What is recorded on request. A shape of an argument that is no tensor is empty.
struct Detail {
  struct Argument {
    std::vector<DimVec> shapes;
    bool list;
  };
  std::vector<Argument> arguments;
  std::string stack;  // a line for each call, the innermost first
};

struct Event {
  const char* name;
  int64_t start, end;
  int64_t sequence_nr;
  Kind kind;
  std::unique_ptr<Detail> detail;
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
std::atomic<bool> with_shapes{false}, with_stack{false};

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

std::string python_lines() {
  if (!interpreter_alive()) return "";
  HoldLock lock;
  KeepError error;
  try {
    return text_of(call_object(import_attr("strata._profiler_events", "_stack").get(), make_tuple().get()).get());
  } catch (const PythonError&) {
    PyErr_Clear();
    return "";
  }
}

void open_event(const char* name, int64_t sequence_nr, Kind kind) {
  std::unique_ptr<Detail> detail;
  if (with_shapes || with_stack) detail = std::make_unique<Detail>();
  if (with_stack) detail->stack = python_lines();
  Buffer& b = buffer();
  std::lock_guard<std::mutex> hold(b.lock);
  uint64_t s = session.load(std::memory_order_relaxed);
  if (b.session != s) {
    b.session = s;
    b.events.clear();
    b.open.clear();
  }
  b.open.push_back(b.events.size());
  b.events.push_back({name, 0, 0, sequence_nr, kind, std::move(detail)});
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

// "aten::add" of "aten::add.Tensor"; one text per operator.
const char* event_name(Operator& op) {
  static thread_local std::unordered_map<Operator*, const char*> names;
  const char*& name = names[&op];
  if (!name) name = lasting_text(op.name.substr(0, op.name.find('.')));
  return name;
}

void begin_call(Operator& op) { open_event(event_name(op), int64_t(Node::current_sequence()), OperatorCall); }
void end_call(Operator&) { close_event(); }
void begin_node(Node& node) {
  open_event(lasting_text(node.name()), node.is_accumulator() ? -1 : int64_t(node.sequence_nr), BackwardNode);
}
void end_node(Node&) { close_event(); }

void note_argument(const Tensor* tensors, size_t count, bool list) {
  Buffer& b = buffer();
  std::lock_guard<std::mutex> hold(b.lock);
  if (b.session != session.load(std::memory_order_relaxed) || b.open.empty()) return;
  Event& e = b.events[b.open.back()];
  if (!e.detail) return;
  Detail::Argument a{{}, list};
  for (size_t i = 0; i < count; ++i) a.shapes.push_back(tensors[i].defined() ? DimVec(tensors[i].sizes()) : DimVec());
  e.detail->arguments.push_back(std::move(a));
}

constexpr CallObserver calls{begin_call, end_call};
constexpr CallObserver calls_with_shapes{begin_call, end_call, note_argument};
constexpr NodeObserver nodes{begin_node, end_node};

// Shapes as PyTorch shows them: a list for each argument, of lists for a list of tensors.
Own shapes_of(const Detail& detail) {
  Own list(checked(PyList_New(0)));
  for (const Detail::Argument& a : detail.arguments) {
    Own shapes(checked(PyList_New(0)));
    for (const DimVec& sizes : a.shapes) {
      Own shape(checked(PySequence_List(Own(make_ints(sizes)).get())));
      if (a.list)
        checked(PyList_Append(shapes.get(), shape.get()));
      else
        shapes = std::move(shape);
    }
    checked(PyList_Append(list.get(), shapes.get()));
  }
  return list;
}

// _profiler_start(record_shapes=False, with_stack=False)
PyObject* start(PyObject*, PyObject* args) {
  int record_shapes = 0, stack = 0;
  if (!PyArg_ParseTuple(args, "|pp", &record_shapes, &stack)) return nullptr;
  return guarded([&]() -> PyObject* {
    STRATA_CHECK(session.load() % 2 == 0, "profiler: it is recording already; stop it first");
    if (stack) import_attr("strata._profiler_events", "_stack");  // not in the middle of a call
    ++session;
    with_shapes = record_shapes != 0;
    with_stack = stack != 0;
    call_observer = record_shapes ? &calls_with_shapes : &calls;
    node_observer = &nodes;
    Py_RETURN_NONE;
  });
}

// _profiler_stop() -> [(name, start_ns, end_ns, thread_id, seq_nr, kind)], each with (shapes, stack) at its end where
// one of them was asked for; open events end now.
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
        Own item = make_tuple(PyUnicode_FromString(e.name), wrap(e.start), wrap(e.end ? e.end : at), wrap(b->thread_id),
                              wrap(e.sequence_nr), wrap(int64_t(e.kind)));
        if (e.detail) {
          Own stack(checked(
              PyUnicode_DecodeUTF8(e.detail->stack.data(), Py_ssize_t(e.detail->stack.size()), "backslashreplace")));
          Own detail = make_tuple(shapes_of(*e.detail).release(), stack.release());
          item = Own(checked(PySequence_Concat(item.get(), detail.get())));
        }
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
