// Our own format for nested values: a safetensors file whose metadata has the key "strata" with the tree as JSON. It
// holds no code. Other readers of safetensors see the tensors under readable names.
//
// The tree: {"version": 1, "tree": value}. A value is null, true, a number, a string, {"key": value} for a dict whose
// keys are strings, or a tagged array:
//   ["l", [..]] list, ["u", ..] tuple, ["z", ..] Size, ["e", ..] set, ["E", ..] frozen set
//   ["d", items] other dict, ["o", items, {attributes}] ordered dict, ["n", items] counter; items: {..} or [[key,
//   value]..]
//   ["t", {"in": entry, "dtype", "shape", "stride", "offset", "kind", "grad", "device", "attributes"}] tensor; what is
//     left out is contiguous, 0, a plain tensor, false, cpu, none
//   ["r", n] what began as the n-th list, dict or tensor (from 0) once more
//   ["i", hex] big int, ["f", hex] float that is no finite number, ["c", re, im] complex, ["b", hex], ["B", hex] bytes
//   ["dtype", name], ["device", name], ["layout", "strided"]
// A storage is one entry, cut to the part that its tensors reach; complex ones are pairs of their parts.
//
// A second key of the metadata, "strata.crc32", has checksums: {"tree": of the text above, "entries": {name: of its
// dtype, shape and data}}. What does not fit them raises; of mapped files the data is not read for that. Packages
// without the key are older than it.
#pragma once
#include "io/place.h"
#include "io/safetensors.h"
#include "io/value.h"

namespace strata::io {

constexpr const char* kPackageKey = "strata";
constexpr const char* kChecksumKey = "strata.crc32";

// Of an entry's place in the header: goes before its data.
uint32_t entry_checksum(DType dtype, IntArrayRef sizes);

// Raises ValueError for nesting deeper than kMaxDepth, text that is no UTF-8, tensors without data.
SafeWriter make_package(const Value& root);
Value read_package(const Source& source, const SafeHeader& header, const Place& place);

}  // namespace strata::io
