// What files of graphs say of the modes of their capture.
#pragma once
#include <optional>
#include <string>

#include "base/error.h"
#include "core/dtype.h"
#include "dispatch/autocast.h"

namespace strata {

// Raises Runtime, naming the file, for what is no dtype.
inline DType dtype_named(const std::string& name, const std::string& path) {
  for (int k = 0; k < kDTypeCount; ++k)
    if (name == traits(DType(k)).name) return DType(k);
  throw_error(ErrorKind::Runtime, str_cat("Graph::load: '", path, "' is damaged: expected a dtype, got '", name, "'"));
}

// Graphs are checked by running their shapes, under the modes of the capture.
class Modes {
 public:
  Modes(DType dtype, std::optional<DType> autocast) : before_(default_dtype()), cast_(autocast_state(0)) {
    set_default_dtype(dtype);
    AutocastState state = cast_;
    state.enabled = autocast.has_value();
    if (autocast) state.dtype = *autocast;
    set_autocast_state(0, state);
  }
  ~Modes() {
    set_default_dtype(before_);
    set_autocast_state(0, cast_);
  }

 private:
  const DType before_;
  const AutocastState cast_;
};

}  // namespace strata
