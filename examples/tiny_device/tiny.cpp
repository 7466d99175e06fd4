// The smallest device: the host's memory seen through handles, and the host's compiler. Work is done when it is given,
// so its queue has nothing to keep. A device of hardware has the same parts: memory, a queue, a compiler, and a
// dialect.
#include <cstring>
#include <new>

#include "strata/sdk/device.hpp"

namespace sdk = strata::sdk;

namespace {

// What a handle stands for. The host never looks behind one, so it may be anything of a pointer's size.
struct Block {
  char* data;
  uint64_t bytes;
};

// Where a place lies, if it lies in the block.
char* place(const Block* block, uint64_t offset, uint64_t bytes) {
  if (!block || offset > block->bytes || bytes > block->bytes - offset)
    sdk::fail(STRATA_INVALID, "the place is no memory of this device");
  return block->data + offset;
}

struct Tiny {
  static constexpr const char *name = "tiny", *version = "1.0";
  static StrataDialect dialect() { return sdk::host_dialect(); }
  static int32_t count() { return 1; }

  using Memory = Block*;
  static Memory allocate(int32_t, uint64_t bytes) {
    void* data = bytes > kMost ? nullptr : ::operator new(bytes, std::align_val_t(256), std::nothrow);
    if (!data) sdk::fail(STRATA_OUT_OF_MEMORY, "the host has no memory of that size");
    return new Block{static_cast<char*>(data), bytes};
  }
  static void release(int32_t, Memory block) {
    ::operator delete(block->data, std::align_val_t(256));
    delete block;
  }

  using Kernel = sdk::HostProgram::Entry;
  struct Module {
    Module(int32_t, const char* text) : program(text) {}
    Kernel kernel(const char* entry) { return program.entry(entry); }
    sdk::HostProgram program;
  };

  struct Queue {
    explicit Queue(int32_t) {}
    void synchronize() {}
    void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes) {
      std::memcpy(place(to, offset, bytes), from, bytes);
    }
    void download(void* to, Memory from, uint64_t offset, uint64_t bytes) {
      std::memcpy(to, place(from, offset, bytes), bytes);
    }
    void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes) {
      std::memcpy(place(to, to_offset, bytes), place(from, from_offset, bytes), bytes);
    }
    void launch(Kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items) {
      const auto address = [](StrataMemory memory) { return sdk::handle_cast<Memory>(memory)->data; };
      kernel(sdk::slots_of(arguments, count, address).data(), 0, items);
    }
  };

 private:
  static constexpr uint64_t kMost = uint64_t(1) << 40;
};

}  // namespace

STRATA_OFFER_DEVICE(Tiny)
