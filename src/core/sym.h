// SymInt: a size that is known as an expression, with the number that it has now (its hint). Arithmetic builds
// expressions; a comparison answers by the hints and records a guard: the expressions hold for all other numbers that
// answer the guards alike. Expressions and guards live in a SymContext, which must outlive the SymInts made under it;
// a SymInt without one is a constant. A context is used by one thread at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/array_ref.h"

namespace strata {

class SymContext;
struct SymNode;

class SymInt {
 public:
  SymInt() = default;
  SymInt(int64_t constant) : hint_(constant) {}
  SymInt(int constant) : hint_(constant) {}

  int64_t hint() const { return hint_; }
  bool is_symbolic() const { return node_ != nullptr; }
  std::string text() const;  // "2 * n + 1"

 private:
  friend class SymContext;
  friend struct SymNode;
  SymInt(int64_t hint, const SymNode* node) : hint_(hint), node_(node) {}
  int64_t hint_ = 0;
  const SymNode* node_ = nullptr;
};

enum class SymOp : uint8_t { Variable, Add, Sub, Mul, Div, FloorDiv, FloorMod, Min, Max };

struct SymNode {
  SymContext* context;
  SymOp op;
  SymInt a, b;            // a variable's a is its number
  std::string name = {};  // a variable's
};

struct SymGuard {
  enum Kind : uint8_t { Less, NotLess, Equal, NotEqual } kind;
  SymInt a, b;
  std::string text() const;  // "n < 2 * m"
};

// What is known of a number that values decide: it lies in [low, high], or is at least low.
struct SymBound {
  SymInt of, low;
  std::optional<SymInt> high;
};

class SymContext {
 public:
  SymContext() = default;
  SymContext(const SymContext&) = delete;
  SymContext& operator=(const SymContext&) = delete;

  // Variables are numbered in the order of their making.
  SymInt variable(std::string name, int64_t hint);
  // A variable that nobody knows before values are there, as the number of a tensor's elements that are not zero. Its
  // hint is its upper bound or, without one, 1 more than the lower: guards that name it are checks of a run.
  SymInt unknown(std::string name, const SymInt& low, const std::optional<SymInt>& high);
  const std::vector<SymBound>& bounds() const { return bounds_; }
  const std::vector<SymGuard>& guards() const { return guards_; }
  // The context of this thread, which rules take unknown sizes from; raises, naming `op`, where there is none.
  static SymContext& current(const char* op);
  class Scope {
   public:
    explicit Scope(SymContext& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    SymContext* before_;
  };
  // The value of an expression where variable k is values[k]. Raises where it does not fit in 64 bits.
  static int64_t evaluate(const SymInt& of, ArrayRef<int64_t> values);
  bool holds(ArrayRef<int64_t> values) const;  // whether all guards answer as recorded

  static SymInt make(SymOp op, const SymInt& a, const SymInt& b);
  static bool decide(SymGuard::Kind kind, const SymInt& a, const SymInt& b);  // Less or Equal

 private:
  std::deque<SymNode> nodes_;
  std::vector<SymGuard> guards_;
  std::vector<SymBound> bounds_;
  int64_t variables_ = 0;
};

inline SymInt operator+(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Add, a, b); }
inline SymInt operator-(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Sub, a, b); }
inline SymInt operator-(const SymInt& a) { return SymInt(0) - a; }
inline SymInt operator*(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Mul, a, b); }
inline SymInt operator/(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Div, a, b); }  // as C++'s
inline SymInt floor_div(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::FloorDiv, a, b); }
inline SymInt floor_mod(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::FloorMod, a, b); }
inline SymInt smaller(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Min, a, b); }
inline SymInt larger(const SymInt& a, const SymInt& b) { return SymContext::make(SymOp::Max, a, b); }
inline bool operator<(const SymInt& a, const SymInt& b) { return SymContext::decide(SymGuard::Less, a, b); }
inline bool operator>(const SymInt& a, const SymInt& b) { return b < a; }
inline bool operator<=(const SymInt& a, const SymInt& b) { return !(b < a); }
inline bool operator>=(const SymInt& a, const SymInt& b) { return !(a < b); }
inline bool operator==(const SymInt& a, const SymInt& b) { return SymContext::decide(SymGuard::Equal, a, b); }
std::ostream& operator<<(std::ostream& out, const SymInt& s);  // its text and, of an expression, its hint

// The same for numbers. Divisors are not 0.
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t floor_mod(int64_t a, int64_t b) {
  return b == -1 ? 0 : a % b + ((a % b != 0 && (a < 0) != (b < 0)) ? b : 0);
}
inline int64_t smaller(int64_t a, int64_t b) { return b < a ? b : a; }
inline int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

}  // namespace strata
