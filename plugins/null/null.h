// The parts of the null device: memory, queues, events, faults.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "strata/sdk/device.hpp"

namespace null {

namespace sdk = strata::sdk;

int32_t devices();
void check_device(int32_t device);  // throws where there is none of that number

// ---- faults.cpp: what tests ask for
enum class Fault { Allocation, Kernel, Bit, Library, Graph, Event, Copy };
bool fails(Fault fault);    // whether this one shall; counts
int64_t delay_us();         // of each piece of work of a queue
int64_t delay_copy_us();    // of each copy
int64_t skipped_barrier();  // the number of the barrier that items of groups walk through, from 1; 0: none
bool offers(const char* op);
bool accepts(const char* op);  // whether an operator of the library takes the cases that it knows

// ---- memory.cpp: an address that nobody can read
using Memory = char*;
Memory allocate(int32_t device, uint64_t bytes);
void release(int32_t device, Memory memory);
// Where kernels find it; null for what is no memory of a device.
char* address(Memory memory);
// Whether so many bytes from `offset` on are one block's.
bool holds(Memory memory, uint64_t offset, uint64_t bytes);
// The number of the allocation that begins there, which no other one has; 0: there is none.
uint64_t serial(Memory memory);

// Of the host, for copies that don't wait; released it is poisoned.
void* host_allocate(int32_t device, uint64_t bytes);
void host_release(int32_t device, void* memory);
bool host_holds(const void* memory, uint64_t bytes);

// ---- launch.cpp
using Kernel = void*;
struct Launch {
  Launch(Kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items, uint32_t group);
  void ask_faults();      // when it is given
  bool is_stale() const;  // some of its memory was released since
  // Gives what went wrong.
  std::string run(std::mt19937_64& random) const;

  struct Taken {
    Memory memory;
    uint64_t serial;
  };
  Kernel kernel;
  int64_t items;
  uint32_t group;
  std::vector<uint64_t> slots;
  std::vector<Taken> memories;
  char* first = nullptr;  // where the first of them lies
  bool failing = false, flips = false;
};

// ---- queue.cpp: a thread that does what it is given, in order
class Queue {
 public:
  explicit Queue(int32_t device);
  ~Queue();
  Queue(const Queue&) = delete;
  void synchronize();
  void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes);
  void download(void* to, Memory from, uint64_t offset, uint64_t bytes);
  void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes);
  void upload_later(Memory to, uint64_t offset, const void* from, uint64_t bytes);
  void download_later(void* to, Memory from, uint64_t offset, uint64_t bytes);
  void peer_copy(Memory to, uint64_t to_offset, int32_t device, Memory from, uint64_t from_offset, uint64_t bytes);
  void launch(Kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items, uint32_t group);
  // A task gives what went wrong, or nothing.
  void add(std::function<std::string()> task);
  void add_seeded(std::function<std::string(std::mt19937_64& random)> task);

 private:
  struct Work;
  std::shared_ptr<Work> work_;  // its thread's, too
};

// ---- event.cpp
class Event {
 public:
  Event(int32_t device, bool timing);
  void record(Queue& queue);
  void wait(Queue& queue);
  bool done();
  void synchronize();
  double since(Event& begin);

 private:
  struct State;
  std::shared_ptr<State> state_;  // tasks of queues may outlive the handle
};

// ---- graph.cpp
class Graph {
 public:
  Graph(int32_t device, const StrataLaunch* launches, uint32_t count);
  void change(uint32_t number, const StrataArgument* arguments);
  void launch(Queue& queue);

 private:
  std::vector<Launch> launches_;
};

// ---- library.cpp: matrix products whose sums go in order
struct Product;
using Operator = const Product*;
Operator find_operator(int32_t device, const char* name);
bool run_operator(Queue* queue, Operator op, const StrataOperand* results, uint32_t result_count,
                  const StrataOperand* arguments, uint32_t argument_count);

using Entry = void (*)(const uint64_t* arguments, int64_t first, int64_t past);

// ---- groups.cpp
using GroupEntry = void (*)(const uint64_t* arguments, int64_t first, int64_t past, int32_t lane, uint64_t* scratch);
// Runs groups one after the other in the same memory, their items in a random order between barriers; gives what went
// wrong.
std::string run_groups(GroupEntry entry, const uint64_t* arguments, int64_t first, int64_t past, int32_t items,
                       std::mt19937_64& random);

}  // namespace null
