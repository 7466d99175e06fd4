// The machine's OpenCL devices whose kernels can have the CPU's bits.
#pragma once
#include <CL/cl.h>

#include <string>

#include "strata/sdk/device.hpp"

namespace opencl {

namespace sdk = strata::sdk;

struct Device {
  cl_device_id id;
  cl_context context;
  std::string identity;  // platform, device, driver: versions that decide what a text becomes
};

// Throws where the call failed.
void check(const char* call, cl_int code);

int32_t count();
const Device& device(int32_t number);

}  // namespace opencl
