// The table's entries as Python objects: functions in `_C._functions`, methods on TensorBase.
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

namespace {

const std::unordered_map<std::string_view, const Entry*>& by_name() {
  static const auto* map = [] {
    auto* m = new std::unordered_map<std::string_view, const Entry*>;
    for (const Entry* const* list = all_entries; *list; ++list)
      for (const Entry* e = *list; e->name; ++e) m->emplace(e->name, e);
    return m;
  }();
  return *map;
}

// Tensor.as_strided and the like keep the table's text; a function of Python shows its signature on the first line.
PyMethodDef* definition(const Entry& e, bool method) {
  static std::deque<PyMethodDef> kept;  // Python refers to them for ever
  auto* function = method ? e.method : e.function;
  kept.push_back({e.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
                  METH_FASTCALL | METH_KEYWORDS, e.doc});
  return &kept.back();
}

}  // namespace

const Entry* find_entry_or_null(std::string_view name) {
  auto found = by_name().find(name);
  return found == by_name().end() ? nullptr : found->second;
}

const Entry& find_entry(std::string_view name) {
  const Entry* e = find_entry_or_null(name);
  STRATA_CHECK_NOT_IMPLEMENTED(e, "strata.", name,
                               ": the operator table does not hold it yet; compose the result from "
                               "other operators");
  return *e;
}

void init_functions(PyObject* module) {
  PyObject* functions = checked(PyImport_AddModule("strata._C._functions"));  // borrowed
  Own module_name(checked(PyUnicode_FromString("strata")));
  PyObject *names = checked(PyModule_GetDict(functions)), *methods = tensor_base_type->tp_dict;  // borrowed
  for (const Entry* const* list = all_entries; *list; ++list)
    for (const Entry* e = *list; e->name; ++e) {
      Own name(checked(PyUnicode_InternFromString(e->name)));
      if (e->function) {
        Own f(checked(PyCFunction_NewEx(definition(*e, false), nullptr, module_name.get())));
        checked(PyDict_SetItem(names, name.get(), f.get()));
      }
      if (!e->method) continue;
      Own m(checked(PyDescr_NewMethod(tensor_base_type, definition(*e, true))));
      checked(PyDict_SetDefault(methods, name.get(), m.get()));  // what is written by hand wins over the table
    }
  PyType_Modified(tensor_base_type);
  checked(PyModule_AddObjectRef(module, "_functions", functions));
}

}  // namespace strata::py
