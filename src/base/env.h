// STRATA_* environment variables, read once each.
#pragma once
#include <cstdlib>
#include <string>

namespace strata {

inline std::string env_text(const char* name, const char* otherwise = "") {
  const char* v = std::getenv(name);
  return v ? v : otherwise;
}

}  // namespace strata
