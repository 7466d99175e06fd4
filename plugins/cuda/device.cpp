// The table of the CUDA device.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "driver.h"
#include "strata/sdk/device.h"

namespace cuda {

namespace {

thread_local std::string error;

StrataStatus fail(StrataStatus status, std::string why) {
  error = std::move(why);
  return status;
}

const char* last_error() { return error.c_str(); }

StrataStatus told(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return STRATA_OK;
  const char* words = nullptr;
  driver().error_string(code, &words);
  return fail(code == CUDA_ERROR_OUT_OF_MEMORY ? STRATA_OUT_OF_MEMORY : STRATA_FAILED,
              std::string(what) + ": " + (words ? words : "error " + std::to_string(code)));
}

struct Device {
  CUcontext context;
  std::string architecture;  // "sm_90"
};

const std::vector<Device>& devices() {
  static const std::vector<Device>* all = [] {
    auto* list = new std::vector<Device>;
    const Driver& d = driver();
    int n = 0;
    if (!d.why.empty() || d.device_count(&n) != CUDA_SUCCESS) return list;
    for (int k = 0; k < n; ++k) {
      CUdevice id;
      CUcontext context;
      int major = 0, minor = 0;
      if (d.device_get(&id, k) != CUDA_SUCCESS || d.retain(&context, id) != CUDA_SUCCESS) break;
      d.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id);
      d.attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id);
      list->push_back({context, "sm_" + std::to_string(major) + std::to_string(minor)});
    }
    return list;
  }();
  return *all;
}

int32_t count() {
  if (devices().empty())
    fail(STRATA_UNSUPPORTED,
         (driver().why.empty() ? "the driver knows no device" : driver().why) +
             "; to mend it: apt-get install nvidia-driver-570, or start the container with --gpus all");
  return int32_t(devices().size());
}

// Makes the device this thread's.
StrataStatus use(int32_t number) {
  if (number < 0 || number >= count())
    return fail(STRATA_INVALID, "there is no device of number " + std::to_string(number) + "; " + driver().why);
  return told(driver().set_current(devices()[size_t(number)].context), "cuCtxSetCurrent");
}

struct Queue {
  int32_t device;
  CUstream stream;
};
Queue& of(StrataQueue queue) { return *reinterpret_cast<Queue*>(queue); }
struct Module {
  int32_t device;
  CUmodule module;
  std::string code;
};

CUdeviceptr at(StrataMemory memory, uint64_t offset) { return reinterpret_cast<CUdeviceptr>(memory) + offset; }

StrataStatus allocate(int32_t device, uint64_t bytes, StrataMemory* memory) {
  if (const StrataStatus s = use(device)) return s;
  CUdeviceptr made = 0;
  const StrataStatus s = told(driver().allocate(&made, bytes), "cuMemAlloc");
  if (s == STRATA_OK) *memory = reinterpret_cast<StrataMemory>(made);
  return s;
}

StrataStatus release(int32_t device, StrataMemory memory) {
  if (const StrataStatus s = use(device)) return s;
  return told(driver().release(at(memory, 0)), "cuMemFree");
}

StrataStatus queue_create(int32_t device, StrataQueue* queue) {
  if (const StrataStatus s = use(device)) return s;
  CUstream stream;
  const StrataStatus s = told(driver().stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (s == STRATA_OK) *queue = reinterpret_cast<StrataQueue>(new Queue{device, stream});
  return s;
}

StrataStatus queue_destroy(StrataQueue queue) {
  Queue* q = &of(queue);
  if (const StrataStatus s = use(q->device)) return s;
  const StrataStatus s = told(driver().stream_destroy(q->stream), "cuStreamDestroy");
  delete q;
  return s;
}

StrataStatus synchronize(StrataQueue queue) {
  if (const StrataStatus s = use(of(queue).device)) return s;
  return told(driver().stream_wait(of(queue).stream), "cuStreamSynchronize");
}

// From pageable memory, which is staged before the call returns.
StrataStatus upload(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes) {
  if (const StrataStatus s = use(of(queue).device)) return s;
  return told(driver().upload(at(to, offset), from, bytes, of(queue).stream), "cuMemcpyHtoDAsync");
}

StrataStatus download(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes) {
  if (const StrataStatus s = use(of(queue).device)) return s;
  if (const StrataStatus s =
          told(driver().download(to, at(from, offset), bytes, of(queue).stream), "cuMemcpyDtoHAsync"))
    return s;
  return told(driver().stream_wait(of(queue).stream), "cuStreamSynchronize");
}

StrataStatus copy(StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                  uint64_t bytes) {
  if (const StrataStatus s = use(of(queue).device)) return s;
  return told(driver().copy(at(to, to_offset), at(from, from_offset), bytes, of(queue).stream), "cuMemcpyDtoDAsync");
}

struct Event {
  int32_t device;
  CUevent event;
};
Event& of(StrataEvent event) { return *reinterpret_cast<Event*>(event); }

StrataStatus event_create(int32_t device, int32_t timing, StrataEvent* event) {
  if (const StrataStatus s = use(device)) return s;
  CUevent made;
  const StrataStatus s =
      told(driver().event_create(&made, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  if (s == STRATA_OK) *event = reinterpret_cast<StrataEvent>(new Event{device, made});
  return s;
}

StrataStatus event_destroy(StrataEvent event) {
  Event* e = &of(event);
  if (const StrataStatus s = use(e->device)) return s;
  const StrataStatus s = told(driver().event_destroy(e->event), "cuEventDestroy");
  delete e;
  return s;
}

StrataStatus event_record(StrataEvent event, StrataQueue queue) {
  if (const StrataStatus s = use(of(event).device)) return s;
  return told(driver().event_record(of(event).event, of(queue).stream), "cuEventRecord");
}

StrataStatus event_wait(StrataQueue queue, StrataEvent event) {
  if (const StrataStatus s = use(of(event).device)) return s;
  return told(driver().event_wait(of(queue).stream, of(event).event, 0), "cuStreamWaitEvent");
}

StrataStatus event_query(StrataEvent event, int32_t* done) {
  if (const StrataStatus s = use(of(event).device)) return s;
  const CUresult code = driver().event_query(of(event).event);
  *done = code != CUDA_ERROR_NOT_READY;
  return *done ? told(code, "cuEventQuery") : STRATA_OK;
}

StrataStatus event_synchronize(StrataEvent event) {
  if (const StrataStatus s = use(of(event).device)) return s;
  return told(driver().event_synchronize(of(event).event), "cuEventSynchronize");
}

StrataStatus event_elapsed(StrataEvent begin, StrataEvent end, double* ms) {
  if (const StrataStatus s = use(of(begin).device)) return s;
  float found = 0;
  const StrataStatus s = told(driver().event_elapsed(&found, of(begin).event, of(end).event), "cuEventElapsedTime");
  *ms = double(found);
  return s;
}

StrataStatus load(int32_t device, const void* binary, uint64_t bytes, StrataModule* module) {
  if (const StrataStatus s = use(device)) return s;
  CUmodule loaded;
  if (const StrataStatus s = told(driver().load(&loaded, binary), "cuModuleLoadData")) return s;
  *module =
      reinterpret_cast<StrataModule>(new Module{device, loaded, std::string(static_cast<const char*>(binary), bytes)});
  return STRATA_OK;
}

StrataStatus compile(int32_t device, const char* text, StrataModule* module) {
  if (const StrataStatus s = use(device)) return s;
  const Compiler& c = compiler();
  if (!c.why.empty()) return fail(STRATA_UNSUPPORTED, "no NVRTC: " + c.why + "; install it or name it by STRATA_NVRTC");
  const std::string architecture = "--gpu-architecture=" + devices()[size_t(device)].architecture;
  const char* const options[] = {architecture.c_str(), "--fmad=false",     "--ftz=false",
                                 "--prec-div=true",    "--prec-sqrt=true", "--disable-warnings"};
  nvrtcProgram program = nullptr;
  if (c.create(&program, text, "strata.cu", 0, nullptr, nullptr) != 0) return fail(STRATA_FAILED, "nvrtcCreateProgram");
  StrataStatus status = STRATA_OK;
  size_t size = 0;
  std::string code;
  if (c.compile(program, int(std::size(options)), options) != 0) {
    c.log_size(program, &size);
    std::string log(size, ' ');
    c.log(program, log.data());
    status = fail(STRATA_INVALID, log);
  } else if (c.code_size(program, &size) != 0 || (code.resize(size), c.code(program, code.data())) != 0) {
    status = fail(STRATA_FAILED, "nvrtcGetCUBIN");
  }
  c.destroy(&program);
  return status == STRATA_OK ? load(device, code.data(), code.size(), module) : status;
}

const char* identity(int32_t device) {
  static const std::vector<std::string>* all = [] {
    auto* list = new std::vector<std::string>;
    int major = 0, minor = 0;
    if (!compiler().why.empty() || compiler().version(&major, &minor) != 0) return list;
    for (const Device& d : devices())
      list->push_back("NVRTC " + std::to_string(major) + "." + std::to_string(minor) + " " + d.architecture);
    return list;
  }();
  return device >= 0 && size_t(device) < all->size() ? (*all)[size_t(device)].c_str() : nullptr;
}

StrataStatus module_binary(StrataModule module, void* to, uint64_t room, uint64_t* bytes) {
  const std::string& code = reinterpret_cast<Module*>(module)->code;
  *bytes = code.size();
  if (room >= code.size()) std::memcpy(to, code.data(), code.size());
  return STRATA_OK;
}

StrataStatus module_release(StrataModule handle) {
  Module* m = reinterpret_cast<Module*>(handle);
  if (const StrataStatus s = use(m->device)) return s;
  const StrataStatus s = told(driver().unload(m->module), "cuModuleUnload");
  delete m;
  return s;
}

StrataStatus kernel(StrataModule handle, const char* entry, StrataKernel* out) {
  Module* m = reinterpret_cast<Module*>(handle);
  if (const StrataStatus s = use(m->device)) return s;
  CUfunction function;
  const StrataStatus s = told(driver().function(&function, m->module, entry), "cuModuleGetFunction");
  if (s == STRATA_OK) *out = reinterpret_cast<StrataKernel>(function);
  return s;
}

StrataStatus launch(StrataQueue queue, StrataKernel kernel, const StrataArgument* arguments, uint32_t count,
                    int64_t items, uint32_t group) {
  if (const StrataStatus s = use(of(queue).device)) return s;
  std::vector<void*> values(count + 1);
  std::vector<CUdeviceptr> memory(count);
  for (uint32_t k = 0; k < count; ++k) {
    const StrataArgument& a = arguments[k];
    memory[k] = at(a.memory, 0);
    values[k] = a.bytes ? const_cast<uint64_t*>(&a.value) : static_cast<void*>(&memory[k]);
  }
  values[count] = &items;
  // A thread of a long launch takes several items, whose reads are under way together.
  constexpr int64_t kBlock = 128, kMostBlocks = 1 << 13;
  const int64_t blocks = std::min(group ? items : (items + kBlock - 1) / kBlock, kMostBlocks);
  const unsigned block = group ? group : unsigned(kBlock);
  return told(driver().launch(reinterpret_cast<CUfunction>(kernel), unsigned(blocks), 1, 1, block, 1, 1, 0,
                              of(queue).stream, values.data(), nullptr),
              "cuLaunchKernel");
}

const StrataDialect dialect = {
    sizeof(StrataDialect),
    0,
    "CUDA C++",
    R"C(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef int bit;
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
static __device__ i32 bits_i32(f32 x) { return __float_as_int(x); }
static __device__ u32 bits_u32(f32 x) { return __float_as_uint(x); }
static __device__ f32 bits_f32(u32 x) { return __uint_as_float(x); }
static __device__ i64 bits_i64(f64 x) { return __double_as_longlong(x); }
static __device__ u64 bits_u64(f64 x) { return (u64)__double_as_longlong(x); }
static __device__ f64 bits_f64(u64 x) { return __longlong_as_double((i64)x); }
static __device__ void or_status(i32* status, i32 bits) { atomicOr(status, bits); }
)C",
    "static __device__ void ",
    "extern \"C\" __global__ void ",
    "",
    "static __device__",
    {{"__fsqrt_rn", "__dsqrt_rn"},
     {"floorf", "floor"},
     {"ceilf", "ceil"},
     {"truncf", "trunc"},
     {"rintf", "rint"},
     {"__fmaf_rn", "__fma_rn"}},
    {"__int_as_float(0x7f800000)", "__longlong_as_double(0x7ff0000000000000ll)"},
    {"__int_as_float(0x7fc00000)", "__longlong_as_double(0x7ff8000000000000ll)"},
    "(i64)blockIdx.x * blockDim.x + threadIdx.x",
    "(i64)gridDim.x * blockDim.x",
    "or_status",
    "#pragma unroll",
    "#pragma unroll 4",
    "__restrict__ ",
    256,
    "extern \"C\" __global__ void __launch_bounds__(GROUP) ",
    "",
    "__syncthreads();",
    "__shared__ ",
    "(i64)blockIdx.x",
    "(i64)gridDim.x",
    "(i32)threadIdx.x",
};

const StrataDevice table = {
    sizeof(StrataDevice),
    STRATA_SDK_MAJOR,
    STRATA_SDK_MINOR,
    "cuda",
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

}  // namespace cuda

extern "C" __attribute__((visibility("default"))) const StrataDevice* strata_device_v0(const StrataHost*, char*,
                                                                                       uint64_t) {
  return &cuda::table;
}
