// A restricted reader of PyTorch's .pt files (the zip format that torch.save has written since 1.6). The pickle inside
// may name the functions and types listed in pt_globals.cpp, each of which is a function of our own here; nothing of
// the file is ever run. Results are those of torch.load: state_dicts, optimisers' states, nested containers,
// parameters; storages stay shared. Quantised, sparse and nested tensors, whole modules and TorchScript programs raise.
#pragma once
#include <optional>

#include "io/pickle.h"
#include "io/place.h"
#include "io/zip.h"

namespace strata::io {

Value read_pt(const Source& source, const Place& place);

namespace pt {

enum class Call : uint8_t {
  None,  // a type that is passed on, never called
  OrderedDict,
  Counter,
  Set,
  FrozenSet,
  Complex,
  ByteArray,
  BytesType,
  Encode,
  Size,
  Device,
  GetLayout,
  RebuildTensor,
  RebuildTensorV2,
  RebuildTensorV3,
  RebuildParameter,
  RebuildParameterWithState,
  RebuildFromType
};

// What a global of the pickle stands for.
struct Global : Opaque {
  std::string name;
  Call call = Call::None;
  std::optional<DType> storage;  // of a storage class: the type of its elements
};

// The global of that name, or an empty Value (None) when it is not on the list.
Value find_global(const std::string& module, const std::string& name);

}  // namespace pt
}  // namespace strata::io
