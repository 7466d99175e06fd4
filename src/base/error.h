// Errors of Strata. User mistakes raise a typed Error (STRATA_CHECK and friends); broken invariants of our own raise
// InternalError (STRATA_INTERNAL). Nothing aborts. A message reads `operator: argument, expected, got, what to do`.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace strata {

// Each kind maps to one Python exception type.
enum class ErrorKind {
  Runtime,
  Value,
  Type,
  Index,
  NotImplemented,
  OutOfMemory,
  Key,
  Attribute,
  Internal,
  Overflow,
  FileNotFound,
  LinAlg  // a matrix that an algorithm cannot take: singular, not positive definite, without convergence
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

[[noreturn]] void throw_error(ErrorKind kind, std::string message);
[[noreturn]] void throw_internal(const char* file, int line, const char* condition, std::string message);

// Joins its arguments with operator<<. Hidden, as define_op is: each library has its own, whose long names it keeps to
// itself.
template <class... Parts>
[[gnu::visibility("hidden")]] std::string str_cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Warnings go to one handler, so that Python can turn them into `warnings.warn`. Default: standard error.
using WarningHandler = void (*)(const std::string& message);
void set_warning_handler(WarningHandler handler);
void warn(const std::string& message);

}  // namespace strata

#define STRATA_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define STRATA_LIKELY(x) __builtin_expect(!!(x), 1)
#define STRATA_CHECK_KIND(kind, cond, ...)                                                                          \
  do {                                                                                                              \
    if (STRATA_UNLIKELY(!(cond))) ::strata::throw_error(::strata::ErrorKind::kind, ::strata::str_cat(__VA_ARGS__)); \
  } while (0)
#define STRATA_CHECK(cond, ...) STRATA_CHECK_KIND(Runtime, cond, __VA_ARGS__)
#define STRATA_CHECK_VALUE(cond, ...) STRATA_CHECK_KIND(Value, cond, __VA_ARGS__)
#define STRATA_CHECK_TYPE(cond, ...) STRATA_CHECK_KIND(Type, cond, __VA_ARGS__)
#define STRATA_CHECK_INDEX(cond, ...) STRATA_CHECK_KIND(Index, cond, __VA_ARGS__)
#define STRATA_CHECK_NOT_IMPLEMENTED(cond, ...) STRATA_CHECK_KIND(NotImplemented, cond, __VA_ARGS__)
#define STRATA_INTERNAL(cond, ...)                                                                                     \
  do {                                                                                                                 \
    if (STRATA_UNLIKELY(!(cond))) ::strata::throw_internal(__FILE__, __LINE__, #cond, ::strata::str_cat(__VA_ARGS__)); \
  } while (0)
