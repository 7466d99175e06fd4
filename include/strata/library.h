// Operators of a program's own, in C++: a shared library that Python or another program loads.
//
//   #include <strata/library.h>
//   strata::Tensor scaled(const strata::Tensor& x, double by) { return x * by; }
//   STRATA_LIBRARY(mine, m) { m.def("scaled(Tensor x, float by=2.0) -> Tensor", &scaled); }
//
// It is `strata::mine::scaled` in C++ by name, `strata.ops.mine.scaled` in Python, and works eager, recorded, compiled
// and saved as the table's operators do. def() with a function says that it is made of operators, which autograd and
// devices see; def() without one declares an operator, whose kernels impl() gives by dispatch key ("CPU", "Meta",
// "Autograd", ..., as strata.library in Python names them). A derivative of its own is a kernel for "Autograd" that
// calls apply() of a strata::Function (strata/function.h).
#pragma once
#include <tuple>

#include "grad/engine/library.h"
#include "strata/autograd.h"
#include "strata/tensors.h"

namespace strata {

namespace library {

// How a type of C++ is written in a schema, and how it is read from a stack.
template <class T>
struct Argument;  // of a type that operators do not take

#define STRATA_ARGUMENT(TYPE, TEXT, READ)                               \
  template <>                                                           \
  struct Argument<TYPE> {                                               \
    static std::string text() { return TEXT; }                          \
    static TYPE read([[maybe_unused]] const IValue& v) { return READ; } \
  }
STRATA_ARGUMENT(Tensor, "Tensor", v.is_none() ? Tensor() : v.get<Tensor>());
STRATA_ARGUMENT(int64_t, "int", v.get<int64_t>());
STRATA_ARGUMENT(double, "float", v.is<int64_t>() ? double(v.get<int64_t>()) : v.get<double>());
STRATA_ARGUMENT(bool, "bool", v.get<bool>());
STRATA_ARGUMENT(std::string, "str", v.get<std::string>());
STRATA_ARGUMENT(Scalar, "Scalar", v.get<Scalar>());
STRATA_ARGUMENT(DType, "ScalarType", v.get<DType>());
STRATA_ARGUMENT(Device, "Device", v.get<Device>());
STRATA_ARGUMENT(std::vector<Tensor>, "Tensor[]", v.get<IValue::TensorVec>());
STRATA_ARGUMENT(std::vector<int64_t>, "int[]", v.get<std::vector<int64_t>>());
STRATA_ARGUMENT(std::vector<double>, "float[]", v.get<std::vector<double>>());
#undef STRATA_ARGUMENT
template <class T>
struct Argument<std::optional<T>> {
  static std::string text() { return Argument<T>::text() + "?"; }
  static std::optional<T> read(const IValue& v) {
    return v.is_none() ? std::nullopt : std::optional<T>(Argument<T>::read(v));
  }
};

template <class R>
struct Result {
  static std::string text() { return Argument<R>::text(); }
  static void put(R value, Stack& stack) { stack.emplace_back(std::move(value)); }
};
template <class... R>
struct Result<std::tuple<R...>> {
  static std::string text() {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + Argument<R>::text()), ...);
    return "(" + all + ")";
  }
  static void put(std::tuple<R...> values, Stack& stack) {
    std::apply([&](auto&&... v) { (stack.emplace_back(std::move(v)), ...); }, std::move(values));
  }
};

// A function as a kernel over a stack, and its schema's text where nobody wrote one.
template <class R, class... A>
BoxedKernel boxed(R (*function)(A...), const std::string& source) {
  auto run = [function]<size_t... K>(Stack& args, Stack& results, std::index_sequence<K...>) {
    if constexpr (std::is_void_v<R>)
      function(Argument<std::decay_t<A>>::read(args[K])...);
    else
      Result<R>::put(function(Argument<std::decay_t<A>>::read(args[K])...), results);
  };
  return {[run](Operator& op, Dispatch, Stack& stack) {
            STRATA_CHECK_TYPE(stack.size() == sizeof...(A), op.name, ": its kernel in C++ takes ", sizeof...(A),
                              " arguments, the schema has ", stack.size());
            Stack results;
            run(stack, results, std::index_sequence_for<A...>());
            stack = std::move(results);
          },
          source};
}
template <class R, class... A>
std::string inferred(const std::string& name, R (*)(A...)) {
  std::string args;
  int number = 0;
  ((args += str_cat(args.empty() ? "" : ", ", Argument<std::decay_t<A>>::text(), " arg", number++)), ...);
  std::string result = "()";
  if constexpr (!std::is_void_v<R>) result = Result<R>::text();
  return str_cat(name, "(", args, ") -> ", result);
}

}  // namespace library

// What STRATA_LIBRARY's body is given: definitions and kernels of one namespace, which stay until the process ends.
class Library {
 public:
  Library(std::string ns, std::string key, std::string source)
      : ns_(std::move(ns)), key_(std::move(key)), source_(std::move(source)) {}

  // An operator without kernels. Raises Value for a schema that does not parse, Runtime for a name that is taken.
  Operator& def(const std::string& schema) { return define_operator(ns_ + "::" + schema); }
  // An operator made of operators. A name alone gets its schema from the function's types.
  template <class F>
  Operator& def(const std::string& schema, F function) {
    const auto plain = +function;
    Operator& op = def(schema.find('(') == std::string::npos ? library::inferred(schema, plain) : schema);
    give(op, "CompositeImplicitAutograd", plain);
    return op;
  }
  // A kernel for a dispatch key; of an operator of another library too.
  template <class F>
  void impl(const std::string& name, const std::string& key, F function) {
    give(OperatorTable::instance().get(name.find("::") == std::string::npos ? ns_ + "::" + name : name), key,
         +function);
  }
  template <class F>
  void impl(const std::string& name, F function) {
    STRATA_CHECK_VALUE(!key_.empty(), "library: impl(\"", name, "\") needs a dispatch key here");
    impl(name, key_, function);
  }

 private:
  template <class F>
  void give(Operator& op, const std::string& key, F function) {
    // Kernels are never freed: calls may be running them.
    give_kernel(op, parse_key(key), new BoxedKernel(library::boxed(function, source_)), lasting_text(source_), false);
  }
  const std::string ns_, key_, source_;
};

namespace library {
// Runs a library's body while it is loaded; what it raises waits in failures().
inline bool register_now(const char* ns, const char* key, const char* source, void (*body)(Library&)) {
  try {
    Library made(ns, key, source);
    body(made);
    return true;
  } catch (const std::exception& error) {
    note_failure(str_cat(source, ": the library of the namespace ", ns, ": ", error.what()));
    return false;
  }
}
}  // namespace library

// Runs its body when the library is loaded; STRATA_LIBRARY_IMPL gives kernels for one key. What the body raises does
// not end the program: load() in Python raises it, a program in C++ finds it in strata::library_failures().
#define STRATA_LIBRARY(NAMESPACE, M)                                                          \
  static void strata_library_##NAMESPACE(::strata::Library& M);                               \
  [[maybe_unused]] static const bool strata_library_##NAMESPACE##_ran =                       \
      ::strata::library::register_now(#NAMESPACE, "", __FILE__, &strata_library_##NAMESPACE); \
  static void strata_library_##NAMESPACE(::strata::Library& M)
#define STRATA_LIBRARY_IMPL(NAMESPACE, KEY, M)                                                          \
  static void strata_library_##NAMESPACE##_##KEY(::strata::Library& M);                                 \
  [[maybe_unused]] static const bool strata_library_##NAMESPACE##_##KEY##_ran =                         \
      ::strata::library::register_now(#NAMESPACE, #KEY, __FILE__, &strata_library_##NAMESPACE##_##KEY); \
  static void strata_library_##NAMESPACE##_##KEY(::strata::Library& M)

}  // namespace strata
