// Errors of Strata. User mistakes raise a typed Error (STRATA_CHECK and friends); broken invariants of our own raise
// InternalError (STRATA_INTERNAL). Nothing aborts. A message reads `operator: argument, expected, got, what to do`.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
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

// A part of a text, without its type: texts of many shapes share the code that joins them.
struct TextPart {
  const void* value;
  void (*add)(std::string& text, const void* value);
};
std::string join_text(const TextPart* parts, size_t count);
// Most parts are strings and integers, which need no stream: to make one takes longer than to join a text.
void add_chars(std::string& text, const void* value);
void add_string(std::string& text, const void* value);
void add_view(std::string& text, const void* value);
void add_int(std::string& text, const void* value);
void add_long(std::string& text, const void* value);
void add_size(std::string& text, const void* value);
void add_streamed(std::string& text, const void* value, void (*print)(std::ostream& out, const void* value));
template <class T>
[[gnu::visibility("hidden")]] void add_part(std::string& text, const void* value) {
  add_streamed(text, value, [](std::ostream& out, const void* v) { out << *static_cast<const T*>(v); });
}
template <class T>
constexpr auto adder() {
  if constexpr (std::is_same_v<T, const char*>)
    return &add_chars;
  else if constexpr (std::is_same_v<T, std::string>)
    return &add_string;
  else if constexpr (std::is_same_v<T, std::string_view>)
    return &add_view;
  else if constexpr (std::is_same_v<T, int>)
    return &add_int;
  else if constexpr (std::is_same_v<T, long>)
    return &add_long;
  else if constexpr (std::is_same_v<T, unsigned long>)
    return &add_size;
  else
    return &add_part<T>;
}
// One for each list of types, in which all literals are alike.
template <class... Parts>
[[gnu::visibility("hidden"), gnu::noinline]] std::string join_parts(Parts... parts) {
  const TextPart list[] = {{&parts, adder<std::remove_cvref_t<Parts>>()}...};
  return join_text(list, sizeof...(Parts));
}
// Joins its arguments as operator<< prints them.
template <class... Parts>
[[gnu::visibility("hidden"), gnu::always_inline]] inline std::string str_cat(const Parts&... parts) {
  if constexpr (sizeof...(Parts) == 0)
    return {};
  else
    return join_parts<std::conditional_t<std::is_array_v<Parts>, const char*, const Parts&>...>(parts...);
}

// Warnings go to one handler, so that Python can turn them into `warnings.warn`. Default: standard error.
using WarningHandler = void (*)(const std::string& message);
void set_warning_handler(WarningHandler handler);
void warn(const std::string& message);

}  // namespace strata

// Of code that few calls reach: as small as can be.
#ifdef __clang__
#define STRATA_SMALL clang::minsize, gnu::noinline, gnu::cold
#else
#define STRATA_SMALL gnu::noinline, gnu::cold
#endif
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
