// Tensors in files: named tensors (a module's state_dict) as safetensors, which every reader of that format opens.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace strata {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Writes them atomically, without gradients. Raises Value where two share memory or a tensor has no data.
void save(const NamedTensors& tensors, const std::string& path);
// The tensors of a safetensors file, of Strata's package or of a .pt file that holds a dict of tensors.
NamedTensors load(const std::string& path);

}  // namespace strata
