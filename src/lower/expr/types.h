// Names of dtypes as the expression language knows them.
#pragma once
#include <string>

#include "core/dtype.h"

namespace strata::lower {

inline std::string type_name(DType t) { return traits(t).name; }

// "f32", "float32", "bool"...: the C name or the users' name.
inline bool dtype_from_word(const std::string& word, DType& out) {
  for (int k = 0; k < kDTypeCount; ++k)
    if (word == traits(DType(k)).cname || word == traits(DType(k)).name) return out = DType(k), true;
  return false;
}

}  // namespace strata::lower
