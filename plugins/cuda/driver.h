// The functions of the driver and of NVRTC that this device calls, found when it is first used.
#pragma once
#include <cuda.h>

#include <string>

namespace cuda {

// NVRTC's, whose header does not come with the driver's.
using nvrtcProgram = struct NvrtcProgram*;

struct Driver {
  CUresult (*init)(unsigned);
  CUresult (*device_count)(int*);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*error_string)(CUresult, const char**);
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*release)(CUdeviceptr);
  CUresult (*host_allocate)(void**, size_t, unsigned);
  CUresult (*host_release)(void*);
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*stream_destroy)(CUstream);
  CUresult (*stream_wait)(CUstream);
  CUresult (*event_create)(CUevent*, unsigned);
  CUresult (*event_destroy)(CUevent);
  CUresult (*event_record)(CUevent, CUstream);
  CUresult (*event_wait)(CUstream, CUevent, unsigned);
  CUresult (*event_query)(CUevent);
  CUresult (*event_synchronize)(CUevent);
  CUresult (*event_elapsed)(float*, CUevent, CUevent);
  CUresult (*upload)(CUdeviceptr, const void*, size_t, CUstream);
  CUresult (*download)(void*, CUdeviceptr, size_t, CUstream);
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
  CUresult (*peer_copy)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
  CUresult (*load)(CUmodule*, const void*);
  CUresult (*unload)(CUmodule);
  CUresult (*function)(CUfunction*, CUmodule, const char*);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                     void**);
  CUresult (*graph_create)(CUgraph*, unsigned);
  CUresult (*graph_destroy)(CUgraph);
  CUresult (*graph_add)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS_v1*);
  CUresult (*graph_instantiate)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*graph_change)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
  CUresult (*graph_launch)(CUgraphExec, CUstream);
  CUresult (*graph_exec_destroy)(CUgraphExec);
  std::string why;  // it can't be used; empty where it can
};
const Driver& driver();

struct Compiler {
  int (*version)(int*, int*);
  int (*create)(nvrtcProgram*, const char* text, const char* name, int, const char* const*, const char* const*);
  int (*destroy)(nvrtcProgram*);
  int (*compile)(nvrtcProgram, int, const char* const*);
  int (*log_size)(nvrtcProgram, size_t*);
  int (*log)(nvrtcProgram, char*);
  int (*code_size)(nvrtcProgram, size_t*);
  int (*code)(nvrtcProgram, char*);
  std::string why;
};
const Compiler& compiler();

}  // namespace cuda
