// What the compiler tells of its work on request: STRATA_LOGS=capture,passes,fusion,output_code,cache, or set_logs();
// and strata.compile of functions: graph_breaks, recompiles, guards, bytecode, sizes. This is the one list of names.
// Each line goes to stderr behind its log's name. Where a log is off, asking is one load.
#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

enum class Log : uint8_t {
  Capture,
  Passes,
  Fusion,
  OutputCode,
  Cache,
  GraphBreaks,
  Recompiles,
  Guards,
  Bytecode,
  Sizes
};

bool logs(Log log);
// The log of that name. Raises Value for a name that is none.
Log log_named(std::string_view name);
// Text of many lines, none of which another thread's lines come between.
void write_log(Log log, std::string_view text);
// These logs and no others: names with commas between. Raises Value for a name that is none, with those that are near.
// (In the environment one is a warning.)
void set_logs(std::string_view names);

}  // namespace strata
