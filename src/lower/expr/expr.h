// Expression text -> abstract syntax. A kernel's text is lines `name = expr` with C's operators and calls, or one bare
// expression; a line goes on inside parentheses and after an operator. A library's text holds functions as in C:
// `f32 name(f32 x, i32 k) { f32 t = expr; return expr; }`. `#` and `//` start comments. Errors (Value) give line and
// column.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::lower {

// A number as written; without a suffix it takes its type from what it meets. f is rounded from the text, not from d.
struct Literal {
  bool is_int = false;
  int64_t i = 0;
  double d = 0;
  float f = 0;
  bool is_unsigned = false, is_long = false;  // suffixes u and l fix the type: U32, I64, U64
};
Literal int_literal(int64_t i);
Literal real_literal(double d);

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  // Operators are calls named by their sign; unary minus is "neg". Index: `name[args]`, an operand at a place.
  enum Kind : uint8_t { Number, Name, Call, Index };
  Kind kind;
  std::string name;
  Literal number;
  std::vector<ExprPtr> args;
  int line = 1, column = 1;
};

struct Statement {
  std::string type;  // as written, mostly empty
  std::string name;  // empty for a bare expression or a `return`
  ExprPtr value;
};

struct Param {
  std::string name, type;  // type as written, empty if any will do
};

struct Function {
  std::string type, name;
  std::vector<Param> params;
  std::vector<Statement> body;  // the last one is the result
  std::string origin;           // name of the text, for errors
};

// `what` names the text in errors.
std::vector<Statement> parse_statements(std::string_view text, std::string_view what);
std::vector<Function> parse_functions(std::string_view text, std::string_view what);

}  // namespace strata::lower
