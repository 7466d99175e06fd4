#include "device/twins.h"

namespace strata::device {

Tensor Twins::twin_of(const Tensor& t) {
  if (!t.defined() || !(t.device() == unit_.device())) return t;
  for (const Pair& p : pairs_)
    if (p.real.is_same(t)) return p.twin;
  Ref<Storage>& s = twins_[t.storage().get()];
  if (!s) {
    const int64_t room = int64_t(t.storage()->bytes());
    if (kind_ == Shapes) {
      s = Storage::make(unit_, size_t(room), false);
    } else {
      s = Storage::make(cpu_allocator(), size_t(room));
      unit_.download(s->data(), *t.storage(), 0, room);
      bytes_ += room;
    }
    reals_[s.get()] = t.storage();
  }
  Tensor twin = make_tensor_over(s, t.sizes(), t.strides(), t.storage_offset(), t.dtype());
  TensorImpl& impl = *twin.impl();
  if (kind_ == Shapes) impl.keys_ = impl.keys_ | Key::Meta;
  impl.wrapped_number_ = t.impl()->wrapped_number_;
  impl.requires_grad_ = t.impl()->requires_grad_;
  pairs_.push_back({t, twin, s, int64_t(s->bytes())});
  return twin;
}

IValue Twins::twin_of(const IValue& v) {
  if (v.is_tensor()) return IValue(twin_of(v.get<Tensor>()));
  if (v.is_tensors()) {
    IValue::TensorVec list;
    for (const Tensor& t : v.get<IValue::TensorVec>()) list.push_back(twin_of(t));
    return IValue(std::move(list));
  }
  if (kind_ == Copies && v.is<Device>() && v.get<Device>().type == unit_.device().type) return IValue(Device{});
  return v;
}

Stack Twins::of(const Stack& args) {
  Stack out;
  for (const IValue& v : args) out.push_back(twin_of(v));
  return out;
}

Ref<Storage> Twins::storage_back(const Ref<Storage>& twin) {
  Ref<Storage>& real = reals_[twin.get()];
  if (!real) {
    kept_.push_back(twin);
    real = Storage::away(unit_, twin->bytes());
    if (kind_ == Copies) {
      unit_.upload(*real, 0, twin->data(), int64_t(twin->bytes()));
      bytes_ += int64_t(twin->bytes());
    }
  }
  return real;
}

Tensor Twins::back(const Tensor& t) {
  if (!t.defined()) return t;
  for (const Pair& p : pairs_)
    if (p.twin.is_same(t)) return p.real;
  // What the operator found on the CPU is the CPU's: of shapes, all that has memory.
  if (kind_ == Shapes && !t.is_meta()) return t;
  return make_tensor_over(storage_back(t.storage()), t.sizes(), t.strides(), t.storage_offset(), t.dtype());
}

Stack Twins::back(const Stack& results) {
  Stack out;
  for (const IValue& v : results) {
    if (v.is_tensor()) {
      out.push_back(IValue(back(v.get<Tensor>())));
    } else if (v.is_tensors()) {
      IValue::TensorVec list;
      for (const Tensor& t : v.get<IValue::TensorVec>()) list.push_back(back(t));
      out.push_back(IValue(std::move(list)));
    } else {
      out.push_back(v);
    }
  }
  return out;
}

void Twins::carry_over(const Schema& schema, const Stack& args) {
  for (const Pair& p : pairs_) {
    const TensorImpl& from = *p.twin.impl();
    TensorImpl& to = *p.real.impl();
    if (from.storage_.get() != p.storage.get()) to.take_storage(storage_back(from.storage_));
    if (int64_t(p.storage->bytes()) != p.room && to.storage_->bytes() != p.storage->bytes())
      to.storage_->resize(p.storage->bytes());
    if (!(from.sizes() == to.sizes()) || !(from.strides() == to.strides()) || from.offset_ != to.offset_)
      to.set_geometry(from.sizes(), from.strides(), from.offset_);
  }
  if (kind_ == Shapes) return;
  auto give = [&](const Tensor& t) {
    if (!t.defined() || !(t.device() == unit_.device())) return;
    for (const Pair& p : pairs_) {
      if (!p.real.is_same(t)) continue;
      const Storage& s = *p.twin.storage();
      unit_.upload(*t.storage(), 0, s.data(), int64_t(s.bytes()));
      bytes_ += int64_t(s.bytes());
    }
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (!schema.args[i].type.written) continue;
    if (args[i].is_tensor()) give(args[i].get<Tensor>());
    if (args[i].is_tensors())
      for (const Tensor& t : args[i].get<IValue::TensorVec>()) give(t);
  }
}

}  // namespace strata::device
