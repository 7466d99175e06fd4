// Typed calls through the table. TypedOp<R(A...)> computes the keys of the arguments, finds the slot and calls it;
// where the slot holds a boxed kernel the arguments go through a stack. A typed kernel's first parameter is the
// Dispatch.
#pragma once
#include <string_view>
#include <tuple>
#include <utility>

#include "dispatch/operator.h"

namespace strata {

namespace detail {

// ---- keys of the arguments
inline void collect(Dispatch& d, const Tensor& t) {
  if (const TensorImpl* i = t.impl()) {
    d.keys = d.keys | i->keys_;
    if (i->device_.type > d.device) d.device = i->device_.type;
  }
}
inline void collect(Dispatch& d, TensorList list) {
  for (const Tensor& t : list) collect(d, t);
}
inline void collect(Dispatch& d, const std::optional<Device>& device) {
  if (device && device->type > d.device) d.device = device->type;
}
template <class T>
void collect(Dispatch&, const T&) {}

template <class... A>
inline Dispatch dispatch_of(const A&... args) {
  Dispatch d{KeySet(Key::Backend), 0};
  (collect(d, args), ...);
  d.keys = (d.keys | dispatch_tls.include) - dispatch_tls.mask;
  return d;
}

// ---- boxing
template <class T>
struct Box;
template <class T>
struct BoxValue {
  static IValue to(const T& v) { return IValue(v); }
  static T from(const IValue& v) { return v.get<T>(); }
};
template <>
struct Box<Tensor> {
  static IValue to(const Tensor& v) { return v.defined() ? IValue(v) : IValue(); }
  static Tensor from(const IValue& v) { return v.is_none() ? Tensor() : v.get<Tensor>(); }
};
template <>
struct Box<int64_t> : BoxValue<int64_t> {};
template <>
struct Box<bool> : BoxValue<bool> {};
template <>
struct Box<double> : BoxValue<double> {};
template <>
struct Box<Scalar> : BoxValue<Scalar> {};
template <>
struct Box<DType> : BoxValue<DType> {};
template <>
struct Box<Device> : BoxValue<Device> {};
template <>
struct Box<MemoryFormat> : BoxValue<MemoryFormat> {};
template <>
struct Box<Generator> {
  static IValue to(const Generator& v) { return v.defined() ? IValue(v) : IValue(); }
  static Generator from(const IValue& v) { return v.is_none() ? Generator() : v.get<Generator>(); }
};
template <>
struct Box<std::string_view> {
  static IValue to(std::string_view v) { return IValue(std::string(v)); }
  static std::string_view from(const IValue& v) { return v.get<std::string>(); }
};
template <>
struct Box<IntArrayRef> {
  static IValue to(IntArrayRef v) { return IValue(v.vec()); }
  static IntArrayRef from(const IValue& v) { return v.get<std::vector<int64_t>>(); }
};
template <>
struct Box<ArrayRef<double>> {
  static IValue to(ArrayRef<double> v) { return IValue(v.vec()); }
  static ArrayRef<double> from(const IValue& v) { return v.get<std::vector<double>>(); }
};
template <>
struct Box<std::vector<bool>> : BoxValue<std::vector<bool>> {};
template <>
struct Box<BoolVec> {
  static IValue to(const BoolVec& v) { return IValue(std::vector<bool>(v.begin(), v.end())); }
  static BoolVec from(const IValue& v) {
    BoolVec list;
    for (bool b : v.get<std::vector<bool>>()) list.push_back(b);
    return list;
  }
};
template <>
struct Box<TensorList> {
  static IValue to(TensorList v) { return IValue(v.vec()); }
  static TensorList from(const IValue& v) {
    return v.is_none() ? TensorList() : TensorList(v.get<IValue::TensorVec>());
  }
};
template <>
struct Box<std::vector<Tensor>> : BoxValue<std::vector<Tensor>> {};
template <class T>
struct Box<std::optional<T>> {
  static IValue to(const std::optional<T>& v) { return v ? Box<T>::to(*v) : IValue(); }
  static std::optional<T> from(const IValue& v) {
    if (v.is_none()) return std::nullopt;
    return Box<T>::from(v);
  }
};

// The arguments of a stack, which is empty afterwards. Raises where there are not as many as the signature has.
Stack take(Stack& stack, size_t wanted);
// Raises where a boxed kernel left other results.
void check_results(size_t given, size_t wanted);
// A tensor where it lies; of None one that is not defined.
const Tensor& unboxed_tensor(const IValue& value);

// One of each for a type, which the adapters of all signatures call.
template <class T>
[[gnu::visibility("hidden"), gnu::noinline]] void push_boxed(Stack& stack, const T& value) {
  stack.push_back(Box<T>::to(value));
}
template <class T>
[[gnu::visibility("hidden"), gnu::noinline]] T unboxed(const IValue& value) {
  return Box<T>::from(value);
}

// An argument of a parameter's type.
template <class A>
decltype(auto) argument(const IValue& value) {
  if constexpr (std::is_same_v<A, const Tensor&>)
    return unboxed_tensor(value);
  else
    return unboxed<std::decay_t<A>>(value);
}

template <class R>
struct Results {
  static void push(Stack& s, const R& r) { push_boxed<R>(s, r); }
  static R pop(const Stack& s) {
    check_results(s.size(), 1);
    return unboxed<R>(s[0]);
  }
};
template <>
struct Results<void> {
  static void pop(const Stack&) {}
};
template <class... R>
struct Results<std::tuple<R...>> {
  static void push(Stack& s, const std::tuple<R...>& r) {
    std::apply([&](const auto&... v) { (push_boxed<std::decay_t<decltype(v)>>(s, v), ...); }, r);
  }
  static std::tuple<R...> pop(const Stack& s) { return pop_at(s, std::index_sequence_for<R...>()); }
  template <size_t... I>
  static std::tuple<R...> pop_at(const Stack& s, std::index_sequence<I...>) {
    check_results(s.size(), sizeof...(R));
    return {unboxed<R>(s[I])...};
  }
};

extern const Slot observed_slot;  // whose kernel tells the observer, and calls the operator

}  // namespace detail

template <class Sig>
struct TypedOp;

template <class R, class... A>
struct TypedOp<R(A...)> {
  using Kernel = R (*)(Dispatch, A...);

  static R call(Operator& op, A... args) {
    const Dispatch d = detail::dispatch_of(args...);
    if (STRATA_UNLIKELY(call_observer.load(std::memory_order_relaxed) != nullptr))
      return boxed(op, d, detail::observed_slot, std::forward<A>(args)...);
    return redispatch(op, d, std::forward<A>(args)...);
  }

  static R redispatch(Operator& op, Dispatch d, A... args) { return serve(op, d, std::forward<A>(args)...); }
  // From an autograd kernel to what lies below it, with that key off.
  static R below_autograd(Operator& op, Dispatch d, A... args) {
    ExcludeGuard below{KeySet(Key::Autograd)};
    return serve(op, d.below(Key::Autograd), std::forward<A>(args)...);
  }

  // For Operator::call_typed_boxed.
  [[STRATA_SMALL]] static void call_typed_boxed(void* typed, Dispatch d, Stack& stack) {
    const Stack args = detail::take(stack, sizeof...(A));  // views into them stay valid until the end
    call_unboxed(reinterpret_cast<Kernel>(typed), d, args.data(), stack, std::index_sequence_for<A...>());
  }

 private:
  [[gnu::always_inline]] static R serve(Operator& op, Dispatch d, A... args) {
    d.keys = d.keys & KeySet(op.handled.load(std::memory_order_relaxed));
    const Slot& slot = op.find(d);
    if (void* typed = slot.typed.load(std::memory_order_acquire); STRATA_LIKELY(typed != nullptr))
      return reinterpret_cast<Kernel>(typed)(d, std::forward<A>(args)...);
    return boxed(op, d, slot, std::forward<A>(args)...);
  }
  // Rare, and there is one of these for each signature: small.
  [[STRATA_SMALL]] static R boxed(Operator& op, Dispatch d, const Slot& slot, A... args) {
    Stack stack;
    stack.reserve(sizeof...(A));
    (detail::push_boxed<std::decay_t<A>>(stack, args), ...);
    slot.boxed.load(std::memory_order_acquire)->fn(op, d, stack);
    return detail::Results<R>::pop(stack);
  }
  template <size_t... I>
  [[gnu::always_inline]] static void call_unboxed(Kernel kernel, Dispatch d, const IValue* args, Stack& stack,
                                                  std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>)
      kernel(d, detail::argument<A>(args[I])...);
    else
      detail::Results<R>::push(stack, kernel(d, detail::argument<A>(args[I])...));
  }
};

// Makes a typed kernel of a plain function.
template <auto Fn>
struct PlainKernel;
template <class R, class... A, R (*Fn)(A...)>
struct PlainKernel<Fn> {
  static R call(Dispatch, A... args) { return Fn(std::forward<A>(args)...); }
};

Operator& define_with(const char* schema_text, const char* record, void (*call_typed_boxed)(void*, Dispatch, Stack&));
Operator& define_twin(const char* schema_text, Operator& writing);  // dispatch/boxed.h

// Defines an operator with its signature. In-place and out= operators return the tensor that they wrote.
template <class Sig>
[[gnu::always_inline]] inline Operator& define_op(const char* schema_text, const char* record = nullptr) {
  return define_with(schema_text, record, &TypedOp<Sig>::call_typed_boxed);
}

}  // namespace strata
