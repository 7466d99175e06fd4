// Fits the arguments of a call to a signature. The common case (positional arguments of exact types) allocates nothing.
#include "bind/args/parse.h"

#include <cstring>

#include "bind/tensor/tensor.h"
#include "bind/types/types.h"

namespace strata::py {

PyTypeObject int_pack_type = {PyVarObject_HEAD_INIT(nullptr, 0) "strata._C._IntPack"};

namespace {

// Names by which NumPy's users know an argument.
struct Alias {
  const char* name;
  const char* aliases[3];
};
constexpr Alias aliases[] = {{"dim", {"axis", nullptr, nullptr}},
                             {"keepdim", {"keepdims", nullptr, nullptr}},
                             {"input", {"x", "self", "a"}},
                             {"other", {"x2", nullptr, nullptr}}};

PreparedArg names_of(const char* name) {
  PreparedArg arg;
  int n = 0;
  arg.names[n++] = PyUnicode_InternFromString(name);
  for (const Alias& alias : aliases)
    if (!std::strcmp(alias.name, name))
      for (const char* other : alias.aliases)
        if (other) arg.names[n++] = PyUnicode_InternFromString(other);
  return arg;
}

bool is_int_list_kind(ArgKind k) { return k == ArgKind::IntList || k == ArgKind::IntListOpt; }

// The index of the argument with that keyword, or -1.
int find_keyword(const PreparedSignature& p, PyObject* keyword) {
  int n = int(p.args.size());
  for (int i = 0; i < n; ++i)
    for (PyObject* name : p.args[i].names)
      if (name == keyword) return i;
  if (PyUnicode_CHECK_INTERNED(keyword)) return -1;
  for (int i = 0; i < n; ++i)
    for (PyObject* name : p.args[i].names)
      if (name && PyUnicode_Compare(name, keyword) == 0) return i;
  return -1;
}

PyObject* pack(Frame& frame, PyObject* const* items, Py_ssize_t size) {
  if (frame.packs == kMaxPacks) return nullptr;
  IntPack& p = frame.room[frame.packs++];
  p.ob_base.ob_refcnt = 1;
  p.ob_base.ob_type = &int_pack_type;
  p.items = items;
  p.size = size;
  return reinterpret_cast<PyObject*>(&p);
}

PyObject* repeated(Frame& frame, PyObject* value, int size) {
  PyObject* o = size <= 8 ? pack(frame, nullptr, size) : nullptr;
  if (!o) return nullptr;
  auto* p = reinterpret_cast<IntPack*>(o);
  for (int i = 0; i < size; ++i) p->room[i] = value;
  p->items = p->room;
  return o;
}

bool all_ints(PyObject* const* items, Py_ssize_t size, Py_ssize_t* bad) {
  for (Py_ssize_t i = 0; i < size; ++i)
    // As in PyTorch, only the first element refuses a bool.
    if (!is_int_like(items[i]) && !(i > 0 && PyBool_Check(items[i]))) {
      *bad = i;
      return false;
    }
  return true;
}

// Puts `o` into a slot when it fits the argument.
inline bool put(const ArgSpec& spec, PyObject* o, bool numbers, Frame& frame, PyObject** slot, Py_ssize_t* bad) {
  if (STRATA_LIKELY(spec.kind == ArgKind::Tensor &&
                    (reinterpret_cast<PyObject*>(Py_TYPE(o)) == tensor_class || is_tensor(o)))) {
    *slot = o;
    return true;
  }
  if (o == Py_None &&
      (arg_kind_optional[int(spec.kind)] || spec.empty_default || (spec.has_default && spec.keyword_only))) {
    *slot = nullptr;
    return true;
  }
  if (accepts(spec, o, bad)) {
    *slot = o;
    return true;
  }
  if (is_int_list_kind(spec.kind) && spec.list_size > 0 && is_int_like(o))
    return (*slot = repeated(frame, o, spec.list_size)) != nullptr;
  if (numbers && spec.kind == ArgKind::Tensor && frame.owned < 4 && is_number(o)) {
    PyObject* t = guarded([&] { return wrap(wrapped_number(to_Scalar(o))); });
    if (!t) return false;
    frame.numbers[frame.owned++] = t;
    *slot = t;
    return true;
  }
  return false;
}

}  // namespace

const Prepared& prepare(const Overloads& overloads) {
  auto* p = new Prepared;  // lives as long as the table
  for (int s = 0; s < overloads.count; ++s) {
    const Signature& signature = overloads.signatures[s];
    STRATA_INTERNAL(signature.count <= kMaxSlots, overloads.name, " has ", signature.count, " arguments");
    PreparedSignature ps;
    for (int i = 0; i < signature.count; ++i) {
      const ArgSpec& a = signature.args[i];
      ps.args.push_back(names_of(a.name));
      if (!a.keyword_only) ++ps.positional;
      if (a.keyword_only && !a.has_default && !arg_kind_optional[int(a.kind)]) ++ps.required_outs;
    }
    auto packs = [&](int first) { return ps.positional == first + 1 && is_int_list_kind(signature.args[first].kind); };
    ps.packs_function = packs(0);
    ps.packs_method = packs(1);
    p->signatures.push_back(std::move(ps));
  }
  return *(overloads.prepared = p);
}

bool fit(const Signature& signature, const PreparedSignature& p, const CallArgs& call, bool numbers, Frame& frame,
         Misfit* why) {
  auto fail = [&](Misfit::Reason reason, int arg, PyObject* value = nullptr, Py_ssize_t position = -1,
                  Py_ssize_t element = -1, PyObject* keyword = nullptr, PyObject* found = nullptr) {
    if (!found) found = value;
    if (why) *why = {reason, arg, position, element, value, keyword, found ? Py_TYPE(found)->tp_name : ""};
    return false;
  };
  // A value that does not fit; `bad`: the place of the wrong element where it is a list.
  auto misfit = [&](int arg, PyObject* value, Py_ssize_t position, Py_ssize_t bad, PyObject* keyword = nullptr) {
    if (bad < 0) return fail(Misfit::WrongType, arg, value, position, bad, keyword);
    return fail(Misfit::WrongElement, arg, value, position, bad, keyword, Items(value)[bad]);
  };
  frame.packs = 0;
  PyObject** slots = frame.slots;
  const int count = signature.count;
  int at = 0;
  if (call.self) slots[at++] = call.self;
  const bool packs = call.self ? p.packs_method : p.packs_function;
  const int first = at;
  Py_ssize_t nargs = call.nargs;
  if (nargs > p.positional - first && !packs) return fail(Misfit::TooMany, -1);
  for (Py_ssize_t i = 0; i < nargs; ++i, ++at) {
    const ArgSpec& spec = signature.args[at];
    Py_ssize_t bad = -1;
    if (packs && (nargs > 1 || is_int_like(call.args[0]))) {
      if (!all_ints(call.args, nargs, &bad)) {
        // One list among several arguments is judged as the list.
        return fail(bad == 0 ? Misfit::WrongType : Misfit::WrongElement, at, call.args[bad], 1, bad);
      }
      slots[at++] = pack(frame, call.args, nargs);
      break;
    }
    if (!put(spec, call.args[i], numbers, frame, &slots[at], &bad)) return misfit(at, call.args[i], i + 1, bad);
  }
  for (int i = at; i < count; ++i) slots[i] = nullptr;
  if (call.kwnames) {
    uint64_t given = 0;  // named arguments so far
    Py_ssize_t n = PyTuple_GET_SIZE(call.kwnames);
    for (Py_ssize_t k = 0; k < n; ++k) {
      PyObject* keyword = PyTuple_GET_ITEM(call.kwnames, k);
      PyObject* value = call.args[nargs + k];
      int i = find_keyword(p, keyword);
      if (i < 0) {
        // out=None asks for what leaving it out gives.
        if (value == Py_None && PyUnicode_CompareWithASCIIString(keyword, "out") == 0) continue;
        return fail(Misfit::UnknownKeyword, -1, value, -1, -1, keyword);
      }
      if (i < at || (given >> i & 1)) return fail(Misfit::Twice, i, value, -1, -1, keyword);
      given |= uint64_t(1) << i;
      Py_ssize_t bad = -1;
      if (!put(signature.args[i], value, numbers, frame, &slots[i], &bad)) return misfit(i, value, -1, bad, keyword);
    }
    for (int i = at; i < count; ++i)
      if (!(given >> i & 1) && !signature.args[i].has_default) return fail(Misfit::Missing, i);
  } else {
    for (int i = at; i < count; ++i)
      if (STRATA_UNLIKELY(!signature.args[i].has_default)) return fail(Misfit::Missing, i);
  }
  return true;
}

}  // namespace strata::py
