// One-lane helper functions in C that every dialect takes: total division and remainder of integers, integer powers,
// the exact fmod. $E is the lane type, $U its unsigned type, $P the bits of a float's fraction; bits_<type>()
// reinterprets.
#pragma once
#include <string>

namespace strata::lower {

struct ScalarHelper {
  const char* name;
  const char* needs;  // helpers of the same type, comma separated
  const char* text;   // without the words before it: "static", "inline"...
};

// Null where there is none of that name.
const ScalarHelper* scalar_helper(const std::string& name);

// The text for lane type e: "i64", "f32".
std::string scalar_helper_text(const ScalarHelper& helper, const std::string& e);

// C of vectors, by the bits of an element: PART_32(T, p, n) loads the first n of 16 elements and zeros. Where there are
// MASKS, THOSE_32(T, p, m) loads the elements of a mask, STORE_THOSE_32(p, v, m) stores them, PICK_32(T, m, a, b) is a
// there and b elsewhere, and ROW_BITS(n) the first n of 64 elements.
extern const char* const kRowEnds;

}  // namespace strata::lower
