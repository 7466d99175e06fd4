// strata.Generator: a stream of random numbers. Its state is a tensor of 16 bytes: seed and offset.
#include <random>

#include "bind/args/parse.h"
#include "bind/tensor/methods.h"
#include "bind/types/dealloc.h"
#include "core/generator_scope.h"
#include "dispatch/seen.h"
#include "strata/generated/ops/random.h"

namespace strata::py {

PyTypeObject* generator_type;

namespace {

// The state goes through operators, which recordings see, and nothing else.
constexpr KeySet kOuterKeys(((1u << kKeyCount) - 1) & ~((1u << int(Key::InplaceOrView)) - 1));

Generator& generator_of(PyObject* o) { return reinterpret_cast<PyGenerator*>(o)->generator; }

// Takes a generator that exists: what throws while it is built must not be built inside the object.
PyObject* wrap_as(PyTypeObject* type, Generator g) {
  PyObject* o = checked(type->tp_alloc(type, 0));
  new (&generator_of(o)) Generator(std::move(g));
  return o;
}

// Negative seeds stand for their two's complement, as in PyTorch.
uint64_t seed_of(PyObject* o) {
  if (!PyLong_Check(o) && !PyIndex_Check(o)) {
    Own number(checked(PyNumber_Long(o)));
    return seed_of(number.get());
  }
  Own exact(checked(PyNumber_Index(o)));
  uint64_t v = PyLong_AsUnsignedLongLongMask(exact.get());
  if (PyErr_Occurred()) throw PythonError();
  int beyond = 0;
  PyLong_AsLongLongAndOverflow(exact.get(), &beyond);
  bool fits = beyond == 0;
  if (beyond > 0) {
    PyLong_AsUnsignedLongLong(exact.get());
    fits = !PyErr_Occurred();
    PyErr_Clear();
  }
  if (!fits) raise(PyExc_RuntimeError, "Overflow when unpacking long: expected a seed in [-2^63, 2^64)");
  return v;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    PyObject* device = nullptr;
    static const char* names[] = {"device", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device))
      throw PythonError();
    Device d = device && device != Py_None ? to_Device(device) : Device{};
    return wrap_as(type, Generator::make(d));
  });
}

// Recorded operators would go on from where the generator was.
void check_seeding() {
  STRATA_CHECK(!recording_here(),
               "manual_seed: the generator cannot be seeded while operators are recorded; seed it before, or use "
               "get_state() and set_state()");
}

PyObject* manual_seed(PyObject* o, PyObject* seed) {
  return guarded([&] {
    check_seeding();
    generator_of(o).manual_seed(seed_of(seed));
    return Py_NewRef(o);
  });
}

PyObject* seed(PyObject* o, PyObject*) {
  return guarded([&] {
    check_seeding();
    std::random_device device;
    uint64_t fresh = (uint64_t(device()) << 32 | device()) >> 1;
    generator_of(o).manual_seed(fresh);
    return wrap(int64_t(fresh));
  });
}

PyObject* initial_seed(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(generator_of(o).initial_seed()); }

PyObject* get_state(PyObject* o, PyObject*) {
  return guarded([&] {
    ExcludeGuard plain(kOuterKeys);
    return wrap(ops::_generator_state(generator_of(o)));
  });
}

PyObject* set_state(PyObject* o, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state)) raise(PyExc_TypeError, str_cat("expected a Tensor as state, got ", Py_TYPE(state)->tp_name));
    ExcludeGuard plain(kOuterKeys);
    ops::_set_generator_state(tensor_of(state), generator_of(o));
    return Py_NewRef(o);
  });
}

PyObject* clone_state(PyObject* o, PyObject*) {
  return guarded([&] {
    Generator g = Generator::make(generator_of(o).device());
    g.set_state(generator_of(o).state());
    return wrap_generator(g);
  });
}

PyObject* device(PyObject* o, void*) {
  return guarded([&] { return wrap(generator_of(o).device()); });
}

// Pickled with its state.
PyObject* reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    Own d(device(o, nullptr));
    Own state(checked(get_state(o, nullptr)));
    return checked(Py_BuildValue("O(O)O", generator_type, d.get(), state.get()));
  });
}
PyObject* set_pickled(PyObject* o, PyObject* state) {
  Py_XDECREF(set_state(o, state));
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the stream of that seed; returns the generator."},
    {"seed", seed, METH_NOARGS, "Starts the stream of a seed that the system chose, and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed of the stream."},
    {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", set_state, METH_O, "Goes on from a state that get_state() gave."},
    {"clone_state", clone_state, METH_NOARGS, "A generator of its own that is in the same state."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", set_pickled, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef attributes[] = {{"device", device, nullptr, "Whose random numbers it makes.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_of<PyGenerator>)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("Generator(device='cpu')\n\nA stream of random numbers (Philox4x32-10).")},
    {0, nullptr},
};
PyType_Spec spec = {"strata.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

PyObject* wrap_generator(const Generator& g) {
  if (!g.defined()) Py_RETURN_NONE;
  return wrap_as(generator_type, g);
}

// _draws() -> how often this thread has drawn random numbers, from any generator
static PyObject* draw_count(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(draws()); }

namespace {

// A thread's default generator while the object lives: a copy, so that others draw what they would.
struct Apart {
  Apart() : generator(Generator::make()), scope(generator) {}
  Generator generator;
  GeneratorScope scope;
};
constexpr const char* kApart = "strata.draw_apart";

void end_apart(PyObject* o) {
  delete static_cast<Apart*>(PyCapsule_GetContext(o));
  PyCapsule_SetContext(o, nullptr);
}

// _draw_apart() -> what _draw_back takes on the same thread, the last one first
PyObject* draw_apart(PyObject*, PyObject*) {
  return guarded([&] {
    static char anything;
    Own o(checked(PyCapsule_New(&anything, kApart, end_apart)));
    const PhiloxState state = default_generator().state();
    auto* apart = new Apart();
    apart->generator.set_state(state);
    PyCapsule_SetContext(o.get(), apart);
    return o.release();
  });
}
PyObject* draw_back(PyObject*, PyObject* o) {
  if (!PyCapsule_GetPointer(o, kApart)) return nullptr;
  end_apart(o);
  Py_RETURN_NONE;
}

// _own_generator() -> this thread's default generator
PyObject* own_generator(PyObject*, PyObject*) {
  return guarded([&] { return wrap_generator(default_generator()); });
}

// _draw_mark() -> what _rewind_draws takes on the same thread: true where what was drawn since is taken back
PyObject* mark(PyObject*, PyObject*) {
  const DrawMark m = draw_mark();
  return Py_BuildValue("KKI", static_cast<unsigned long long>(m.state.seed),
                       static_cast<unsigned long long>(m.state.offset), static_cast<unsigned int>(m.counters));
}
PyObject* rewind(PyObject*, PyObject* at) {
  unsigned long long seed = 0, offset = 0;
  unsigned int counters = 0;
  if (!PyArg_ParseTuple(at, "KKI", &seed, &offset, &counters)) return nullptr;
  return PyBool_FromLong(rewind_draws({{seed, offset}, counters}));
}

}  // namespace

void init_generator(PyObject* module) {
  static PyMethodDef functions[] = {{"_draws", draw_count, METH_NOARGS, nullptr},
                                    {"_draw_apart", draw_apart, METH_NOARGS, nullptr},
                                    {"_draw_back", draw_back, METH_O, nullptr},
                                    {"_own_generator", own_generator, METH_NOARGS, nullptr},
                                    {"_draw_mark", mark, METH_NOARGS, nullptr},
                                    {"_rewind_draws", rewind, METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
  add_functions(module, functions);
  generator_type = add_type(module, &spec);
  add_object(module, "default_generator", wrap_generator(default_generator()));
}

}  // namespace strata::py
