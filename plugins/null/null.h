// The parts of the null device: memory, queues.
#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "strata/sdk/device.h"

namespace null {

// This thread's last error; gives `status`.
StrataStatus fail(StrataStatus status, std::string why);
const char* last_error();
uint64_t setting(const char* name, uint64_t otherwise);
int32_t devices();

// ---- faults.cpp: what tests ask for
enum class Fault { Allocation, Kernel, Bit };
bool fails(Fault fault);    // whether this one shall; counts
int64_t delay_us();         // of each piece of work of a queue
int64_t delay_copy_us();    // of each copy
int64_t skipped_barrier();  // the number of the barrier that items of groups walk through, from 1; 0: none
int32_t offers(int32_t device, const char* op);

// ---- memory.cpp
StrataStatus allocate(int32_t device, uint64_t bytes, StrataMemory* memory);
StrataStatus release(int32_t device, StrataMemory memory);
// Where kernels find it; null for what is no memory of a device.
char* address(StrataMemory memory);
// Whether so many bytes from `offset` on are one block's.
bool holds(StrataMemory memory, uint64_t offset, uint64_t bytes);

// ---- queue.cpp
StrataStatus queue_create(int32_t device, StrataQueue* queue);
StrataStatus queue_destroy(StrataQueue queue);
StrataStatus synchronize(StrataQueue queue);
StrataStatus upload(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes);
StrataStatus download(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes);
StrataStatus copy(StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                  uint64_t bytes);
StrataStatus launch(StrataQueue queue, StrataKernel kernel, const StrataArgument* arguments, uint32_t count,
                    int64_t items, uint32_t group);

// ---- event.cpp
StrataStatus event_create(int32_t device, int32_t timing, StrataEvent* event);
StrataStatus event_destroy(StrataEvent event);
StrataStatus event_record(StrataEvent event, StrataQueue queue);
StrataStatus event_wait(StrataQueue queue, StrataEvent event);
StrataStatus event_query(StrataEvent event, int32_t* done);
StrataStatus event_synchronize(StrataEvent event);
StrataStatus event_elapsed(StrataEvent begin, StrataEvent end, double* ms);
// A task of a queue; it gives what went wrong, or nothing.
void add(StrataQueue queue, std::function<std::string()> task);

using Entry = void (*)(const uint64_t* arguments, int64_t first, int64_t past);

// ---- groups.cpp
using GroupEntry = void (*)(const uint64_t* arguments, int64_t first, int64_t past, int32_t lane, uint64_t* scratch);
// Runs groups one after the other in the same memory, their items in a random order between barriers; gives what went
// wrong.
std::string run_groups(GroupEntry entry, const uint64_t* arguments, int64_t first, int64_t past, int32_t items,
                       std::mt19937_64& random);

}  // namespace null
