// Forms of calls that PyTorch has deprecated and still takes: numbers among the tensors, which are keywords today.
#include <cstring>

#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"

namespace strata::py {

namespace {

// The places of numbers (N) and tensors (T) as a function and as a method, self left out there; the keywords in order.
struct OldForm {
  const char* names[6];
  const char* function[2];
  const char* method[2];
  const char* keywords[2];
};
constexpr OldForm old_forms[] = {
    {{"add", "sub"}, {"TNT"}, {"NT"}, {"alpha"}},
    {{"addcmul", "addcdiv"}, {"TNTT"}, {"NTT"}, {"value"}},
    {{"addmm", "addmv", "addr", "addbmm", "baddbmm"}, {"NTNTT", "NTTT"}, {"NNTT", "NTT"}, {"beta", "alpha"}},
};

const OldForm* form_of(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  for (const OldForm& form : old_forms)
    for (const char* known : form.names)
      if (known && name == known) return &form;
  return nullptr;
}

}  // namespace

PyObject* call_old_form(const Overloads& overloads, const CallArgs& c) {
  const OldForm* form = form_of(overloads.name);
  if (!form) return nullptr;
  std::string places;
  for (Py_ssize_t i = 0; i < c.nargs; ++i) places += is_tensor(c.args[i]) ? 'T' : is_number(c.args[i]) ? 'N' : '?';
  bool known = false;
  for (const char* one : c.self ? form->method : form->function) known |= one && places == one;
  if (!known) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<PyObject*> args, numbers;
    for (Py_ssize_t i = 0; i < c.nargs; ++i) (places[i] == 'T' ? args : numbers).push_back(c.args[i]);
    const Py_ssize_t tensors = Py_ssize_t(args.size()), given = c.kwnames ? PyTuple_GET_SIZE(c.kwnames) : 0;
    Own names(checked(PyTuple_New(given + Py_ssize_t(numbers.size()))));
    for (Py_ssize_t i = 0; i < given; ++i) {
      args.push_back(c.args[c.nargs + i]);
      PyTuple_SET_ITEM(names.get(), i, Py_NewRef(PyTuple_GET_ITEM(c.kwnames, i)));
    }
    std::string shown;
    for (size_t i = 0; i < numbers.size(); ++i) {
      args.push_back(numbers[i]);
      PyTuple_SET_ITEM(names.get(), given + Py_ssize_t(i), checked(PyUnicode_InternFromString(form->keywords[i])));
      shown += str_cat(i ? ", " : "", form->keywords[i], "=");
    }
    warn(str_cat("This overload of ", overloads.name, " is deprecated: numbers come behind the tensors, by name (",
                 shown, ")."));
    return call(overloads, c.self, args.data(), tensors, names.get());
  });
}

}  // namespace strata::py
