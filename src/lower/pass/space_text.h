// The words of a space kernel's description: operands with their dims, and what the last line of a text does.
#pragma once
#include <string>
#include <vector>

#include "lower/expr/expr.h"
#include "lower/ir/nest.h"

namespace strata::lower {

struct SpaceDim {
  std::string name;
  bool group = false;
  int64_t fixed = 0;  // its extent, where the description says it (`j=2`)
};

struct SpacePattern {
  std::string name;
  std::vector<SpaceDim> dims;
};

constexpr const char* kPlain = "p";

std::vector<SpaceDim> dims_named(const std::string& list);          // "ky kx", "k.."
std::vector<SpacePattern> patterns_named(const std::string& list);  // "self[p..,n]:int64 other[p..]"

// What the last line of a text does to its result; None where it says the result's values.
NestStore::Into into_of(const Expr& e);
NestStore::Into into_of(const KernelDesc& desc);

// Whether the text says where it reads an operand: name[...].
bool is_placed(const KernelDesc& desc, const std::string& operand);

}  // namespace strata::lower
