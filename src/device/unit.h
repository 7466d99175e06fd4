// One device of a plugin, as the host holds it: its queue, its memory with what is kept for reuse, its kernels, and the
// words in which they say what went wrong.
#pragma once
#include <map>
#include <mutex>

#include "core/tensor.h"
#include "device/kernels.h"

namespace strata::device {

// What a launch takes: by operand of the nest, outputs first; by range; by dim of each operand; 16 bytes a scalar.
struct Bound {
  ArrayRef<const Tensor*> operands;
  ArrayRef<int64_t> offset, extent, stride;  // offsets in bytes, strides in elements
  const void* scalars = nullptr;
};

// Who launched: the operator, and the kind of its error where an index is outside.
struct Blame {
  Blame(const char* op, ErrorKind outside = ErrorKind::Index) : op(op), outside(outside) {}
  const char* op;
  ErrorKind outside;
};

class Unit final : public Allocator {
 public:
  Unit(const Plugin& plugin, int index);

  // Memory. Blocks are kept for reuse: work of the one queue runs in order, so that a block may be given again at once.
  void* allocate(size_t bytes) override;
  void free(void* data, size_t bytes) override;
  Device device() const override { return device_; }
  void move(void* to, const void* from, size_t bytes) override;
  MemoryStats stats();
  void reset_peak();
  void empty_cache();

  void upload(const Storage& to, int64_t offset, const void* from, int64_t bytes);
  void download(void* to, const Storage& from, int64_t offset, int64_t bytes);
  // Waits; raises what went wrong since the last time, with the operator's name and the user's line.
  void synchronize();

  // Runs the nest's kernel, which is printed and compiled where it is new here.
  void launch(const KernelNest& nest, const Bound& bound, const Blame& by);

  Kernels& kernels() { return kernels_; }

  const Plugin& plugin() const { return plugin_; }
  // Whether an operator may run here by printed kernels.
  bool offers(const std::string& op) const {
    return !plugin_.table->offers || plugin_.table->offers(device_.index, op.c_str());
  }

 private:
  static size_t round(size_t bytes) {
    return bytes < 1 << 20 ? (bytes + 511) / 512 * 512 : (bytes + 0xfffff) >> 20 << 20;
  }
  void* take(size_t size);
  void release_cached();
  struct Asked {
    std::string op;
    SourceMark mark;
    ErrorKind outside = ErrorKind::Index;
  };
  struct Refusal {
    int32_t said = 0;
    Asked by;
  };
  // What the first kernel said that refused something since the last time. Raised without the lock: to name the user's
  // line may wait for a thread that waits for the lock.
  Refusal refusal();
  static void raise(const Refusal& r);

  const Plugin& plugin_;
  const Device device_;
  StrataQueue queue_ = nullptr;
  std::recursive_mutex lock_;
  std::multimap<size_t, void*> cached_;
  MemoryStats stats_;
  Kernels kernels_;
  // Launches that may refuse something have a word each, until somebody waits for them.
  static constexpr int kWords = 1024;
  StrataMemory words_ = nullptr;
  std::vector<Asked> asked_;
};

// Of a device with a number, or (-1) the current one of its type. Raises for a number that there is not.
Unit& unit(Device device);
// This thread's current device of a type; 0 at first.
int current_index(int device_type);
void set_current(Device device);
int count(const Plugin& plugin);

}  // namespace strata::device
