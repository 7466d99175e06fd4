// Where loaded tensors go: storages are read into the CPU's memory and moved to the device that the caller names, once
// each, so that tensors which share one go on sharing it.
#pragma once
#include <functional>
#include <string>

#include "core/tensor.h"
#include "io/file.h"

namespace strata::io {

// The device for a storage that was saved on `location` ("cpu", "name:1"). Empty: the device of that name.
using Place = std::function<Device(const Ref<Storage>& on_cpu, const std::string& location)>;

Ref<Storage> placed(const Source& source, const Place& place, Ref<Storage> storage, const std::string& location);

// A tensor over the storage; raises where sizes, strides and offset, which come from a file, do not fit into it.
Tensor tensor_within(const Source& source, const Ref<Storage>& storage, IntArrayRef sizes, IntArrayRef strides,
                     int64_t offset, DType dtype);

}  // namespace strata::io
