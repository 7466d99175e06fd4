#include "base/error.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <iterator>

#include "base/array_ref.h"

namespace strata {

void BoolVec::too_few(size_t wanted, size_t given) {
  throw_error(ErrorKind::Runtime,
              str_cat("expected a list of at least ", wanted, " bools, such as an output_mask, got ", given));
}

namespace {

template <class T>
void add_number(std::string& text, const void* value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, std::end(digits), *static_cast<const T*>(value)).ptr);
}

}  // namespace

void add_chars(std::string& text, const void* value) {
  if (const char* chars = *static_cast<const char* const*>(value)) text += chars;
}
void add_string(std::string& text, const void* value) { text += *static_cast<const std::string*>(value); }
void add_view(std::string& text, const void* value) { text += *static_cast<const std::string_view*>(value); }
void add_int(std::string& text, const void* value) { add_number<int>(text, value); }
void add_long(std::string& text, const void* value) { add_number<long>(text, value); }
void add_size(std::string& text, const void* value) { add_number<size_t>(text, value); }
void add_streamed(std::string& text, const void* value, void (*print)(std::ostream&, const void*)) {
  std::ostringstream out;
  print(out, value);
  text += out.view();
}

std::string join_text(const TextPart* parts, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) parts[i].add(text, parts[i].value);
  return text;
}

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void throw_internal(const char* file, int line, const char* condition, std::string message) {
  throw Error(ErrorKind::Internal,
              str_cat("internal error of strata at ", file, ":", line, ": ", condition, message.empty() ? "" : ": ",
                      message, ". Please report it with the program that led here."));
}

namespace {
void print_warning(const std::string& message) { std::fprintf(stderr, "strata warning: %s\n", message.c_str()); }
std::atomic<WarningHandler> warning_handler{print_warning};
}  // namespace

void set_warning_handler(WarningHandler handler) { warning_handler = handler ? handler : print_warning; }
void warn(const std::string& message) { warning_handler.load()(message); }

}  // namespace strata
