// The names that a .pt file may use. Whatever is not here is refused.
#include <iterator>

#include "io/pt.h"

namespace strata::io::pt {

namespace {

struct Named {
  const char* module;
  const char* name;
  Call call;
};
constexpr Named kCalls[] = {
    {"collections", "OrderedDict", Call::OrderedDict},
    {"collections", "Counter", Call::Counter},
    {"builtins", "set", Call::Set},
    {"builtins", "frozenset", Call::FrozenSet},
    {"builtins", "complex", Call::Complex},
    {"builtins", "bytearray", Call::ByteArray},
    {"builtins", "bytes", Call::BytesType},
    {"_codecs", "encode", Call::Encode},
    {"torch", "Size", Call::Size},
    {"torch", "device", Call::Device},
    {"torch", "Tensor", Call::None},
    {"torch.nn.parameter", "Parameter", Call::None},
    {"torch.serialization", "_get_layout", Call::GetLayout},
    {"torch._utils", "_rebuild_tensor", Call::RebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Call::RebuildTensorV2},
    {"torch._utils", "_rebuild_tensor_v3", Call::RebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", Call::RebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", Call::RebuildParameterWithState},
    {"torch._tensor", "_rebuild_from_type_v2", Call::RebuildFromType},
};

struct StorageName {
  const char* name;
  DType type;
};
constexpr StorageName kStorages[] = {
    {"DoubleStorage", DType::F64},
    {"FloatStorage", DType::F32},
    {"HalfStorage", DType::F16},
    {"BFloat16Storage", DType::BF16},
    {"LongStorage", DType::I64},
    {"IntStorage", DType::I32},
    {"ShortStorage", DType::I16},
    {"CharStorage", DType::I8},
    {"ByteStorage", DType::U8},
    {"BoolStorage", DType::Bool},
    {"ComplexDoubleStorage", DType::C128},
    {"ComplexFloatStorage", DType::C64},
    {"UntypedStorage", DType::U8},
};

}  // namespace

Value find_global(const std::string& given, const std::string& name) {
  // Protocol 2 has Python 2's name of the module.
  const std::string module = given == "__builtin__" ? "builtins" : given;
  auto make = [&](Call call) {
    auto global = std::make_shared<Global>();
    global->name = module + "." + name;
    global->call = call;
    return global;
  };
  for (const Named& n : kCalls)
    if (module == n.module && name == n.name) return {std::shared_ptr<Opaque>(make(n.call))};
  if (module == "torch" || module == "torch.storage")
    for (const StorageName& s : kStorages)
      if (name == s.name) {
        auto global = make(Call::None);
        global->storage = s.type;
        return {std::shared_ptr<Opaque>(global)};
      }
  if (module == "torch")
    for (int i = 0; i < kDTypeCount; ++i)
      if (name == dtype_name(DType(i))) return {DType(i)};
  return {};
}

}  // namespace strata::io::pt
