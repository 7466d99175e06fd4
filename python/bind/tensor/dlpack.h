// The data structures of DLPack 1.x (https://dmlc.github.io/dlpack), which tensors travel in between libraries.
#pragma once
#include <cstdint>

namespace strata::dlpack {

constexpr uint32_t kMajor = 1, kMinor = 1;
constexpr int32_t kCpu = 1;
enum Code : uint8_t { Int = 0, UInt = 1, Float = 2, BFloat = 4, Complex = 5, Bool = 6 };
constexpr uint64_t kReadOnly = 1, kCopied = 2;

struct DeviceRef {
  int32_t type, index;
};
struct Type {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  DeviceRef device;
  int32_t ndim;
  Type dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};
// Capsule "dltensor".
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
// Capsule "dltensor_versioned".
struct ManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Array array;
};

}  // namespace strata::dlpack
