// The CUDA device.
#include <algorithm>
#include <string>
#include <vector>

#include "driver.h"
#include "strata/sdk/device.hpp"

namespace cuda {

namespace {

namespace sdk = strata::sdk;

void check(const char* call, CUresult code) {
  if (code == CUDA_SUCCESS) return;
  const char* words = nullptr;
  driver().error_string(code, &words);
  sdk::fail(code == CUDA_ERROR_OUT_OF_MEMORY ? STRATA_OUT_OF_MEMORY : STRATA_FAILED,
            std::string(call) + ": " + (words ? words : "error " + std::to_string(code)));
}

struct Device {
  CUcontext context;
  std::string architecture, identity;  // "sm_90"; with the compiler's version
};

std::string compiler_version() {
  int major = 0, minor = 0;
  if (!compiler().why.empty() || compiler().version(&major, &minor) != 0) return "";
  return "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
}

const std::vector<Device>& devices() {
  static const std::vector<Device>* all = [] {
    auto* list = new std::vector<Device>;
    const Driver& d = driver();
    int n = 0;
    if (!d.why.empty() || d.device_count(&n) != CUDA_SUCCESS || n == 0) return list;
    const std::string version = compiler_version();
    for (int k = 0; k < n; ++k) {
      CUdevice id;
      CUcontext context;
      int major = 0, minor = 0;
      if (d.device_get(&id, k) != CUDA_SUCCESS || d.retain(&context, id) != CUDA_SUCCESS) break;
      d.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id);
      d.attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id);
      const std::string architecture = "sm_" + std::to_string(major) + std::to_string(minor);
      list->push_back({context, architecture, version.empty() ? "" : version + " " + architecture});
    }
    return list;
  }();
  return *all;
}

// Makes the device this thread's.
const Device& use(int32_t number) {
  if (number < 0 || size_t(number) >= devices().size())
    sdk::fail(STRATA_INVALID, "there is no device of number " + std::to_string(number) + "; " + driver().why);
  const Device& d = devices()[size_t(number)];
  check("cuCtxSetCurrent", driver().set_current(d.context));
  return d;
}

// A launch as the driver takes it; of arguments that live as long.
struct Launch {
  Launch(const StrataArgument* arguments, uint32_t count, int64_t n, uint32_t group)
      : items(n), memory(count), values(count + 1) {
    for (uint32_t k = 0; k < count; ++k) {
      const StrataArgument& a = arguments[k];
      memory[k] = sdk::memory_of<CUdeviceptr>(a);
      values[k] = a.bytes ? const_cast<uint64_t*>(&a.value) : static_cast<void*>(&memory[k]);
    }
    values[count] = &items;
    // A thread of a long launch takes several items, whose reads are under way together.
    constexpr int64_t kBlock = 128, kMostBlocks = 1 << 13;
    blocks = unsigned(std::min(group ? items : (items + kBlock - 1) / kBlock, kMostBlocks));
    block = group ? group : unsigned(kBlock);
  }
  Launch(const Launch&) = delete;
  CUDA_KERNEL_NODE_PARAMS_v1 node(CUfunction kernel) {
    return {kernel, blocks, 1, 1, block, 1, 1, 0, values.data(), nullptr};
  }

  int64_t items;
  std::vector<CUdeviceptr> memory;
  std::vector<void*> values;
  unsigned blocks, block;
};

struct Queue {
  explicit Queue(int32_t number) : device(number) {
    use(device);
    check("cuStreamCreate", driver().stream_create(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Queue() {
    driver().set_current(devices()[size_t(device)].context);
    driver().stream_destroy(stream);
  }
  void synchronize() {
    use(device);
    check("cuStreamSynchronize", driver().stream_wait(stream));
  }
  // From pageable memory, which is staged before the call returns.
  void upload(CUdeviceptr to, uint64_t offset, const void* from, uint64_t bytes) {
    use(device);
    check("cuMemcpyHtoDAsync", driver().upload(to + offset, from, bytes, stream));
  }
  void download(void* to, CUdeviceptr from, uint64_t offset, uint64_t bytes) {
    download_later(to, from, offset, bytes);
    check("cuStreamSynchronize", driver().stream_wait(stream));
  }
  void copy(CUdeviceptr to, uint64_t to_offset, CUdeviceptr from, uint64_t from_offset, uint64_t bytes) {
    use(device);
    check("cuMemcpyDtoDAsync", driver().copy(to + to_offset, from + from_offset, bytes, stream));
  }
  void upload_later(CUdeviceptr to, uint64_t offset, const void* from, uint64_t bytes) {
    upload(to, offset, from, bytes);
  }
  void download_later(void* to, CUdeviceptr from, uint64_t offset, uint64_t bytes) {
    use(device);
    check("cuMemcpyDtoHAsync", driver().download(to, from + offset, bytes, stream));
  }
  void peer_copy(CUdeviceptr to, uint64_t to_offset, int32_t other, CUdeviceptr from, uint64_t from_offset,
                 uint64_t bytes) {
    const CUcontext theirs = use(other).context, own = use(device).context;
    check("cuMemcpyPeerAsync", driver().peer_copy(to + to_offset, own, from + from_offset, theirs, bytes, stream));
  }
  void launch(CUfunction kernel, const StrataArgument* arguments, uint32_t count, int64_t items, uint32_t group) {
    use(device);
    Launch l(arguments, count, items, group);
    check("cuLaunchKernel",
          driver().launch(kernel, l.blocks, 1, 1, l.block, 1, 1, 0, stream, l.values.data(), nullptr));
  }
  int32_t device;
  CUstream stream = nullptr;
};

struct Event {
  Event(int32_t number, bool timing) : device(number) {
    use(device);
    check("cuEventCreate", driver().event_create(&event, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
  }
  ~Event() {
    driver().set_current(devices()[size_t(device)].context);
    driver().event_destroy(event);
  }
  void record(Queue& queue) {
    use(device);
    check("cuEventRecord", driver().event_record(event, queue.stream));
  }
  void wait(Queue& queue) {
    use(device);
    check("cuStreamWaitEvent", driver().event_wait(queue.stream, event, 0));
  }
  bool done() {
    use(device);
    const CUresult code = driver().event_query(event);
    if (code == CUDA_ERROR_NOT_READY) return false;
    check("cuEventQuery", code);
    return true;
  }
  void synchronize() {
    use(device);
    check("cuEventSynchronize", driver().event_synchronize(event));
  }
  double since(Event& begin) {
    use(device);
    float ms = 0;
    check("cuEventElapsedTime", driver().event_elapsed(&ms, begin.event, event));
    return double(ms);
  }
  int32_t device;
  CUevent event = nullptr;
};

// Kernels one after the other. The driver copies what they take.
class Graph {
 public:
  Graph(int32_t number, const StrataLaunch* launches, uint32_t count) : device_(number) {
    use(device_);
    check("cuGraphCreate", driver().graph_create(&made_.graph, 0));
    for (uint32_t k = 0; k < count; ++k) {
      const StrataLaunch& given = sdk::launch_at(launches, k);
      Node n{nullptr, sdk::handle_cast<CUfunction>(given.kernel), given.count, given.group, given.items};
      Launch l(given.arguments, n.count, n.items, n.group);
      const auto params = l.node(n.kernel);
      check("cuGraphAddKernelNode",
            driver().graph_add(&n.node, made_.graph, k ? &nodes_.back().node : nullptr, k ? 1 : 0, &params));
      nodes_.push_back(n);
    }
    check("cuGraphInstantiate", driver().graph_instantiate(&made_.exec, made_.graph, 0));
  }
  ~Graph() { driver().set_current(devices()[size_t(device_)].context); }
  void change(uint32_t launch, const StrataArgument* arguments) {
    use(device_);
    const Node& n = nodes_.at(launch);
    Launch l(arguments, n.count, n.items, n.group);
    const auto params = l.node(n.kernel);
    check("cuGraphExecKernelNodeSetParams", driver().graph_change(made_.exec, n.node, &params));
  }
  void launch(Queue& queue) {
    use(device_);
    check("cuGraphLaunch", driver().graph_launch(made_.exec, queue.stream));
  }

 private:
  struct Node {
    CUgraphNode node;
    CUfunction kernel;
    uint32_t count, group;
    int64_t items;
  };
  struct Made {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ~Made() {
      if (exec) driver().graph_exec_destroy(exec);
      if (graph) driver().graph_destroy(graph);
    }
  };
  int32_t device_;
  Made made_;
  std::vector<Node> nodes_;
};

// The text as machine code of the architecture.
std::string compiled(const char* text, const std::string& architecture) {
  const Compiler& c = compiler();
  if (!c.why.empty()) sdk::fail(STRATA_UNSUPPORTED, "no NVRTC: " + c.why + "; install it or name it by STRATA_NVRTC");
  const std::string target = "--gpu-architecture=" + architecture;
  const char* const options[] = {target.c_str(),    "--fmad=false",     "--ftz=false",
                                 "--prec-div=true", "--prec-sqrt=true", "--disable-warnings"};
  struct Program {
    nvrtcProgram handle = nullptr;
    ~Program() {
      if (handle) compiler().destroy(&handle);
    }
  } program;
  if (c.create(&program.handle, text, "strata.cu", 0, nullptr, nullptr) != 0)
    sdk::fail(STRATA_FAILED, "nvrtcCreateProgram");
  size_t size = 0;
  if (c.compile(program.handle, int(std::size(options)), options) != 0) {
    c.log_size(program.handle, &size);
    std::string log(size, ' ');
    c.log(program.handle, log.data());
    sdk::fail(STRATA_INVALID, log);
  }
  if (c.code_size(program.handle, &size) != 0) sdk::fail(STRATA_FAILED, "nvrtcGetCUBINSize");
  std::string code(size, 0);
  if (c.code(program.handle, code.data()) != 0) sdk::fail(STRATA_FAILED, "nvrtcGetCUBIN");
  return code;
}

class Module {
 public:
  Module(int32_t device, const char* text) : Module(device, compiled(text, use(device).architecture)) {}
  Module(int32_t device, const void* binary, uint64_t bytes)
      : Module(device, std::string(static_cast<const char*>(binary), bytes)) {}
  ~Module() {
    driver().set_current(devices()[size_t(device_)].context);
    driver().unload(module_);
  }
  CUfunction kernel(const char* entry) {
    use(device_);
    CUfunction function;
    check("cuModuleGetFunction", driver().function(&function, module_, entry));
    return function;
  }
  std::string binary() { return code_; }

 private:
  Module(int32_t device, std::string code) : device_(device), code_(std::move(code)) {
    use(device);
    check("cuModuleLoadData", driver().load(&module_, code_.data()));
  }
  int32_t device_;
  std::string code_;
  CUmodule module_ = nullptr;
};

struct Cuda {
  static constexpr const char *name = "cuda", *version = "0.1";
  using Memory = CUdeviceptr;
  using Kernel = CUfunction;
  using Queue = cuda::Queue;
  using Event = cuda::Event;
  using Graph = cuda::Graph;
  using Module = cuda::Module;

  static int32_t count() {
    if (devices().empty())
      sdk::fail(STRATA_UNSUPPORTED,
                (driver().why.empty() ? "the driver knows no device" : driver().why) +
                    "; to mend it: apt-get install nvidia-driver-570, or start the container with --gpus all");
    return int32_t(devices().size());
  }
  static const char* identity(int32_t number) {
    const std::string& known = use(number).identity;
    return known.empty() ? nullptr : known.c_str();
  }
  static Memory allocate(int32_t number, uint64_t bytes) {
    use(number);
    CUdeviceptr made = 0;
    check("cuMemAlloc", driver().allocate(&made, bytes));
    return made;
  }
  static void release(int32_t number, Memory memory) {
    use(number);
    check("cuMemFree", driver().release(memory));
  }
  static void* host_allocate(int32_t number, uint64_t bytes) {
    use(number);
    void* made = nullptr;
    check("cuMemHostAlloc", driver().host_allocate(&made, bytes, CU_MEMHOSTALLOC_PORTABLE));
    return made;
  }
  static void host_release(int32_t number, void* memory) {
    use(number);
    check("cuMemFreeHost", driver().host_release(memory));
  }

  static StrataDialect dialect() {
    StrataDialect d{};
    d.size = sizeof d;
    d.name = "CUDA C++";
    d.head = STRATA_TYPES("long long", "ll")
        STRATA_BITS("static __device__", "__float_as_int(x)", "__float_as_uint(x)", "__uint_as_float(x)",
                    "__double_as_longlong(x)", "(u64)__double_as_longlong(x)",
                    "__longlong_as_double((i64)x)") "static __device__ void or_status(i32* status, i32 bits) { "
                                                    "atomicOr(status, bits); }\n";
    d.function = "static __device__ void ";
    d.entry = "extern \"C\" __global__ void ";
    d.memory = d.local = "";
    d.helper = "static __device__";
    const char* const words[6][2] = {{"__fsqrt_rn", "__dsqrt_rn"}, {"floorf", "floor"}, {"ceilf", "ceil"},
                                     {"truncf", "trunc"},          {"rintf", "rint"},   {"__fmaf_rn", "__fma_rn"}};
    std::copy(&words[0][0], &words[0][0] + 12, &d.real[0][0]);
    d.infinity[0] = "__int_as_float(0x7f800000)";
    d.infinity[1] = "__longlong_as_double(0x7ff0000000000000ll)";
    d.nan[0] = "__int_as_float(0x7fc00000)";
    d.nan[1] = "__longlong_as_double(0x7ff8000000000000ll)";
    d.first_item = "(i64)blockIdx.x * blockDim.x + threadIdx.x";
    d.item_step = "(i64)gridDim.x * blockDim.x";
    d.or_status = "or_status";
    d.unroll = "#pragma unroll";
    d.unroll_items = "#pragma unroll 4";
    d.apart = "__restrict__ ";
    d.group = 256;
    d.group_entry = "extern \"C\" __global__ void __launch_bounds__(GROUP) ";
    d.barrier = "__syncthreads();";
    d.group_memory = "__shared__ ";
    d.first_group = "(i64)blockIdx.x";
    d.group_step = "(i64)gridDim.x";
    d.lane = "(i32)threadIdx.x";
    return d;
  }
};

}  // namespace

}  // namespace cuda

STRATA_OFFER_DEVICE(cuda::Cuda)
