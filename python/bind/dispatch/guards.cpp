// Guards of compiled functions (strata/_bytecode): a flat list of steps that find values from a call's arguments and
// check what they are. guards.py says what each step means and writes the list; what is rare is asked of Python.
#include <structmember.h>

#include <bit>

#include "bind/autograd/anomaly.h"
#include "bind/dispatch/graph.h"
#include "bind/dispatch/guards.h"
#include "bind/dispatch/instances.h"
#include "bind/dispatch/watch.h"
#include "core/factory_device.h"
#include "dispatch/autocast.h"
#include "grad/engine/variable.h"

namespace strata::py {

namespace {

enum Step : int {
  // register = ...
  kArg,       // the argument of that number
  kConst,     // an object
  kDictItem,  // base[key], of a dict
  kItem,      // base[key]
  kDictOf,    // base.__dict__
  kAttr,      // base.key
  kGrad,      // base.grad, of a tensor as a rule
  // checks of a register
  kIs = 16,
  kType,
  kEqual,
  kLen,
  kLacks,
  kTensor,
  kClass,
  kWatch,
  kState,
  kSame,
  kDistinct,
  kAsk,    // a function of Python, of the register or of nothing
  kInt,    // an int other than 0 and 1, which becomes part of the key
  kFloat,  // a float, whose bits become part of the key
  kBare,   // a tensor that has none of these attributes of its own
  kKeys,   // a dict or set of these keys in this order; (keys, a function of Python that compares them)
};

// What operators read of the thread and the process.
struct StateFacts {
  bool grad = dispatch_tls.grad_enabled, inference = dispatch_tls.inference, anomaly = anomaly_enabled();
  bool mode = torch_function_mode_active() || dispatch_mode_depth() > 0;
  DType dtype = default_dtype();
  AutocastState autocast = autocast_state(0);
  Device device = factory_device();

  bool operator==(const StateFacts& o) const {
    return grad == o.grad && inference == o.inference && anomaly == o.anomaly && mode == o.mode && dtype == o.dtype &&
           autocast.enabled == o.autocast.enabled && (!autocast.enabled || autocast.dtype == o.autocast.dtype) &&
           device == o.device;
  }
};

struct Instruction {
  int step, at, base;
  PyObject* object;  // borrowed from the list of steps
  int64_t number = 0;
  unsigned version = 0;
  std::unique_ptr<TensorFacts> tensor;
  std::unique_ptr<WatchFacts> watch;
  std::unique_ptr<StateFacts> state;
  std::vector<int> registers;
  std::vector<PyObject*> places;  // of kDistinct: twice as many as objects at least
};

struct Program {
  std::vector<Instruction> steps;
  int registers = 0;
  std::vector<int> gives;  // registers whose values are handed on
  Own same_constant;

  // key: what the call's sizes add to it, in the order of the steps. handed: where what is handed on goes, or null.
  bool run(PyObject* const* args, SizeKey& key, Handed* handed = nullptr) {
    constexpr int kInline = 64;
    PyObject* few[kInline];
    std::vector<PyObject*> many;
    PyObject** r = few;
    if (registers > kInline) {
      many.resize(size_t(registers));
      r = many.data();
    }
    std::vector<Own> made;  // references that nothing else holds
    for (Instruction& s : steps) {
      switch (s.step) {
        case kArg:
          r[s.at] = args[s.number];
          break;
        case kConst:
          r[s.at] = s.object;
          break;
        case kDictItem:
          if (!PyDict_Check(r[s.base])) return false;
          r[s.at] = PyDict_GetItemWithError(r[s.base], s.object);
          if (!r[s.at]) return false;
          break;
        case kItem: {
          PyObject* base = r[s.base];
          const bool list = PyList_Check(base), tuple = PyTuple_Check(base);
          if ((list || tuple) && s.number >= 0) {
            if (s.number >= Py_SIZE(base)) return false;
            r[s.at] = list ? PyList_GET_ITEM(base, s.number) : PyTuple_GET_ITEM(base, s.number);
            break;
          }
          if (PyDict_CheckExact(base)) {
            if (!(r[s.at] = PyDict_GetItemWithError(base, s.object))) return false;
            break;
          }
          made.emplace_back(PyObject_GetItem(base, s.object));
          if (!(r[s.at] = made.back().get())) return false;
          break;
        }
        case kDictOf: {
          if (PyModule_Check(r[s.base])) {
            r[s.at] = PyModule_GetDict(r[s.base]);
            break;
          }
          static PyObject* const name = PyUnicode_InternFromString("__dict__");
          made.emplace_back(PyObject_GetAttr(r[s.base], name));
          if (!(r[s.at] = made.back().get())) return false;
          break;
        }
        case kGrad:
        case kAttr:
          made.emplace_back(s.step == kGrad && has_plain_grad(r[s.base]) ? wrap(grad_of(tensor_of(r[s.base])))
                                                                         : PyObject_GetAttr(r[s.base], s.object));
          if (!(r[s.at] = made.back().get())) return false;
          break;
        default:
          if (!holds(s, r, key)) return false;
      }
    }
    if (handed)
      for (int at : gives) handed->add(r[at]);
    return true;
  }

  // Whether reading its .grad asks no one and says nothing.
  static bool has_plain_grad(PyObject* o) {
    return is_plain_tensor(o) && !torch_function_mode_active() && tensor_of(o).is_leaf();
  }

  bool holds(Instruction& s, PyObject** r, SizeKey& key) {
    PyObject* o = s.base >= 0 ? r[s.base] : nullptr;
    switch (s.step) {
      case kIs:
        return o == s.object;
      case kType:
        return reinterpret_cast<PyObject*>(Py_TYPE(o)) == s.object;
      case kEqual:
        return equal(o, s.object);
      case kLen:
        return PyObject_Size(o) == s.number;
      case kLacks: {
        const int found = PyDict_Check(o) ? PyDict_Contains(o, s.object) : PySequence_Contains(o, s.object);
        return found == 0;
      }
      case kTensor:
        return s.tensor->fits(o, key);
      case kClass: {
        // A class whose version is the same has the same attributes, its bases' included.
        auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(s.object, 0));
        if (s.version && type->tp_version_tag == s.version) return true;
        Own asked(checked(PyObject_CallNoArgs(PyTuple_GET_ITEM(s.object, 1))));
        if (asked.get() != Py_True) return false;
        _PyType_Lookup(type, PyTuple_GET_ITEM(s.object, 2));  // gives it a version
        s.version = version_of(type);
        return true;
      }
      case kWatch:
        return s.watch->holds(s.object);
      case kState:
        return *s.state == StateFacts();
      case kSame:
        return o == r[s.number];
      case kDistinct:
        return distinct(s, r);
      case kInt: {
        if (!PyLong_CheckExact(o)) return false;
        int overflow = 0;
        const long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow || n == 0 || n == 1) return false;
        key.push_back(n);
        return true;
      }
      case kFloat:
        if (!PyFloat_CheckExact(o)) return false;
        key.push_back(std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o)));
        return true;
      case kBare: {
        PyObject** own = _PyObject_GetDictPtr(o);
        if (!own || !*own || !PyDict_GET_SIZE(*own)) return true;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s.object); ++i)
          if (PyDict_Contains(*own, PyTuple_GET_ITEM(s.object, i)) != 0) return false;
        return true;
      }
      case kKeys:
        return has_keys(o, PyTuple_GET_ITEM(s.object, 0), PyTuple_GET_ITEM(s.object, 1));
      default:
        return ask(s.object, o);
    }
  }

  static bool ask(PyObject* function, PyObject* o) {
    Own asked(checked(o ? PyObject_CallOneArg(function, o) : PyObject_CallNoArgs(function)));
    const int yes = PyObject_IsTrue(asked.get());
    if (yes < 0) throw PythonError();
    return yes;
  }

  // Each object takes the first free place behind the one that its address tells: two that are one meet.
  static bool distinct(Instruction& s, PyObject** r) {
    const size_t mask = s.places.size() - 1;
    std::fill(s.places.begin(), s.places.end(), nullptr);
    for (int at : s.registers) {
      PyObject* o = r[at];
      size_t place = size_t(std::bit_cast<uintptr_t>(o) * 0x9E3779B97F4A7C15u >> 32) & mask;
      for (; s.places[place]; place = (place + 1) & mask)
        if (s.places[place] == o) return false;
      s.places[place] = o;
    }
    return true;
  }

  static bool has_keys(PyObject* o, PyObject* keys, PyObject* compare) {
    const bool dict = PyDict_CheckExact(o);
    if (dict || PyODict_CheckExact(o) || PyAnySet_CheckExact(o)) {
      const Py_ssize_t count = PyTuple_GET_SIZE(keys);
      if ((PyAnySet_Check(o) ? PySet_GET_SIZE(o) : PyDict_GET_SIZE(o)) != count) return false;
      Py_ssize_t at = 0, i = 0;
      PyObject *key, *value;
      while (dict && PyDict_Next(o, &at, &key, &value) && key == PyTuple_GET_ITEM(keys, i)) ++i;
      if (i == count) return true;
    }
    return ask(compare, o);
  }

  bool equal(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (Py_TYPE(a) != Py_TYPE(b)) return false;
    if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b) == 0;
    if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    Own asked(checked(PyObject_CallFunctionObjArgs(same_constant.get(), a, b, nullptr)));
    return PyObject_IsTrue(asked.get()) == 1;
  }
};

struct Guards {
  PyObject_HEAD;
  vectorcallfunc call;
  Program* program;
  PyObject* steps;
  Py_ssize_t count;
  long long hits;        // calls for which they held
  Instances* instances;  // where sizes are open: what to call, by the key
};

bool open_sizes(const Program& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const Instruction& s) {
    return s.step == kInt || s.step == kFloat || (s.tensor && s.tensor->open);
  });
}

Instruction instruction_of(PyObject* step) {
  Instruction s;
  long long number = 0;
  if (!PyArg_ParseTuple(step, "iiiOL", &s.step, &s.at, &s.base, &s.object, &number)) throw PythonError();
  s.number = number;
  if (s.step == kTensor) s.tensor = std::make_unique<TensorFacts>(facts_of(s.object));
  if (s.step == kWatch) s.watch = std::make_unique<WatchFacts>(s.object);
  if (s.step == kState) s.state = std::make_unique<StateFacts>();
  if (s.step == kDistinct) {
    s.registers = ints(s.object);
    s.places.resize(std::bit_ceil(2 * s.registers.size() + 1));
  }
  return s;
}

PyObject* check(PyObject* self, PyObject* const* args, size_t flags, PyObject*) {
  auto& own = *reinterpret_cast<Guards*>(self);
  return guarded([&]() -> PyObject* {
    STRATA_CHECK_TYPE(PyVectorcall_NARGS(flags) == own.count, "guards: expected ", own.count, " arguments, got ",
                      PyVectorcall_NARGS(flags));
    SizeKey key;
    const bool held = own.program->run(args, key);
    own.hits += held;
    PyErr_Clear();  // a value that is not there
    return PyBool_FromLong(held);
  });
}

// _Guards(steps, count of arguments, same_constant, registers that are handed on)
PyObject* new_guards(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *steps, *same, *gives;
  Py_ssize_t count;
  if (!PyArg_ParseTuple(args, "O!nOO!", &PyTuple_Type, &steps, &count, &same, &PyTuple_Type, &gives)) return nullptr;
  return guarded([&] {
    auto program = std::make_unique<Program>();
    program->same_constant = Own(Py_NewRef(same));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); ++i) {
      program->steps.push_back(instruction_of(PyTuple_GET_ITEM(steps, i)));
      program->registers = std::max(program->registers, program->steps.back().at + 1);
    }
    program->gives = ints(gives);
    for (int at : program->gives) STRATA_CHECK(at >= 0 && at < program->registers, "guards: no register ", at);
    PyObject* self = checked(type->tp_alloc(type, 0));
    auto& own = *reinterpret_cast<Guards*>(self);
    own.call = check;
    own.instances = open_sizes(*program) ? new Instances : nullptr;
    own.program = program.release();
    own.steps = Py_NewRef(steps);
    own.count = count;
    return self;
  });
}

void dealloc_guards(PyObject* self) {
  auto& own = *reinterpret_cast<Guards*>(self);
  PyObject_GC_UnTrack(self);
  delete own.program;
  delete own.instances;
  Py_CLEAR(own.steps);
  Py_TYPE(self)->tp_free(self);
}

int traverse_guards(PyObject* self, visitproc visit, void* arg) {
  auto& own = *reinterpret_cast<Guards*>(self);
  Py_VISIT(own.steps);
  return own.instances ? own.instances->traverse(visit, arg) : 0;
}

int clear_guards(PyObject* self) {
  if (Instances* instances = reinterpret_cast<Guards*>(self)->instances) instances->clear();
  return 0;
}

// key(args) -> the key of a call, None where a guard does not hold
PyObject* key_of(PyObject* self, PyObject* args) {
  auto& own = *reinterpret_cast<Guards*>(self);
  return guarded([&]() -> PyObject* {
    STRATA_CHECK_TYPE(PyTuple_Check(args) && PyTuple_GET_SIZE(args) == own.count, "guards: expected a tuple of ",
                      own.count, " arguments");
    std::vector<PyObject*> all;
    for (Py_ssize_t i = 0; i < own.count; ++i) all.push_back(PyTuple_GET_ITEM(args, i));
    SizeKey key;
    const bool held = own.program->run(all.data(), key);
    PyErr_Clear();
    if (!held) Py_RETURN_NONE;
    Own found(checked(PyTuple_New(Py_ssize_t(key.size()))));
    for (size_t i = 0; i < key.size(); ++i)
      PyTuple_SET_ITEM(found.get(), Py_ssize_t(i), checked(PyLong_FromLongLong(key[i])));
    return found.release();
  });
}

SizeKey to_key(PyObject* numbers) {
  SizeKey key;
  STRATA_CHECK_TYPE(PyTuple_Check(numbers), "guards: expected a key, a tuple of ints");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i) key.push_back(to_Int(PyTuple_GET_ITEM(numbers, i)));
  return key;
}

Instances& instances_of(PyObject* self) {
  Instances* instances = reinterpret_cast<Guards*>(self)->instances;
  STRATA_CHECK(instances, "guards: no size is open");
  return *instances;
}

// get(key) -> what put() was given; NotImplemented where there is nothing
PyObject* get_instance(PyObject* self, PyObject* numbers) {
  return guarded([&]() -> PyObject* {
    PyObject* found = instances_of(self).find(to_key(numbers));
    return Py_NewRef(found ? found : Py_NotImplemented);
  });
}

// put(key, what to call or None, how many of each kind are kept)
PyObject* put_instance(PyObject* self, PyObject* args) {
  PyObject *numbers, *run;
  Py_ssize_t bound;
  if (!PyArg_ParseTuple(args, "OOn", &numbers, &run, &bound)) return nullptr;
  return guarded([&]() -> PyObject* {
    instances_of(self).put(to_key(numbers), run, size_t(bound));
    Py_RETURN_NONE;
  });
}

// _global_state() -> what guards compare of the thread, for people
PyObject* global_state(PyObject*, PyObject*) {
  return guarded([&] {
    const StateFacts s;
    return checked(Py_BuildValue("(NNNsNN)", PyBool_FromLong(s.grad), PyBool_FromLong(s.inference), wrap(s.dtype),
                                 s.autocast.enabled ? traits(s.autocast.dtype).name : "off",
                                 checked(PyUnicode_FromString(str_cat(s.device).c_str())), PyBool_FromLong(s.anomaly)));
  });
}

PyMethodDef functions[] = {{"_global_state", global_state, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMethodDef guards_methods[] = {{"key", key_of, METH_O, nullptr},
                                {"get", get_instance, METH_O, nullptr},
                                {"put", put_instance, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyMemberDef guards_members[] = {{"hits", T_LONGLONG, offsetof(Guards, hits), READONLY, nullptr},
                                {nullptr, 0, 0, 0, nullptr}};
PyTypeObject guards_type = {PyVarObject_HEAD_INIT(nullptr, 0) "strata._C._Guards"};

}  // namespace

void init_guards(PyObject* module) {
  add_functions(module, functions);
  guards_type.tp_basicsize = sizeof(Guards);
  guards_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  guards_type.tp_vectorcall_offset = offsetof(Guards, call);
  guards_type.tp_call = PyVectorcall_Call;
  guards_type.tp_new = new_guards;
  guards_type.tp_members = guards_members;
  guards_type.tp_methods = guards_methods;
  guards_type.tp_clear = clear_guards;
  guards_type.tp_dealloc = dealloc_guards;
  guards_type.tp_traverse = traverse_guards;
  add_type(module, "_Guards", guards_type);
  init_dispatcher(module);
  init_noted(module);
}

GuardsAnswer ask_guards(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto& own = *reinterpret_cast<Guards*>(self);
  SizeKey key;
  Handed handed;
  handed.reserve(own.program->gives.size());
  if (own.count != count || !own.program->run(args, key, &handed)) {
    PyErr_Clear();
    return {false, nullptr, {}};
  }
  PyObject* run = own.instances ? own.instances->find(key) : nullptr;
  own.hits += run != Py_None;
  return {run != Py_None, run, std::move(handed)};
}

bool have_open_sizes(PyObject* self) { return reinterpret_cast<Guards*>(self)->instances != nullptr; }

}  // namespace strata::py
