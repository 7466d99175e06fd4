// A reader of pickles that builds Values and calls nothing. It knows the opcodes that weights files use (protocols 2 to
// 5); what they name, call and refer to is asked of a PickleHost, which decides what exists. Python's pickletools
// module documents the opcodes.
#pragma once
#include <string>
#include <string_view>

#include "io/value.h"

namespace strata::io {

class PickleHost {
 public:
  virtual ~PickleHost() = default;
  // Raises a Runtime error. Does not return.
  virtual void refuse(const std::string& what) = 0;
  // The object of that name, or raises.
  virtual Value global(const std::string& module, const std::string& name) = 0;
  virtual Value persistent(const Value& id) = 0;
  // callable(*arguments), by a function of our own.
  virtual Value reduce(const Value& callable, const List& arguments, Keeper& keeper) = 0;
  // object.__setstate__(state), likewise.
  virtual void build(const Value& object, const Value& state) = 0;
};

// Raises through the host for everything that is not on the list above and for nesting deeper than kMaxDepth.
Value read_pickle(std::string_view data, PickleHost& host);

}  // namespace strata::io
