// Inside of the argument parser: one call's frame, the fit of one signature, and the text when none fits.
#pragma once
#include <string>
#include <vector>

#include "bind/types/types.h"

namespace strata::py {

constexpr int kMaxSlots = 40;
constexpr int kMaxPacks = 8;

// Stands in a slot for several ints: the positional arguments of x.view(2, 3), or one int repeated (stride=2). Lives on
// the stack of the call and is never seen by Python.
struct IntPack {
  PyObject_HEAD;
  PyObject* const* items;
  Py_ssize_t size;
  PyObject* room[8];
};
extern PyTypeObject int_pack_type;
inline bool is_int_pack(PyObject* o) { return Py_TYPE(o) == &int_pack_type; }

// The items of a list, tuple or pack, as they are now. Python code that runs between two looks (an item's __index__)
// may change a list: ask for the size again at each step, and own an item before anything that may run Python code.
class Items {
 public:
  explicit Items(PyObject* o) : o_(o), kind_(PyTuple_Check(o) ? Tuple : PyList_Check(o) ? List : Pack) {}
  Py_ssize_t size() const { return kind_ == Pack ? reinterpret_cast<IntPack*>(o_)->size : Py_SIZE(o_); }
  // Borrowed.
  PyObject* operator[](Py_ssize_t i) const {
    switch (kind_) {
      case Tuple:
        return PyTuple_GET_ITEM(o_, i);
      case List:
        return PyList_GET_ITEM(o_, i);
      default:
        return reinterpret_cast<IntPack*>(o_)->items[i];
    }
  }
  Own own(Py_ssize_t i) const { return Own(Py_NewRef((*this)[i])); }

 private:
  PyObject* o_;
  enum Kind { Tuple, List, Pack } kind_;
};

struct PreparedArg {
  PyObject* names[4] = {};  // interned: its own name, then NumPy's
};

struct PreparedSignature {
  std::vector<PreparedArg> args;
  int positional = 0;                                 // arguments that may come by position, self included
  int required_outs = 0;                              // keyword-only arguments without default: the out= forms
  bool packs_function = false, packs_method = false;  // positional ints make up the one list of ints
};

struct Prepared {
  std::vector<PreparedSignature> signatures;
};

const Prepared& prepare(const Overloads& overloads);
inline const Prepared& prepared(const Overloads& overloads) {
  return overloads.prepared ? *overloads.prepared : prepare(overloads);
}

struct CallArgs {
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
};

// What one call needs while it runs; slots borrow from the caller's arguments.
struct Frame {
  PyObject* slots[kMaxSlots];
  int packs = 0;
  int owned = 0;
  PyObject* numbers[4];  // tensors made of numbers
  IntPack room[kMaxPacks];
  ~Frame() {
    for (int i = 0; i < owned; ++i) Py_DECREF(numbers[i]);
  }
};

// Where and why a signature did not fit.
struct Misfit {
  enum Reason { None, TooMany, Missing, WrongType, WrongElement, UnknownKeyword, Twice } reason = None;
  int arg = -1;              // index of the signature's argument
  Py_ssize_t position = -1;  // of a positional argument, counted from 1 without self
  Py_ssize_t element = -1;
  PyObject* value = nullptr;  // what was given for the argument: to be compared, never looked into
  PyObject* keyword = nullptr;
  std::string found;  // the type of what does not fit: of the value, or of the element of a list
};

// Fills the frame's slots. `numbers`: numbers may stand for tensors. `why` is filled on failure when it is given.
bool fit(const Signature& signature, const PreparedSignature& prepared, const CallArgs& call, bool numbers,
         Frame& frame, Misfit* why);
// Whether `o` fits the kind. `element` receives the index of the first bad element of a list.
bool accepts(const ArgSpec& spec, PyObject* o, Py_ssize_t* element);
bool is_number(PyObject* o);                        // Python's and NumPy's numbers and 0-dim tensors, not bool strings
bool is_int_like(PyObject* o);                      // an int where a size or a dim is wanted; bools are refused
bool is_numpy_kind(PyObject* o, const char* kind);  // an instance of numpy.<kind>; false while NumPy is not loaded

// Calls it in today's form where the call has one that PyTorch has deprecated; null, without an error, where it has
// not.
PyObject* call_old_form(const Overloads& overloads, const CallArgs& call);
// Sets the TypeError.
void raise_misfit(const Overloads& overloads, const CallArgs& call);
inline const char* kind_text(ArgKind kind) { return arg_kind_words[int(kind)]; }

}  // namespace strata::py
