#include "base/error.h"

#include <atomic>
#include <cstdio>

#include "base/array_ref.h"

namespace strata {

void BoolVec::too_few(size_t wanted, size_t given) {
  throw_error(ErrorKind::Runtime,
              str_cat("expected a list of at least ", wanted, " bools, such as an output_mask, got ", given));
}

std::string join_text(const TextPart* parts, size_t count) {
  std::ostringstream out;
  for (size_t i = 0; i < count; ++i) parts[i].print(out, parts[i].value);
  return out.str();
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
