// Regions of address space that blocks below the size of a huge page are cut out of: what a program touches comes in
// pages of 2 MiB, where blocks of their own would fault in each 4 KiB. See core/allocator.h.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace strata {

constexpr size_t kHugePage = size_t(2) << 20;

using Blocks = std::multimap<size_t, void*>;  // by size

// Not safe for threads. A block is never given back alone: its memory can be, its place stays until the region goes.
class Regions {
 public:
  // Null where the system has none; `calls` counts those to the system. `size` is a multiple of 4 KiB.
  void* cut(size_t size, std::atomic<uint64_t>& calls);
  // Gives the memory of a block back to the system; it comes again, empty, where it is touched.
  static void hollow(void* p, size_t size);
  // Gives regions back all of whose blocks are among `idle`, and takes these out of it.
  void give_back(Blocks& idle);

 private:
  struct Region {
    char* begin;
    size_t cut = 0;  // bytes of blocks
  };
  std::vector<Region> regions_;
};

}  // namespace strata
