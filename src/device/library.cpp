#include "device/library.h"

#include "dispatch/schema.h"
#include "vendor/library_host.h"

namespace strata::device {

static_assert(int(DType::Bool) == STRATA_BOOL && int(DType::F32) == STRATA_F32 && int(DType::C128) == STRATA_C128 &&
              kDTypeCount == STRATA_C128 + 1);

namespace {

StrataOperator found(Unit& unit, const std::string& name) {
  const Plugin& plugin = unit.plugin();
  return unit.library().get(name, [&]() -> StrataOperator {
    StrataOperator op = nullptr;
    const StrataStatus status = plugin.table->operator_find(unit.device().index, name.c_str(), &op);
    if (status == STRATA_UNSUPPORTED) return nullptr;
    check(plugin, status, str_cat("asking its library for ", name));
    return op;
  });
}

// Arguments or results as the library takes them.
class Flat {
 public:
  Flat(const Unit& unit, const Stack& stack) : unit_(unit) {
    for (const IValue& v : stack) add(v);
  }
  bool all() const { return all_; }  // they can be said
  const std::vector<StrataOperand>& list() const { return list_; }

 private:
  void add(const IValue& v) {
    StrataOperand o{};
    o.size = sizeof o;
    if (v.is_tensor()) {
      const Tensor& t = v.get<Tensor>();
      if (t.defined()) tensor(t, o);
    } else if (v.is<int64_t>() || v.is<bool>()) {
      o.kind = STRATA_INTEGER;
      o.integer = v.is<bool>() ? v.get<bool>() : v.get<int64_t>();
    } else if (v.is<double>()) {
      o.kind = STRATA_REAL;
      o.real = v.get<double>();
    } else if (v.is<Scalar>()) {
      scalar(v.get<Scalar>(), o);
    } else if (v.is<std::vector<int64_t>>()) {
      o.kind = STRATA_INTEGERS;
      o.sizes = v.get<std::vector<int64_t>>().data();
      o.dims = uint32_t(v.get<std::vector<int64_t>>().size());
    } else {
      all_ = all_ && v.is_none();
    }
    list_.push_back(o);
  }

  // The tensor lives as long as the stack.
  void tensor(const Tensor& t, StrataOperand& o) {
    all_ = all_ && t.device() == unit_.device();
    o.kind = STRATA_TENSOR;
    o.type = uint32_t(t.dtype());
    o.dims = uint32_t(t.dim());
    o.memory = static_cast<StrataMemory>(t.storage()->handle());  // null of a shape alone
    o.offset = uint64_t(t.storage_offset() * t.itemsize());
    o.sizes = t.sizes().data();
    o.strides = t.strides().data();
  }

  void scalar(const Scalar& s, StrataOperand& o) {
    all_ = all_ && !s.is_complex();
    if (s.is_complex()) return;
    o.kind = s.is_float() ? STRATA_REAL : STRATA_INTEGER;
    o.real = s.to_double();
    o.integer = s.to_int();
  }

  const Unit& unit_;
  bool all_ = true;
  std::vector<StrataOperand> list_;
};

}  // namespace

bool has_library(Unit& unit, const Operator& op) {
  const StrataDevice& table = *unit.plugin().table;
  return table.operator_find && table.operator_run && eager::library_enabled() && !op.schema().writes() &&
         found(unit, op.name);
}

bool library_takes(Unit& unit, const Operator& op, const Stack& args, const Stack& results) {
  const Flat in(unit, args), out(unit, results);
  if (!in.all() || !out.all()) return false;
  const StrataStatus status =
      unit.plugin().table->operator_run(nullptr, found(unit, op.name), out.list().data(), uint32_t(out.list().size()),
                                        in.list().data(), uint32_t(in.list().size()));
  if (status == STRATA_UNSUPPORTED) return false;
  check(unit.plugin(), status, str_cat("asking its library for ", op.name));
  return true;
}

void run_library(Unit& unit, const Operator& op, const Stack& args, const Stack& results) {
  const Flat in(unit, args), out(unit, results);
  unit.run(found(unit, op.name), out.list(), in.list(), op.name);
}

}  // namespace strata::device
