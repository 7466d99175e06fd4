// The OpenCL device.
#include <algorithm>
#include <mutex>
#include <vector>

#include "objects.h"

namespace opencl {

namespace {

struct Queue {
  explicit Queue(int32_t number) {
    const Device& d = device(number);
    cl_int code = CL_SUCCESS;
    queue = clCreateCommandQueue(d.context, d.id, CL_QUEUE_PROFILING_ENABLE, &code);
    check("clCreateCommandQueue", code);
  }
  ~Queue() {
    clFinish(queue);
    clReleaseCommandQueue(queue);
  }
  void synchronize() { check("clFinish", clFinish(queue)); }
  void upload(cl_mem to, uint64_t offset, const void* from, uint64_t bytes) {
    check("clEnqueueWriteBuffer", clEnqueueWriteBuffer(queue, to, CL_TRUE, offset, bytes, from, 0, nullptr, nullptr));
  }
  void download(void* to, cl_mem from, uint64_t offset, uint64_t bytes) {
    check("clEnqueueReadBuffer", clEnqueueReadBuffer(queue, from, CL_TRUE, offset, bytes, to, 0, nullptr, nullptr));
  }
  void copy(cl_mem to, uint64_t to_offset, cl_mem from, uint64_t from_offset, uint64_t bytes) {
    check("clEnqueueCopyBuffer",
          clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, 0, nullptr, nullptr));
  }
  void launch(cl_kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items, uint32_t group) {
    // A kernel object keeps its arguments, so that queues wait for each other here.
    static std::mutex setting;
    std::lock_guard<std::mutex> hold(setting);
    for (uint32_t k = 0; k < count; ++k) {
      const StrataArgument& a = arguments[k];
      const cl_mem memory = sdk::memory_of<cl_mem>(a);
      check("clSetKernelArg", a.bytes ? clSetKernelArg(kernel, k, a.bytes, &a.value)
                                      : clSetKernelArg(kernel, k, sizeof(cl_mem), memory ? &memory : nullptr));
    }
    check("clSetKernelArg", clSetKernelArg(kernel, count, sizeof items, &items));
    const size_t most = size_t(std::min<int64_t>(items, int64_t(1) << 16));  // each takes several where there are more
    const size_t global = group ? most * group : most, local = group;
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, group ? &local : nullptr, 0, nullptr, nullptr));
    clFlush(queue);
  }
  cl_command_queue queue;
};

// Null until it is recorded.
struct Event {
  Event(int32_t, bool) {}
  ~Event() {
    if (event) clReleaseEvent(event);
  }
  void record(Queue& queue) {
    cl_event made = nullptr;
    check("clEnqueueMarkerWithWaitList", clEnqueueMarkerWithWaitList(queue.queue, 0, nullptr, &made));
    clFlush(queue.queue);
    if (event) clReleaseEvent(event);
    event = made;
  }
  void wait(Queue& queue) {
    check("clEnqueueBarrierWithWaitList", clEnqueueBarrierWithWaitList(queue.queue, 1, &event, nullptr));
  }
  bool done() {
    cl_int status = CL_COMPLETE;
    check("clGetEventInfo", clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
    return status <= CL_COMPLETE;  // less: it failed
  }
  void synchronize() { check("clWaitForEvents", clWaitForEvents(1, &event)); }
  double since(Event& begin) { return (double(ended()) - double(begin.ended())) / 1e6; }

 private:
  cl_ulong ended() {  // ns
    cl_ulong at = 0;
    check("clGetEventProfilingInfo", clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof at, &at, nullptr));
    return at;
  }
  cl_event event = nullptr;
};

struct Module {
  Module(int32_t number, const char* text) {
    cl_int code = CL_SUCCESS;
    program = clCreateProgramWithSource(device(number).context, 1, &text, nullptr, &code);
    check("clCreateProgramWithSource", code);
    build(number);
  }
  Module(int32_t number, const void* binary, uint64_t bytes) {
    const auto* place = static_cast<const unsigned char*>(binary);
    const size_t size = bytes;
    cl_int code = CL_SUCCESS;
    program = clCreateProgramWithBinary(device(number).context, 1, &device(number).id, &size, &place, nullptr, &code);
    check("clCreateProgramWithBinary", code);
    build(number);
  }
  ~Module() {
    for (cl_kernel k : kernels) clReleaseKernel(k);
    clReleaseProgram(program);
  }
  Module(const Module&) = delete;
  cl_kernel kernel(const char* entry) {
    cl_int code = CL_SUCCESS;
    cl_kernel made = clCreateKernel(program, entry, &code);
    check("clCreateKernel", code);
    std::lock_guard<std::mutex> hold(lock);
    return kernels.emplace_back(made);
  }
  std::string binary() {
    size_t size = 0;
    check("clGetProgramInfo", clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr));
    std::string code(size, 0);
    auto* place = reinterpret_cast<unsigned char*>(code.data());
    if (size) check("clGetProgramInfo", clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr));
    return code;
  }

 private:
  void build(int32_t number) {
    const cl_device_id id = device(number).id;
    constexpr const char* kOptions = "-cl-fp32-correctly-rounded-divide-sqrt -w";
    if (clBuildProgram(program, 1, &id, kOptions, nullptr, nullptr) == CL_SUCCESS) return;
    size_t size = 0;
    clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, ' ');
    clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    clReleaseProgram(program);
    sdk::fail(STRATA_INVALID, log);
  }
  cl_program program;
  std::mutex lock;
  std::vector<cl_kernel> kernels;
};

struct OpenCL {
  static constexpr const char *name = "opencl", *version = "0.1";
  using Memory = cl_mem;
  using Kernel = cl_kernel;
  using Queue = opencl::Queue;
  using Event = opencl::Event;
  using Module = opencl::Module;
  static int32_t count() { return opencl::count(); }
  static const char* identity(int32_t number) { return device(number).identity.c_str(); }
  static Memory allocate(int32_t number, uint64_t bytes) {
    cl_int code = CL_SUCCESS;
    cl_mem made = clCreateBuffer(device(number).context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    check("clCreateBuffer", code);
    return made;
  }
  static void release(int32_t, Memory memory) { check("clReleaseMemObject", clReleaseMemObject(memory)); }

  static StrataDialect dialect() {
    StrataDialect d{};
    d.size = sizeof d;
    d.name = "OpenCL C";
    d.head = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT OFF\n" STRATA_TYPES("long", "L")
        STRATA_BITS("static inline", "as_int(x)", "as_uint(x)", "as_float(x)", "as_long(x)", "as_ulong(x)",
                    "as_double(x)") "static inline void or_status(__global i32* status, i32 bits) { "
                                    "atomic_or((volatile __global i32*)status, bits); }\n";
    d.function = "static void ";
    d.entry = "__kernel void ";
    d.memory = "__global ";
    d.helper = "static";
    const char* const words[] = {"sqrt", "floor", "ceil", "trunc", "rint", "fma"};
    for (int k = 0; k < 6; ++k) d.real[k][0] = d.real[k][1] = words[k];
    d.infinity[0] = "INFINITY";
    d.infinity[1] = "(f64)INFINITY";
    d.nan[0] = "NAN";
    d.nan[1] = "(f64)NAN";
    d.first_item = "(i64)get_global_id(0)";
    d.item_step = "(i64)get_global_size(0)";
    d.or_status = "or_status";
    d.unroll = d.unroll_items = "";
    d.apart = "restrict ";
    d.group = 64;
    d.group_entry = "__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void ";
    d.local = d.group_memory = "__local ";
    d.barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
    d.first_group = "(i64)get_group_id(0)";
    d.group_step = "(i64)get_num_groups(0)";
    d.lane = "(i32)get_local_id(0)";
    return d;
  }
};

}  // namespace

}  // namespace opencl

STRATA_OFFER_DEVICE(opencl::OpenCL)
