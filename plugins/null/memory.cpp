#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "null.h"

namespace null {

namespace {

constexpr uint64_t kAlign = 256;

// All of a device's memory: a file in memory, mapped for the host without access and for kernels with it.
struct Arena {
  std::mutex lock;
  uint64_t room = 0;
  char *host = nullptr, *own = nullptr;
  int file = -1;
  std::map<uint64_t, uint64_t> free_at;  // offset -> bytes
  struct Used {
    uint64_t bytes, serial;
  };
  std::map<uint64_t, Used> used;
  uint64_t serials = 0;

  Arena() {
    room = sdk::setting("STRATA_NULL_MEMORY", uint64_t(8) << 30) / kAlign * kAlign;
    file = memfd_create("strata_null", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, off_t(room)) != 0) return;
    void* a = mmap(nullptr, room, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void* b = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (a == MAP_FAILED || b == MAP_FAILED) return;
    host = static_cast<char*>(a);
    own = static_cast<char*>(b);
    free_at[0] = room;
  }
};

constexpr int kMost = 16;
Arena& arena(int32_t device) {
  static std::mutex lock;
  static Arena* all[kMost];
  std::lock_guard<std::mutex> hold(lock);
  if (!all[device]) all[device] = new Arena;
  return *all[device];
}

// The device that the handle belongs to; -1: none.
int32_t owner(Memory at) {
  for (int32_t d = 0; d < devices(); ++d) {
    Arena& a = arena(d);
    if (a.host && at >= a.host && at < a.host + a.room) return d;
  }
  return -1;
}

}  // namespace

int32_t devices() {
  static const int32_t n = int32_t(sdk::setting("STRATA_NULL_DEVICES", 2));
  return n < 1 ? 1 : n > kMost ? kMost : n;
}

void check_device(int32_t device) {
  if (device < 0 || device >= devices()) sdk::fail(STRATA_INVALID, "there is no device of that number");
}

Memory allocate(int32_t device, uint64_t bytes) {
  check_device(device);
  Arena& a = arena(device);
  if (!a.host) sdk::fail(STRATA_FAILED, "the system gives no memory to map");
  if (bytes == 0 || bytes > a.room) sdk::fail(STRATA_OUT_OF_MEMORY, "more than the device has");
  if (fails(Fault::Allocation)) sdk::fail(STRATA_OUT_OF_MEMORY, "a fault that was asked for");
  const uint64_t size = (bytes + kAlign - 1) / kAlign * kAlign;
  std::lock_guard<std::mutex> hold(a.lock);
  for (auto at = a.free_at.begin(); at != a.free_at.end(); ++at) {
    if (at->second < size) continue;
    const auto [offset, had] = *at;
    a.free_at.erase(at);
    if (had > size) a.free_at[offset + size] = had - size;
    a.used[offset] = {size, ++a.serials};
    std::memset(a.own + offset, 0xCB, size);
    return a.host + offset;
  }
  sdk::fail(STRATA_OUT_OF_MEMORY, "no free block of " + std::to_string(bytes) + " bytes");
}

void release(int32_t device, Memory memory) {
  if (owner(memory) != device) sdk::fail(STRATA_INVALID, "no memory of that device");
  Arena& a = arena(device);
  std::lock_guard<std::mutex> hold(a.lock);
  const auto at = a.used.find(uint64_t(memory - a.host));
  if (at == a.used.end()) sdk::fail(STRATA_INVALID, "no block begins there: given back twice?");
  uint64_t offset = at->first, size = at->second.bytes;
  a.used.erase(at);
  fallocate(a.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(offset), off_t(size));
  auto next = a.free_at.upper_bound(offset);
  if (next != a.free_at.end() && next->first == offset + size) size += next->second, next = a.free_at.erase(next);
  if (next != a.free_at.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  a.free_at[offset] = size;
}

char* address(Memory memory) {
  const int32_t d = owner(memory);
  return d < 0 ? nullptr : arena(d).own + (memory - arena(d).host);
}

namespace {
std::mutex host_lock;
std::map<const char*, uint64_t> host_blocks;
}  // namespace

void* host_allocate(int32_t device, uint64_t bytes) {
  check_device(device);
  void* made = bytes <= arena(device).room ? std::aligned_alloc(kAlign, (bytes + kAlign) / kAlign * kAlign) : nullptr;
  if (!made) sdk::fail(STRATA_OUT_OF_MEMORY, "the host has no memory of that size");
  std::lock_guard<std::mutex> hold(host_lock);
  host_blocks[static_cast<char*>(made)] = bytes;
  return made;
}

void host_release(int32_t, void* memory) {
  std::lock_guard<std::mutex> hold(host_lock);
  const auto at = host_blocks.find(static_cast<char*>(memory));
  if (at == host_blocks.end()) sdk::fail(STRATA_INVALID, "no block of the host begins there: given back twice?");
  std::memset(memory, 0xCB, at->second);  // a copy that is still under way shows
  host_blocks.erase(at);
  std::free(memory);
}

bool host_holds(const void* memory, uint64_t bytes) {
  const char* first = static_cast<const char*>(memory);
  std::lock_guard<std::mutex> hold(host_lock);
  const auto next = host_blocks.upper_bound(first);
  if (next == host_blocks.begin()) return false;
  const auto& [at, size] = *std::prev(next);
  return bytes <= size && uint64_t(first - at) <= size - bytes;
}

bool holds(Memory memory, uint64_t offset, uint64_t bytes) {
  const int32_t d = owner(memory);
  if (d < 0) return false;
  Arena& a = arena(d);
  std::lock_guard<std::mutex> hold(a.lock);
  const auto at = a.used.find(uint64_t(memory - a.host));
  return at != a.used.end() && offset <= at->second.bytes && bytes <= at->second.bytes - offset;
}

uint64_t serial(Memory memory) {
  const int32_t d = owner(memory);
  if (d < 0) return 0;
  Arena& a = arena(d);
  std::lock_guard<std::mutex> hold(a.lock);
  const auto at = a.used.find(uint64_t(memory - a.host));
  return at == a.used.end() ? 0 : at->second.serial;
}

}  // namespace null
