// The objects of the OpenCL device behind the handles of the SDK.
#pragma once
#include <CL/cl.h>

#include <mutex>
#include <string>

#include "strata/sdk/device.h"

namespace opencl {

struct Device {
  cl_device_id id;
  cl_context context;
  std::string identity;  // platform, device, driver: versions that decide what a text becomes
};

// This thread's last error; gives `status`.
StrataStatus fail(StrataStatus status, std::string why);
StrataStatus fail(const char* call, cl_int code);
const char* last_error();

int32_t count();
const Device* device(int32_t number);  // null, and an error, where there is none

struct Queue {
  cl_command_queue queue;
  std::mutex lock;  // a kernel object keeps its arguments
};
struct Module {
  cl_program program;
};
struct Kernel {
  cl_kernel kernel;
};

}  // namespace opencl
