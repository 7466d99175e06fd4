// Loading and saving nested values; the format of a file is told by its content, never by its name.
#pragma once
#include "io/place.h"
#include "io/value.h"

namespace strata::io {

// Reads our package, a plain safetensors file (a dict of its tensors) or a .pt file. What else there is raises with the
// way out. The source is kept alive by tensors where it is mapped.
Value load(const Source& source, const Place& place = {});

// Writes our package, atomically. Raises Runtime errors of the system; ValueError for what a package cannot hold.
void save(const Value& value, const std::string& path);
void save(const Value& value, Writer& writer);

}  // namespace strata::io
