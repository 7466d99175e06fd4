// The TypeError of a call that fits no signature.
#include <string>

#include "bind/args/parse.h"
#include "bind/tensor/tensor.h"

namespace strata::py {

namespace {

const char* type_name(PyObject* o) { return Py_TYPE(o)->tp_name; }

// The signature as the user calls it: methods do not show self.
std::string shown_signature(const Signature& s, bool method) {
  std::string text = s.text;
  if (!method) return text;
  size_t comma = text.find(", ");
  return comma == std::string::npos ? "()" : "(" + text.substr(comma + 2);
}

std::string shown_kind(const ArgSpec& a, bool single) {
  if (single && a.list_size == 1 && a.kind == ArgKind::IntListOpt) return "int or tuple of ints";
  return kind_text(a.kind);
}

struct Candidate {
  const Signature* signature;
  Misfit why;
  bool plausible;
};

// The sentence for one signature, the way PyTorch words it.
std::string sentence(const std::string& name, const Signature& s, const PreparedSignature& p, const CallArgs& c,
                     const Misfit& m, const std::string& wanted) {
  std::string arg = m.arg >= 0 ? s.args[m.arg].name : "";
  int first = c.self ? 1 : 0;
  switch (m.reason) {
    case Misfit::TooMany: {
      int most = p.positional - first, least = 0;
      for (int i = first; i < s.count; ++i)
        if (!s.args[i].keyword_only && !s.args[i].has_default) ++least;
      std::string count =
          least == most ? std::to_string(most) : "from " + std::to_string(least) + " to " + std::to_string(most);
      return str_cat(name, "() takes ", count, " positional argument", most == 1 ? "" : "s", " but ", c.nargs,
                     c.nargs == 1 ? " was" : " were", " given");
    }
    case Misfit::Missing: {
      std::string missing;
      int n = 0;
      for (int i = m.arg; i < s.count; ++i) {
        bool named = false;
        if (s.args[i].has_default) continue;
        if (c.kwnames)
          for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(c.kwnames); ++k)
            for (PyObject* alias : p.args[i].names)
              named |= alias && PyUnicode_Compare(alias, PyTuple_GET_ITEM(c.kwnames, k)) == 0;
        if (named) continue;
        missing += str_cat(n++ ? ", " : "", '"', s.args[i].name, '"');
      }
      return str_cat(name, "() missing ", n, " required positional arguments: ", missing);
    }
    case Misfit::UnknownKeyword:
      return str_cat(name, "() got an unexpected keyword argument '", shown_text(m.keyword), "'");
    case Misfit::Twice:
      return str_cat(name, "() got multiple values for argument '", arg, "'");
    case Misfit::WrongElement:
      return str_cat(name, "(): argument '", arg, "'",
                     m.position > 0 ? " (position " + std::to_string(m.position) + ")" : std::string(), " must be ",
                     wanted, ", but found element of type ", m.found, " at pos ", m.element);
    default:
      return str_cat(name, "(): argument '", arg, "'",
                     m.position > 0 ? " (position " + std::to_string(m.position) + ")" : std::string(), " must be ",
                     wanted, ", not ", m.found);
  }
}

std::string shown_arguments(const CallArgs& c, PyObject* wrong) {
  std::string text;
  auto add = [&](const std::string& key, PyObject* value) {
    std::string shown = type_name(value);
    if ((PyTuple_CheckExact(value) || PyList_CheckExact(value)) && !wrong) {
      Items items(value);
      bool tuple = PyTuple_CheckExact(value);
      shown = std::string("") + type_name(value) + " of " + (tuple ? "(" : "[");
      for (Py_ssize_t i = 0; i < items.size() && i < 4; ++i) shown += std::string(i ? ", " : "") + type_name(items[i]);
      shown += std::string(items.size() > 4 ? ", ..." : "") + (tuple ? ")" : "]");
    }
    if (value == wrong) shown = "!" + shown + "!";
    text += (text.empty() ? "" : ", ") + key + shown;
  };
  for (Py_ssize_t i = 0; i < c.nargs; ++i) add("", c.args[i]);
  if (c.kwnames)
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(c.kwnames); ++k)
      add(shown_text(PyTuple_GET_ITEM(c.kwnames, k)) + "=", c.args[c.nargs + k]);
  return "(" + text + ")";
}

}  // namespace

void raise_misfit(const Overloads& overloads, const CallArgs& c) {
  const Prepared& p = prepared(overloads);
  const std::string name = overloads.name;
  Py_ssize_t total = c.nargs + (c.kwnames ? PyTuple_GET_SIZE(c.kwnames) : 0);
  bool out_given = false;
  if (c.kwnames)
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(c.kwnames); ++k)
      out_given |= PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(c.kwnames, k), "out") == 0;
  bool writes = false;
  for (int i = 0; i < overloads.count; ++i) writes |= p.signatures[i].required_outs > 0;
  out_given &= writes;
  std::vector<Candidate> found;
  std::vector<const PreparedSignature*> prepared_of;
  for (int i = 0; i < overloads.count; ++i) {
    const Signature& s = overloads.signatures[i];
    if (c.self ? !s.method : !s.function) continue;
    // With out= only the forms that write are meant, without it only the others.
    if ((p.signatures[i].required_outs > 0) != out_given) continue;
    int first = c.self ? 1 : 0, least = 0;
    bool takes_numbers = false;
    for (int a = first; a < s.count; ++a) {
      if (!s.args[a].has_default) ++least;
      takes_numbers |= s.args[a].kind == ArgKind::Scalar && !s.args[a].keyword_only;
    }
    // Where numbers stand for tensors, the overload with numbers says nothing new.
    if (takes_numbers && overloads.numbers) continue;
    Frame frame;
    Misfit why;
    fit(s, p.signatures[i], c, overloads.numbers, frame, &why);
    PyErr_Clear();
    bool packs = c.self ? p.signatures[i].packs_method : p.signatures[i].packs_function;
    found.push_back({&s, why, total >= least && (total <= s.count - first || packs)});
    prepared_of.push_back(&p.signatures[i]);
  }
  std::vector<size_t> plausible;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].plausible) plausible.push_back(i);
  // One candidate, or all of them stumble over the same argument: say what is wrong with it.
  const std::vector<size_t> all = found.size() == 1 ? std::vector<size_t>{0} : plausible;
  bool same = !all.empty();
  for (size_t i : all) {
    const Misfit &a = found[all[0]].why, &b = found[i].why;
    same &= a.reason == b.reason && a.value == b.value && a.position == b.position && a.keyword == b.keyword;
    if (same && a.arg >= 0)
      same &= std::string(found[all[0]].signature->args[a.arg].name) == found[i].signature->args[b.arg].name;
  }
  if (same) {
    const Candidate& one = found[all[0]];
    std::vector<std::string> kinds;
    for (size_t i : all) {
      if (found[i].why.arg < 0) continue;
      std::string kind = shown_kind(found[i].signature->args[found[i].why.arg], true);
      bool known = false;
      for (const std::string& k : kinds) known |= k == kind;
      if (!known) kinds.push_back(kind);
    }
    std::string wanted;
    for (size_t i = 0; i < kinds.size(); ++i) wanted += (i ? " or " : "") + kinds[i];
    set_error(PyExc_TypeError, sentence(name, *one.signature, *prepared_of[all[0]], c, one.why, wanted));
    return;
  }
  std::string text = name + "() received an invalid combination of arguments - got " + shown_arguments(c, nullptr);
  if (found.empty()) {
    text =
        str_cat(name, c.self ? "() is a function only: call it as strata." : "() is a method only: call it as tensor.",
                name, "(...)");
  } else if (found.size() == 1) {
    text += ", but expected " + shown_signature(*found[0].signature, c.self != nullptr);
  } else {
    text += ", but expected one of:";
    for (const Candidate& one : found) {
      text += "\n * " + shown_signature(*one.signature, c.self != nullptr);
      if (one.why.reason == Misfit::WrongType || one.why.reason == Misfit::WrongElement)
        text += "\n      didn't match because some of the arguments have invalid types: " +
                shown_arguments(c, one.why.value);
      if (one.why.reason == Misfit::UnknownKeyword)
        text += "\n      didn't match because some of the keywords were incorrect: " + shown_text(one.why.keyword);
    }
    text += "\n";
  }
  set_error(PyExc_TypeError, text);
}

}  // namespace strata::py
