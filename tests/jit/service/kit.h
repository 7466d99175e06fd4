// What the tests of the compile service share: kernels of the table as texts, an own folder for the cache.
#pragma once
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "jit/service/compilers.h"
#include "lower/desc.h"
#include "lower/print/print_c.h"
#include "run/isa.h"

namespace strata::jit::test {

// A folder of this test's own, which the service uses as its cache when it is made before the service is first asked.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/strata-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    if (owner_ == getpid()) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& e : std::filesystem::directory_iterator(path_))
      if (e.path().extension() == ".kernel") all.push_back(e.path());
    return all;
  }

 private:
  std::string path_;
  pid_t owner_ = getpid();
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}
inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline const lower::KernelDesc& table_kernel(const std::string& name) {
  for (int64_t k = 0; k < lower::table_kernel_count; ++k)
    if (name == lower::table_kernels[k].name) return lower::table_kernels[k];
  throw_error(ErrorKind::Value, "no kernel " + name);
}

inline bool machine_has(lower::Isa isa) {
  __builtin_cpu_init();
  return isa == lower::Isa::Base ||
         (isa == lower::Isa::V3 ? __builtin_cpu_supports("x86-64-v3") : __builtin_cpu_supports("x86-64-v4"));
}

inline std::string printed(const std::string& name, lower::Isa isa, DType dtype = DType::F32) {
  return lower::print_kernel(table_kernel(name), dtype, isa);
}

}  // namespace strata::jit::test
