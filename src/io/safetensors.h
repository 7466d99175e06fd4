// The safetensors format: 8 bytes of header length, a JSON header, then the bytes of the tensors without holes.
// Reference: https://github.com/huggingface/safetensors (format section). Files are untrusted: every length is checked
// before use; duplicate names, overlapping or missing ranges, unknown dtypes and trailing bytes raise.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "io/file.h"

namespace strata::io {

constexpr uint64_t kMaxSafeHeader = 100'000'000;  // bytes; the format's own limit

struct SafeEntry {
  std::string name;
  DType dtype;
  DimVec sizes;
  uint64_t from, to;  // bytes of the file
};
struct SafeHeader {
  std::vector<SafeEntry> entries;  // in the order of the file
  std::map<std::string, std::string> metadata;
};
SafeHeader read_safetensors_header(const Source& source);
Tensor read_safetensor(const Source& source, const SafeEntry& entry);

// A file to be written: the constructor checks names, dtypes and the header's length; write() makes contiguous copies
// where it needs them, one at a time. Files are equal byte for byte to those of the reference library.
class SafeWriter {
 public:
  SafeWriter(std::vector<std::pair<std::string, Tensor>> tensors, const std::map<std::string, std::string>& metadata);
  void write(Writer& writer) const;

 private:
  std::vector<std::pair<std::string, Tensor>> tensors_;
  std::string header_;
};

// Raises where two tensors share memory: the format would hold it twice, and loading would part them.
void check_separate(const std::vector<std::pair<std::string, Tensor>>& tensors);

// Raises ValueError, under this name, for tensors without data.
void check_has_data(const Tensor& t, const std::string& name);
// The tensor without its history, in the CPU's memory. Raises as check_has_data().
Tensor tensor_to_write(const Tensor& t, const std::string& name);

}  // namespace strata::io
