// The shared mathematics as functions: the texts of math/*.expr, embedded by the build, and the complex formulas over
// them (complex_text.cpp). Overloads are told apart by the types of their parameters.
#pragma once
#include <string>
#include <vector>

#include "lower/expr/expr.h"

namespace strata::lower {

struct MathText {
  const char* name;
  const char* text;
};
const MathText* math_texts();  // ends with {nullptr, nullptr}; a generated source, or a test, defines it
extern const char* const complex_text;

// All functions of that name, in the order of the texts; empty if there is none. Parses them when they are first asked
// for.
const std::vector<Function>& math_functions(const std::string& name);

}  // namespace strata::lower
