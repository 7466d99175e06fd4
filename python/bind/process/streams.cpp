// Queues and events of devices, who has their memory, and launches that wait. Queues are (device, number), events
// capsules.
#include "bind/args/parse.h"
#include "bind/process/devices.h"
#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

constexpr const char* kEvent = "strata.event";

device::Event& event_of(PyObject* o) {
  void* found = PyCapsule_GetPointer(o, kEvent);
  if (!found) throw PythonError();
  return *static_cast<device::Event*>(found);
}

// Arguments (device, number, ...).
struct Place {
  device::Unit* unit = nullptr;
  int number = 0, other = 0;
};
Place place_of(PyObject* args, const char* format) {
  PyObject* device;
  Place p;
  if (!PyArg_ParseTuple(args, format, &device, &p.number, &p.other)) throw PythonError();
  p.unit = &unit_of(device);
  for (int n : {p.number, p.other})
    STRATA_CHECK_VALUE(n >= 0 && n < kMaxStreams, "expected a stream's number below ", kMaxStreams, ", got ", n);
  return p;
}

PyObject* stream_new(PyObject*, PyObject* device) {
  return guarded([&] { return wrap(int64_t(unit_of(device).next_queue())); });
}

PyObject* stream_current(PyObject*, PyObject* device) {
  return guarded([&] { return wrap(int64_t(current_stream(unit_of(device).device()))); });
}

PyObject* stream_set(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const Place p = place_of(args, "Oi");
    p.unit->queue(p.number);
    set_current_stream(p.unit->device(), p.number);
    Py_RETURN_NONE;
  });
}

PyObject* stream_synchronize(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const Place p = place_of(args, "Oi");
    {
      const ReleaseLock free(true);
      p.unit->queue(p.number).synchronize();
    }
    Py_RETURN_NONE;
  });
}

PyObject* stream_query(PyObject*, PyObject* args) {
  return guarded([&] {
    const Place p = place_of(args, "Oi");
    bool done = false;
    {
      const ReleaseLock free(true);
      device::Event event(p.unit->plugin(), p.unit->device(), false);
      device::Queue& queue = p.unit->queue(p.number);
      queue.settle();
      event.record(queue);
      done = event.query();
    }
    return wrap(done);
  });
}

PyObject* stream_wait(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const Place p = place_of(args, "Oii");
    {
      const ReleaseLock free(true);
      wait_stream(p.unit->device(), p.number, p.other);
    }
    Py_RETURN_NONE;
  });
}

PyObject* event_new(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* device;
    int timing;
    if (!PyArg_ParseTuple(args, "Op", &device, &timing)) return nullptr;
    device::Unit& u = unit_of(device);
    auto event = std::make_unique<device::Event>(u.plugin(), u.device(), timing != 0);
    PyObject* made = checked(PyCapsule_New(event.get(), kEvent, [](PyObject* capsule) {
      delete static_cast<device::Event*>(PyCapsule_GetPointer(capsule, kEvent));
    }));
    event.release();
    return made;
  });
}

// _event_record(event, number), _event_wait(event, number)
template <class Do>
PyObject* with_queue(PyObject* args, Do act) {
  return guarded([&]() -> PyObject* {
    PyObject* capsule;
    int number;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &number)) return nullptr;
    device::Event& event = event_of(capsule);
    {
      const ReleaseLock free(true);
      device::Queue& queue = device::unit(event.device()).queue(number);
      queue.settle();
      act(event, queue);
    }
    Py_RETURN_NONE;
  });
}
PyObject* event_record(PyObject*, PyObject* args) {
  return with_queue(args, [](device::Event& e, device::Queue& q) { e.record(q); });
}
PyObject* event_wait(PyObject*, PyObject* args) {
  return with_queue(args, [](device::Event& e, device::Queue& q) { e.wait(q); });
}

PyObject* event_query(PyObject*, PyObject* capsule) {
  return guarded([&] { return wrap(event_of(capsule).query()); });
}

PyObject* event_synchronize(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    device::Event& event = event_of(capsule);
    {
      const ReleaseLock free(true);
      event.synchronize();
    }
    Py_RETURN_NONE;
  });
}

PyObject* event_elapsed(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *begin, *end;
    if (!PyArg_ParseTuple(args, "OO", &begin, &end)) return nullptr;
    return checked(PyFloat_FromDouble(event_of(begin).elapsed(event_of(end))));
  });
}

PyObject* record_stream(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* tensor;
    int number;
    if (!PyArg_ParseTuple(args, "Oi", &tensor, &number)) return nullptr;
    const Tensor& t = to_Tensor(tensor);
    STRATA_CHECK_VALUE(device::plugin_of(t.device().type),
                       "record_stream: expected a tensor on a device of a plugin, got one on ", t.device());
    device::unit(t.device()).memory().keep(t.storage()->handle(), number);
    Py_RETURN_NONE;
  });
}

PyObject* pinned_like(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensor, *device;
    if (!PyArg_ParseTuple(args, "OO", &tensor, &device)) return nullptr;
    const Tensor& t = to_Tensor(tensor);
    device::Pinned& memory = unit_of(device).pinned();
    if (!memory.offered()) Py_RETURN_NONE;
    const DimVec strides = t.is_non_overlapping_and_dense() ? DimVec(t.strides()) : contiguous_strides(t.sizes());
    return wrap(make_tensor_over(Storage::make(memory, size_t(t.nbytes())), t.sizes(), strides, 0, t.dtype()));
  });
}

PyObject* owners(PyObject*, PyObject* device) {
  return guarded([&] {
    Own list(checked(PyList_New(0)));
    for (const device::Owner& o : unit_of(device).memory().owners()) {
      Own row(checked(Py_BuildValue("KLs", static_cast<unsigned long long>(o.bytes), static_cast<long long>(o.blocks),
                                    source_text(o.mark).c_str())));
      checked(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

PyObject* set_blocking(PyObject*, PyObject* on) {
  return guarded([&] { return wrap(device::set_blocking(PyObject_IsTrue(on) == 1)); });
}

PyMethodDef functions[] = {
    {"_stream_new", stream_new, METH_O, "The number of a device's next stream of programs."},
    {"_stream_current", stream_current, METH_O, "The number of this thread's current stream of a device."},
    {"_stream_set", stream_set, METH_VARARGS, "Makes a device's stream of that number this thread's current one."},
    {"_stream_synchronize", stream_synchronize, METH_VARARGS, "Waits for a stream; raises what went wrong there."},
    {"_stream_query", stream_query, METH_VARARGS, "Whether a stream has done all that it was given."},
    {"_stream_wait", stream_wait, METH_VARARGS, "What the first stream is given from now on runs after the second's."},
    {"_event_new", event_new, METH_VARARGS, "An event of a device, with timing or without."},
    {"_event_record", event_record, METH_VARARGS, "What a stream has been given so far."},
    {"_event_wait", event_wait, METH_VARARGS, "What a stream is given from now on runs after the event."},
    {"_event_query", event_query, METH_O, "Whether an event is over."},
    {"_event_synchronize", event_synchronize, METH_O, "Waits for an event."},
    {"_event_elapsed", event_elapsed, METH_VARARGS, "Milliseconds between two events."},
    {"_record_stream", record_stream, METH_VARARGS, "A stream uses a tensor's memory, too."},
    {"_pinned_like", pinned_like, METH_VARARGS,
     "A tensor in pinned memory, of no values; None where the device offers none."},
    {"_device_owners", owners, METH_O, "(bytes, blocks, line) of a device's live memory, the largest first."},
    {"_device_blocking", set_blocking, METH_O, "Launches wait or not; gives what was set."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_streams(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
