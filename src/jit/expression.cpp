#include "jit/expression.h"

#include <map>
#include <memory>
#include <mutex>

#include "dispatch/boxed.h"
#include "grad/engine/library.h"
#include "jit/service/compile.h"
#include "lower/added.h"
#include "lower/expr/build.h"
#include "run/isa.h"
#include "run/kernels.h"

namespace strata::jit {

namespace {

// ---- kernels

constexpr uint32_t kEverySet = 1u << int(DType::F32) | 1u << int(DType::F64) | 1u << int(DType::BF16);

struct Compiled {
  ProgramRef program;
  const StrataKernelEntry* entry = nullptr;
};

// Printed for the dtype alone, in this machine's instruction set. As of linked kernels float16 has float32's.
const StrataKernelEntry* compiled(const char* name, DType dtype) {
  const ArrayRef<const lower::KernelDesc*> found = lower::added_descriptions(name);
  if (found.empty() || !(found[0]->dtypes >> int(dtype) & 1)) return nullptr;
  const DType own = dtype == DType::F16 ? DType::F32 : dtype;
  const auto isa = kEverySet >> int(own) & 1 ? lower::Isa(eager::current_isa()) : lower::Isa::Base;
  static auto& lock = *new std::mutex;
  static auto& known = *new std::map<std::tuple<std::string, DType, lower::Isa>, Compiled>;  // for ever
  const auto key = std::make_tuple(std::string(name), own, isa);
  {
    std::lock_guard<std::mutex> hold(lock);
    if (const auto at = known.find(key); at != known.end()) return at->second.entry;
  }
  const std::string file = lower::print_file(name, {lower::build_kernel(*found[0], own)}, isa);
  Compiled made{compile({file, isa})};
  const auto* table = static_cast<const StrataKernelFile*>(
      made.program->symbol(str_cat("strata_kernels_", lower::isa_name(isa), "_", name)));
  made.entry = &table->entries[0];
  std::lock_guard<std::mutex> hold(lock);
  return known.try_emplace(key, std::move(made)).first->second.entry;
}
[[maybe_unused]] const bool compiles = (eager::set_kernel_source(compiled), true);

// ---- operators; they live for ever, since calls may be running them

struct Added {
  std::string name, kernel, inputs, scalars, text, source, record;
  lower::KernelDesc desc;
  eager::PointwiseOp op;
  std::vector<bool> is_tensor;  // by argument

  void run(Stack& stack) const {
    std::vector<Tensor> tensors;
    std::vector<const Tensor*> in;
    std::vector<Scalar> numbers;
    for (size_t i = 0; i < stack.size(); ++i)
      if (is_tensor[i])
        tensors.push_back(stack[i].get<Tensor>());
      else
        numbers.push_back(number(stack[i]));
    for (const Tensor& t : tensors) in.push_back(&t);
    Tensor made = eager::pointwise(op, eager::Inputs(in), eager::Scalars(numbers));
    stack.clear();
    stack.emplace_back(std::move(made));
  }
  static Scalar number(const IValue& v) {
    if (v.is<int64_t>()) return v.get<int64_t>();
    if (v.is<double>()) return v.get<double>();
    if (v.is<bool>()) return v.get<bool>();
    return v.get<Scalar>();
  }
};

void add_word(std::string& list, const std::string& word) { list += (list.empty() ? "" : " ") + word; }

// Reads the schema's arguments. Raises Value for what no kernel of elements takes.
void read(const Schema& schema, Added& added) {
  for (const Argument& a : schema.args) {
    const bool number = a.type.base == ArgType::Int || a.type.base == ArgType::Float || a.type.base == ArgType::Bool ||
                        a.type.base == ArgType::Scalar;
    STRATA_CHECK_VALUE(
        (a.type.is_tensor() || number) && !a.type.list && !a.type.optional && !a.type.written && a.type.alias.empty(),
        "expression: ", added.name, ": argument '", a.name,
        "': expected a Tensor, Scalar, float, int or bool that is neither optional, a list nor written");
    added.is_tensor.push_back(a.type.is_tensor());
    add_word(a.type.is_tensor() ? added.inputs : added.scalars, a.name);
    ++(a.type.is_tensor() ? added.op.inputs : added.op.scalars);
  }
  STRATA_CHECK_VALUE(added.op.inputs > 0, "expression: ", added.name, ": expected an argument that is a Tensor");
  STRATA_CHECK_VALUE(schema.returns.size() == 1 && schema.returns[0].type.is_tensor() && !schema.returns[0].type.list &&
                         schema.returns[0].type.alias.empty(),
                     "expression: ", added.name, ": expected one result, a new Tensor");
}

void check(const Added& added, DType dtype) {
  try {
    lower::build_kernel(added.desc, dtype);
  } catch (const Error& e) {
    std::string why = e.message();
    if (why.starts_with(added.kernel + ": ")) why = why.substr(added.kernel.size() + 2);
    throw_error(ErrorKind::Value, str_cat("expression: ", added.name, ": ", dtype, ": ", why));
  }
}

}  // namespace

Operator& define_expression(const Expression& e) {
  static std::atomic<int> made{0};
  const Schema schema = parse_schema(e.schema);
  auto added = std::make_unique<Added>();
  added->name = schema.full_name();
  added->kernel = str_cat("added_", ++made);
  added->text = e.text;
  added->source = str_cat("an expression: ", added->name);
  read(schema, *added);
  added->desc = {added->kernel.c_str(),  "added",  lower::KernelKind::Pointwise, added->inputs.c_str(),
                 added->scalars.c_str(), "result", added->text.c_str(),          e.dtypes,
                 added->source.c_str()};
  for (int t = 0; t < kDTypeCount; ++t)
    if (e.dtypes >> t & 1) check(*added, DType(t));
  added->op.name = added->name.c_str();
  added->op.kernel = added->kernel.c_str();
  added->op.promote = e.promote;
  added->op.unpromoted = ~0u;
  for (const std::string& field : {"s" + added->source, std::string("kA"), "t" + e.text, "i" + added->inputs,
                                   "n" + added->scalars, std::string("oresult")})
    if (field.size() > 1) added->record += field + '\0';
  Operator& op = define_operator(e.schema);
  const Added* kept = added.release();
  lower::add_description(kept->desc);
  op.record = kept->record.c_str();
  const auto* kernel = new BoxedKernel{[kept](Operator&, Dispatch, Stack& stack) { kept->run(stack); }, kept->source};
  for (const char* key : {"CPU", "Meta"}) give_kernel(op, parse_key(key), kernel, kept->source.c_str(), true);
  return op;
}

}  // namespace strata::jit
