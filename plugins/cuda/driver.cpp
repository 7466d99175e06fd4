#include "driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace cuda {

namespace {

// Finds functions of a library; notes the first that is not there.
class Library {
 public:
  Library(const std::vector<std::string>& names, std::string& why) : why_(why) {
    for (const std::string& n : names)
      if (!handle_ && !n.empty()) handle_ = dlopen(n.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) why_ = "none of the libraries " + joined(names) + " can be opened";
  }
  template <class F>
  void find(F& function, const char* name) {
    if (!handle_) return;
    function = reinterpret_cast<F>(dlsym(handle_, name));
    if (!function && why_.empty()) why_ = std::string("the library lacks ") + name;
  }

 private:
  static std::string joined(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& n : names)
      if (!n.empty()) out += (out.empty() ? "" : ", ") + n;
    return out;
  }
  void* handle_ = nullptr;
  std::string& why_;
};

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

const Driver& driver() {
  static const Driver* found = [] {
    auto* d = new Driver{};
    Library library({"libcuda.so.1"}, d->why);
    library.find(d->init, "cuInit");
    library.find(d->device_count, "cuDeviceGetCount");
    library.find(d->device_get, "cuDeviceGet");
    library.find(d->attribute, "cuDeviceGetAttribute");
    library.find(d->retain, "cuDevicePrimaryCtxRetain");
    library.find(d->set_current, "cuCtxSetCurrent");
    library.find(d->error_string, "cuGetErrorString");
    library.find(d->allocate, "cuMemAlloc_v2");
    library.find(d->release, "cuMemFree_v2");
    library.find(d->host_allocate, "cuMemHostAlloc");
    library.find(d->host_release, "cuMemFreeHost");
    library.find(d->stream_create, "cuStreamCreate");
    library.find(d->stream_destroy, "cuStreamDestroy_v2");
    library.find(d->stream_wait, "cuStreamSynchronize");
    library.find(d->event_create, "cuEventCreate");
    library.find(d->event_destroy, "cuEventDestroy_v2");
    library.find(d->event_record, "cuEventRecord");
    library.find(d->event_wait, "cuStreamWaitEvent");
    library.find(d->event_query, "cuEventQuery");
    library.find(d->event_synchronize, "cuEventSynchronize");
    library.find(d->event_elapsed, "cuEventElapsedTime");
    library.find(d->upload, "cuMemcpyHtoDAsync_v2");
    library.find(d->download, "cuMemcpyDtoHAsync_v2");
    library.find(d->copy, "cuMemcpyDtoDAsync_v2");
    library.find(d->peer_copy, "cuMemcpyPeerAsync");
    library.find(d->load, "cuModuleLoadData");
    library.find(d->unload, "cuModuleUnload");
    library.find(d->function, "cuModuleGetFunction");
    library.find(d->launch, "cuLaunchKernel");
    library.find(d->graph_create, "cuGraphCreate");
    library.find(d->graph_destroy, "cuGraphDestroy");
    library.find(d->graph_add, "cuGraphAddKernelNode");
    library.find(d->graph_instantiate, "cuGraphInstantiateWithFlags");
    library.find(d->graph_change, "cuGraphExecKernelNodeSetParams");
    library.find(d->graph_launch, "cuGraphLaunch");
    library.find(d->graph_exec_destroy, "cuGraphExecDestroy");
    if (d->why.empty() && d->init(0) != CUDA_SUCCESS) d->why = "the driver finds no device that works";
    return d;
  }();
  return *found;
}

const Compiler& compiler() {
  static const Compiler* found = [] {
    auto* c = new Compiler{};
    Library library({setting("STRATA_NVRTC"), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                     "/usr/local/cuda/lib64/libnvrtc.so"},
                    c->why);
    library.find(c->version, "nvrtcVersion");
    library.find(c->create, "nvrtcCreateProgram");
    library.find(c->destroy, "nvrtcDestroyProgram");
    library.find(c->compile, "nvrtcCompileProgram");
    library.find(c->log_size, "nvrtcGetProgramLogSize");
    library.find(c->log, "nvrtcGetProgramLog");
    library.find(c->code_size, "nvrtcGetCUBINSize");
    library.find(c->code, "nvrtcGetCUBIN");
    return c;
  }();
  return *found;
}

}  // namespace cuda
