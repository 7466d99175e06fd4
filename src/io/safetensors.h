// The safetensors format: 8 bytes of header length, a JSON header, then the bytes of the tensors without holes.
// Reference: https://github.com/huggingface/safetensors (format section). Files are untrusted: every length is checked
// before use; duplicate, overlapping or missing ranges, unknown dtypes and trailing bytes raise.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace strata::io {

struct SafeFile {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of the file
  std::map<std::string, std::string> metadata;
};

// Tensors share the file's private mapping; writing to them does not change the file.
SafeFile load_safetensors(const std::string& path);
// Contiguous copies are made where needed. Names must differ. Raises for complex dtypes, which the format lacks.
void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata);

}  // namespace strata::io
