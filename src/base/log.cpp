#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

#include "base/env.h"
#include "base/error.h"
#include "base/near.h"

namespace strata {

namespace {

constexpr const char* kNames[] = {"capture",      "passes",     "fusion", "output_code", "cache",
                                  "graph_breaks", "recompiles", "guards", "bytecode",    "sizes"};

// Bits of the logs that are named; `wrong` tells of the others.
uint32_t bits_of(std::string_view names, std::string& wrong) {
  uint32_t bits = 0;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name.empty()) continue;
    bool known = false;
    std::string all;
    const char* near = nullptr;
    size_t least = 4;  // more letters are another word
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (name == kNames[i]) known = true, bits |= 1u << i;
      all += str_cat(i ? ", " : "", kNames[i]);
      if (const size_t d = letters_apart(name, kNames[i]); d < least) least = d, near = kNames[i];
    }
    if (!known)
      wrong += str_cat(wrong.empty() ? "" : "; ", "there is no log '", name, "'; ",
                       near ? str_cat("is it '", near, "'") : str_cat("expected some of ", all));
  }
  return bits;
}

std::atomic<uint32_t>& chosen() {
  static std::string wrong;
  static std::atomic<uint32_t> bits = bits_of(env_text("STRATA_LOGS"), wrong);
  static std::atomic<bool> untold = !wrong.empty();
  // Told once all is made: who hears a warning may wait for a thread that waits here.
  if (STRATA_UNLIKELY(untold.load(std::memory_order_relaxed)) && untold.exchange(false)) warn("STRATA_LOGS: " + wrong);
  return bits;
}

}  // namespace

bool logs(Log log) { return chosen().load(std::memory_order_relaxed) >> int(log) & 1; }

Log log_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return Log(i);
  STRATA_CHECK_VALUE(false, "there is no log '", name, "'");
  return {};
}

void write_log(Log log, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += str_cat("[strata ", kNames[int(log)], "] ", text.substr(0, end), '\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::fwrite(out.data(), 1, out.size(), stderr);
}

void set_logs(std::string_view names) {
  std::string wrong;
  const uint32_t bits = bits_of(names, wrong);
  STRATA_CHECK_VALUE(wrong.empty(), "set_logs: ", wrong);
  chosen().store(bits, std::memory_order_relaxed);
}

}  // namespace strata
