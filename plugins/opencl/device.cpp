// The table of the OpenCL device.
#include <algorithm>
#include <vector>

#include "objects.h"

namespace opencl {

namespace {

template <class T, class H>
T& of(H handle) {
  return *reinterpret_cast<T*>(handle);
}
cl_mem memory_of(StrataMemory memory) { return reinterpret_cast<cl_mem>(memory); }

StrataStatus allocate(int32_t number, uint64_t bytes, StrataMemory* memory) {
  const Device* d = device(number);
  if (!d) return STRATA_INVALID;
  cl_int code = CL_SUCCESS;
  cl_mem made = clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  if (code != CL_SUCCESS) return fail("clCreateBuffer", code);
  *memory = reinterpret_cast<StrataMemory>(made);
  return STRATA_OK;
}

StrataStatus release(int32_t, StrataMemory memory) {
  const cl_int code = clReleaseMemObject(memory_of(memory));
  return code == CL_SUCCESS ? STRATA_OK : fail("clReleaseMemObject", code);
}

StrataStatus queue_create(int32_t number, StrataQueue* queue) {
  const Device* d = device(number);
  if (!d) return STRATA_INVALID;
  cl_int code = CL_SUCCESS;
  cl_command_queue made = clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &code);
  if (code != CL_SUCCESS) return fail("clCreateCommandQueue", code);
  *queue = reinterpret_cast<StrataQueue>(new Queue{made, {}});
  return STRATA_OK;
}

StrataStatus queue_destroy(StrataQueue queue) {
  Queue& q = of<Queue>(queue);
  clFinish(q.queue);
  clReleaseCommandQueue(q.queue);
  delete &q;
  return STRATA_OK;
}

StrataStatus synchronize(StrataQueue queue) {
  const cl_int code = clFinish(of<Queue>(queue).queue);
  return code == CL_SUCCESS ? STRATA_OK : fail("clFinish", code);
}

StrataStatus upload(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes) {
  const cl_int code =
      clEnqueueWriteBuffer(of<Queue>(queue).queue, memory_of(to), CL_TRUE, offset, bytes, from, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? STRATA_OK : fail("clEnqueueWriteBuffer", code);
}

StrataStatus download(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes) {
  const cl_int code =
      clEnqueueReadBuffer(of<Queue>(queue).queue, memory_of(from), CL_TRUE, offset, bytes, to, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? STRATA_OK : fail("clEnqueueReadBuffer", code);
}

// Null until it is recorded.
struct Event {
  cl_event event = nullptr;
};

StrataStatus event_create(int32_t, int32_t, StrataEvent* event) {
  *event = reinterpret_cast<StrataEvent>(new Event);
  return STRATA_OK;
}

StrataStatus event_destroy(StrataEvent event) {
  Event* e = &of<Event>(event);
  if (e->event) clReleaseEvent(e->event);
  delete e;
  return STRATA_OK;
}

StrataStatus event_record(StrataEvent event, StrataQueue queue) {
  Event& e = of<Event>(event);
  cl_event made = nullptr;
  const cl_int code = clEnqueueMarkerWithWaitList(of<Queue>(queue).queue, 0, nullptr, &made);
  if (code != CL_SUCCESS) return fail("clEnqueueMarkerWithWaitList", code);
  clFlush(of<Queue>(queue).queue);
  if (e.event) clReleaseEvent(e.event);
  e.event = made;
  return STRATA_OK;
}

StrataStatus event_wait(StrataQueue queue, StrataEvent event) {
  const cl_int code = clEnqueueBarrierWithWaitList(of<Queue>(queue).queue, 1, &of<Event>(event).event, nullptr);
  return code == CL_SUCCESS ? STRATA_OK : fail("clEnqueueBarrierWithWaitList", code);
}

StrataStatus event_query(StrataEvent event, int32_t* done) {
  cl_int status = CL_COMPLETE;
  const cl_int code =
      clGetEventInfo(of<Event>(event).event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  *done = status <= CL_COMPLETE;  // less: it failed
  return code == CL_SUCCESS ? STRATA_OK : fail("clGetEventInfo", code);
}

StrataStatus event_synchronize(StrataEvent event) {
  const cl_int code = clWaitForEvents(1, &of<Event>(event).event);
  return code == CL_SUCCESS ? STRATA_OK : fail("clWaitForEvents", code);
}

StrataStatus event_elapsed(StrataEvent begin, StrataEvent end, double* ms) {
  cl_ulong at[2] = {0, 0};
  const StrataEvent events[] = {begin, end};
  for (int k = 0; k < 2; ++k) {
    const cl_int code =
        clGetEventProfilingInfo(of<Event>(events[k]).event, CL_PROFILING_COMMAND_END, sizeof at[k], &at[k], nullptr);
    if (code != CL_SUCCESS) return fail("clGetEventProfilingInfo", code);
  }
  *ms = (double(at[1]) - double(at[0])) / 1e6;
  return STRATA_OK;
}

StrataStatus copy(StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                  uint64_t bytes) {
  const cl_int code = clEnqueueCopyBuffer(of<Queue>(queue).queue, memory_of(from), memory_of(to), from_offset,
                                          to_offset, bytes, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? STRATA_OK : fail("clEnqueueCopyBuffer", code);
}

constexpr const char* kOptions = "-cl-fp32-correctly-rounded-divide-sqrt -w";

StrataStatus build(const Device& d, cl_program program, StrataModule* module) {
  if (clBuildProgram(program, 1, &d.id, kOptions, nullptr, nullptr) != CL_SUCCESS) {
    size_t size = 0;
    clGetProgramBuildInfo(program, d.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, ' ');
    clGetProgramBuildInfo(program, d.id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    clReleaseProgram(program);
    return fail(STRATA_INVALID, log);
  }
  *module = reinterpret_cast<StrataModule>(new Module{program});
  return STRATA_OK;
}

StrataStatus compile(int32_t number, const char* text, StrataModule* module) {
  const Device* d = device(number);
  if (!d) return STRATA_INVALID;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(d->context, 1, &text, nullptr, &code);
  return code == CL_SUCCESS ? build(*d, program, module) : fail("clCreateProgramWithSource", code);
}

const char* identity(int32_t number) {
  const Device* d = device(number);
  return d ? d->identity.c_str() : nullptr;
}

StrataStatus module_binary(StrataModule module, void* to, uint64_t room, uint64_t* bytes) {
  cl_program program = of<Module>(module).program;
  size_t size = 0;
  cl_int code = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
  if (code != CL_SUCCESS) return fail("clGetProgramInfo", code);
  *bytes = size;
  if (room < size || size == 0) return STRATA_OK;
  auto* place = static_cast<unsigned char*>(to);
  code = clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr);
  return code == CL_SUCCESS ? STRATA_OK : fail("clGetProgramInfo", code);
}

StrataStatus load(int32_t number, const void* binary, uint64_t bytes, StrataModule* module) {
  const Device* d = device(number);
  if (!d) return STRATA_INVALID;
  const auto* place = static_cast<const unsigned char*>(binary);
  const size_t size = bytes;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithBinary(d->context, 1, &d->id, &size, &place, nullptr, &code);
  return code == CL_SUCCESS ? build(*d, program, module) : fail("clCreateProgramWithBinary", code);
}

StrataStatus module_release(StrataModule module) {
  clReleaseProgram(of<Module>(module).program);
  delete &of<Module>(module);
  return STRATA_OK;
}

StrataStatus kernel(StrataModule module, const char* entry, StrataKernel* out) {
  cl_int code = CL_SUCCESS;
  cl_kernel made = clCreateKernel(of<Module>(module).program, entry, &code);
  if (code != CL_SUCCESS) return fail("clCreateKernel", code);
  *out = reinterpret_cast<StrataKernel>(new Kernel{made});
  return STRATA_OK;
}

StrataStatus launch(StrataQueue queue, StrataKernel handle, const StrataArgument* arguments, uint32_t count,
                    int64_t items, uint32_t group) {
  Queue& q = of<Queue>(queue);
  cl_kernel kernel = of<Kernel>(handle).kernel;
  // A kernel object keeps its arguments, so that its queues wait for each other here.
  static std::mutex setting;
  std::lock_guard<std::mutex> hold(setting);
  for (uint32_t k = 0; k < count; ++k) {
    const StrataArgument& a = arguments[k];
    const cl_mem memory = memory_of(a.memory);
    const cl_int code = a.bytes ? clSetKernelArg(kernel, k, a.bytes, &a.value)
                                : clSetKernelArg(kernel, k, sizeof(cl_mem), memory ? &memory : nullptr);
    if (code != CL_SUCCESS) return fail("clSetKernelArg", code);
  }
  const cl_int code = clSetKernelArg(kernel, count, sizeof items, &items);
  if (code != CL_SUCCESS) return fail("clSetKernelArg", code);
  const size_t most = size_t(std::min<int64_t>(items, int64_t(1) << 16));  // each takes several where there are more
  const size_t global = group ? most * group : most, local = group;
  const cl_int started =
      clEnqueueNDRangeKernel(q.queue, kernel, 1, nullptr, &global, group ? &local : nullptr, 0, nullptr, nullptr);
  if (started != CL_SUCCESS) return fail("clEnqueueNDRangeKernel", started);
  clFlush(q.queue);
  return STRATA_OK;
}

const StrataDialect dialect = {
    sizeof(StrataDialect),
    0,
    "OpenCL C",
    R"C(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
typedef double f64;
typedef int bit;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
static inline i32 bits_i32(f32 x) { return as_int(x); }
static inline u32 bits_u32(f32 x) { return as_uint(x); }
static inline f32 bits_f32(u32 x) { return as_float(x); }
static inline i64 bits_i64(f64 x) { return as_long(x); }
static inline u64 bits_u64(f64 x) { return as_ulong(x); }
static inline f64 bits_f64(u64 x) { return as_double(x); }
static inline void or_status(__global i32* status, i32 bits) { atomic_or((volatile __global i32*)status, bits); }
)C",
    "static void ",
    "__kernel void ",
    "__global ",
    "static",
    {{"sqrt", "sqrt"}, {"floor", "floor"}, {"ceil", "ceil"}, {"trunc", "trunc"}, {"rint", "rint"}, {"fma", "fma"}},
    {"INFINITY", "(f64)INFINITY"},
    {"NAN", "(f64)NAN"},
    "(i64)get_global_id(0)",
    "(i64)get_global_size(0)",
    "or_status",
    "",
    "",
    "restrict ",
    64,
    "__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void ",
    "__local ",
    "barrier(CLK_LOCAL_MEM_FENCE);",
    "__local ",
    "(i64)get_group_id(0)",
    "(i64)get_num_groups(0)",
    "(i32)get_local_id(0)",
};

const StrataDevice table = {
    sizeof(StrataDevice),
    STRATA_SDK_MAJOR,
    STRATA_SDK_MINOR,
    "opencl",
    "0.1",
    &dialect,
    last_error,
    count,
    allocate,
    release,
    queue_create,
    queue_destroy,
    synchronize,
    upload,
    download,
    copy,
    compile,
    module_release,
    kernel,
    launch,
    nullptr,
    identity,
    module_binary,
    load,
    event_create,
    event_destroy,
    event_record,
    event_wait,
    event_query,
    event_synchronize,
    event_elapsed,
};

}  // namespace

}  // namespace opencl

extern "C" __attribute__((visibility("default"))) const StrataDevice* strata_device_v0(const StrataHost*, char*,
                                                                                       uint64_t) {
  return &opencl::table;
}
