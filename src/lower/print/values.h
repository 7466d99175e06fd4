// One-lane values as C expressions in a dialect, and names that are free.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "lower/ir/ir.h"
#include "lower/print/dialect.h"
#include "lower/print/print_nest.h"

namespace strata::lower {

// Whether a name means something in a language that kernels are printed in.
bool is_word(const std::string& name);

// C's words and what a printer has reserved are never given.
class NamePool {
 public:
  NamePool();
  void reserve(const std::string& name) { used_[name] = 1; }
  std::string unique(const std::string& wish);

 private:
  std::map<std::string, int> used_;
};

class ValuePrinter {
 public:
  using Ref = std::function<std::string(int)>;
  using TypeOf = std::function<DType(int)>;

  ValuePrinter(const Dialect& dialect, NestHelpers& helpers) : dialect_(dialect), helpers_(helpers) {}
  const Dialect& dialect() const { return dialect_; }

  std::string type(DType t) const { return t == DType::Bool ? "bit" : traits(t).cname; }
  std::string constant(DType t, uint64_t bits) const;
  // +, - and * of numbers; integers wrap.
  std::string arithmetic(const char* sign, DType t, const std::string& a, const std::string& b) const;
  // Any node but those that read memory, check, or are parameters.
  std::string expression(const Node& n, const Ref& ref, const TypeOf& type_of) const;

 private:
  const Dialect& dialect_;
  NestHelpers& helpers_;
};

}  // namespace strata::lower
