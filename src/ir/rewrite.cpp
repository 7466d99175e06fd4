#include "ir/rewrite.h"

#include <bit>
#include <optional>

#include "base/error.h"
#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"

namespace strata::ir {

std::vector<int64_t> numbers(const SmallVec<SymInt, 5>& list) {
  std::vector<int64_t> out;
  for (const SymInt& n : list) out.push_back(n.hint());
  return out;
}

Id Renaming::operator()(Id v) const {
  while (v != kNone && size_t(v) < to_.size() && to_[size_t(v)] != kNone) v = to_[size_t(v)];
  return v;
}

Id& Renaming::at(Id v) {
  if (size_t(v) >= to_.size()) to_.resize(size_t(v) + 1, kNone);
  return to_[size_t(v)];
}

void Renaming::apply(std::vector<Id>& ids) const {
  for (Id& v : ids) v = (*this)(v);
}

void Renaming::apply(Node& n) const {
  for (Arg& a : n.args) apply(a.values);
}

std::string constant_key(const IValue& value) {
  const auto bits = [](double v) { return str_cat(std::bit_cast<uint64_t>(v)); };
  std::string text = str_cat(value.value().index(), ":");
  if (value.is<double>()) return text + bits(value.get<double>());
  if (value.is<Scalar>()) {
    const Scalar& s = value.get<Scalar>();
    const std::complex<double> c = s.to_complex();
    return text + str_cat(int(s.kind()), " ", s.to_int(), " ", int(s.is_unsigned64()), " ", bits(c.real()), " ",
                          bits(c.imag()));
  }
  if (value.is<std::vector<double>>()) {
    for (double v : value.get<std::vector<double>>()) text += bits(v) + " ";
    return text;
  }
  if (value.is<Generator>()) return text + str_cat(value.get<Generator>().identity());
  if (value.is<std::shared_ptr<Opaque>>())
    return text + str_cat(static_cast<const void*>(value.get<std::shared_ptr<Opaque>>().get()));
  return text + print(value);
}

namespace {

// The results of a call that are tensors; none where it raises.
template <class F>
std::optional<std::vector<Tensor>> called(const Node& call, F&& operand) {
  if (has_slots(call)) return std::nullopt;  // it asks for values
  try {
    Stack stack = stack_of(call, [&](Id v) { return v == kNone ? Tensor() : Tensor(operand(v)); });
    call_boxed(*call.op, stack);
    std::vector<Tensor> results;
    each_tensor(stack, [&](const Tensor& t) { results.push_back(t); });
    return results;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether it is the functional twin of an operator that looks at values of its operands and keeps their geometry: its
// results are like copies of what that writes.
bool reads_in_place(const Operator& op) {
  if (!is_made_twin(op)) return false;
  const std::optional<OpInfo> said = info(op);
  return !said->reads.empty() && said->size.empty();
}

template <class F>
std::vector<Tensor> copies_of_written(const Node& call, F&& operand) {
  const Schema& schema = twin_writes(*call.op).schema();
  std::vector<Tensor> made;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (schema.args[i].type.written)
      for (Id v : call.args[i].values) made.push_back(v == kNone ? Tensor() : ops::clone(operand(v)));
  return made;
}

}  // namespace

std::optional<std::vector<Type>> types_of_call(const Graph& g, const Node& call) {
  const BelowAutograd below;
  const MetaGuard no_memory;
  auto operand = [&](Id v) {
    const Type& t = g.values[size_t(v)].type;
    STRATA_CHECK(t.kind == Type::Tensor, "no tensor");
    if (t.number)
      return wrapped_number(t.dtype == DType::Bool  ? Scalar(true)
                            : t.dtype == DType::I64 ? Scalar(1)
                            : t.dtype == DType::F64 ? Scalar(1.0)
                                                    : Scalar(std::complex<double>(1)));
    return ops::empty_strided(numbers(t.sizes), numbers(t.strides), t.dtype, t.device);
  };
  std::optional<std::vector<Tensor>> results = called(call, operand);
  if (!results && reads_in_place(*call.op)) results = copies_of_written(call, operand);
  if (!results) return std::nullopt;
  std::vector<Type> types;
  for (const Tensor& t : *results) {
    const bool none = types.size() < call.results.size() && call.results[types.size()] == kNone;
    if (t.defined() == none) return std::nullopt;
    types.push_back(none ? Type() : type_of(t));
  }
  return types;
}

std::optional<Tensor> result_of_call(const Node& call, TensorList operands) {
  const BelowAutograd below;
  size_t at = 0;
  std::optional<std::vector<Tensor>> results = called(call, [&](Id) { return operands[at++]; });
  if (!results || results->size() != 1 || !(*results)[0].defined()) return std::nullopt;
  return (*results)[0];
}

Scalar number_in(const Tensor& t) {
  const BelowAutograd below;
  return ops::item(t);
}

}  // namespace strata::ir
