// The public faces of files and seeds.
#include "strata/files.h"

#include "device/plugin.h"
#include "io/load.h"
#include "io/package.h"
#include "strata/tensors.h"

namespace strata {

void save(const NamedTensors& tensors, const std::string& path) {
  NamedTensors plain;
  for (const auto& [name, t] : tensors) plain.emplace_back(name, io::tensor_to_write(t, name));
  io::check_separate(plain);
  const io::SafeWriter writer(plain, {});
  io::write_atomically(path, [&](io::Writer& file) { writer.write(file); });
}

NamedTensors load(const std::string& path) {
  const io::Value root = io::load(*io::Source::file(path));
  STRATA_CHECK_VALUE(root.dict(), "load: '", path, "': expected named tensors");
  NamedTensors out;
  for (const auto& [key, value] : root.dict()->items) {
    STRATA_CHECK_VALUE(key.str() && value.tensor(), "load: '", path, "': expected named tensors, got other values");
    out.emplace_back(*key.str(), value.tensor()->tensor);
  }
  return out;
}

void manual_seed(uint64_t seed) {
  for (const device::Plugin* p : device::plugins())
    for (int32_t k = 0; k < p->table->count(); ++k)
      default_generator(Device{int8_t(p->type), int8_t(k)}).manual_seed(seed);
  default_generator().manual_seed(seed);
}

}  // namespace strata
