#include "objects.h"

#include <vector>

namespace opencl {

namespace {

// Whether its kernels can have the CPU's bits.
bool exact(cl_device_id id) {
  cl_device_fp_config single = 0, wide = 0;
  clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, nullptr);
  clGetDeviceInfo(id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof wide, &wide, nullptr);
  const cl_device_fp_config wanted =
      CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  return wide != 0 && (single & wanted) == wanted;
}

std::string identity_of(cl_platform_id platform, cl_device_id id) {
  std::string all;
  char text[1024] = "";
  auto add = [&](cl_int code) { all += code == CL_SUCCESS ? std::string(text) + "; " : "?; "; };
  add(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text, text, nullptr));
  for (cl_device_info what : {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION})
    add(clGetDeviceInfo(id, what, sizeof text, text, nullptr));
  return all;
}

const std::vector<Device>& all() {
  static const std::vector<Device>* found = [] {
    auto* list = new std::vector<Device>;
    cl_uint platforms = 0;
    if (clGetPlatformIDs(0, nullptr, &platforms) != CL_SUCCESS) return list;
    std::vector<cl_platform_id> ids(platforms);
    clGetPlatformIDs(platforms, ids.data(), nullptr);
    for (cl_platform_id platform : ids) {
      cl_uint devices = 0;
      if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;
      std::vector<cl_device_id> of(devices);
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, of.data(), nullptr);
      for (cl_device_id id : of) {
        cl_int code = CL_SUCCESS;
        cl_context context = exact(id) ? clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code) : nullptr;
        if (context && code == CL_SUCCESS) list->push_back({id, context, identity_of(platform, id)});
      }
    }
    return list;
  }();
  return *found;
}

}  // namespace

void check(const char* call, cl_int code) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  sdk::fail(memory ? STRATA_OUT_OF_MEMORY : STRATA_FAILED, std::string(call) + ": error " + std::to_string(code));
}

int32_t count() {
  if (all().empty())
    sdk::fail(
        STRATA_UNSUPPORTED,
        "no platform has a device with double precision, subnormal numbers and correctly rounded division; to mend it: "
        "apt-get install pocl-opencl-icd");
  return int32_t(all().size());
}

const Device& device(int32_t number) {
  if (number < 0 || number >= count())
    sdk::fail(STRATA_INVALID, "there is no device of number " + std::to_string(number));
  return all()[size_t(number)];
}

}  // namespace opencl
