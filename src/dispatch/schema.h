// Operator schemas: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, with aliasing marks
// `Tensor(a!)`. A parse error names the column.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/ivalue.h"
#include "strata/generated/arg_types.h"

namespace strata {

struct TypeSpec {
  ArgType base = ArgType::Tensor;
  bool list = false;
  bool optional = false;           // `T?` or `T[]?`
  bool optional_elements = false;  // `T?[]`
  int list_size = -1;              // of `int[2]`: one int stands for that many
  std::string alias;               // "a" in Tensor(a!)
  bool written = false;            // the `!`
  bool is_tensor() const { return base == ArgType::Tensor; }
};

struct Argument {
  std::string name;
  TypeSpec type;
  bool keyword_only = false;
  std::optional<std::string> default_text;
  std::optional<IValue> default_value;
};

struct Schema {
  std::string ns, name, overload;  // "aten", "add", "Tensor"
  std::vector<Argument> args;
  std::vector<Argument> returns;

  std::string full_name() const { return ns + "::" + name + (overload.empty() ? "" : "." + overload); }
  std::string text() const;                    // parses back to the same schema
  bool writes() const;                         // some argument is written
  int arg_index(std::string_view name) const;  // -1 when there is none
};

// Raises Value errors that show the text with a caret.
Schema parse_schema(std::string_view text);
std::string to_string(const TypeSpec& type);

}  // namespace strata
