// Operators that a recording cannot hold, printed by gen/ from `reads:` and `size:` in ops/*.yaml.
#pragma once
#include "dispatch/ivalue.h"

namespace strata {

class Operator;

struct HostRead {
  enum When : uint8_t { Always, None, Equal, Mask };  // of an argument: None, `value`, or a list with a mask in it
  const char* op;                                     // "aten::item"
  bool size;                                          // the size of a result is data; else values leave for the host
  When when;
  uint8_t argument;
  int64_t value;
};
extern const HostRead host_reads[];  // ends with a null name

// Raises where the operator, with these arguments, is one of them.
void check_recordable(const Operator& op, const Stack& args);

}  // namespace strata
