// Between Python objects and the Values that files hold.
#pragma once
#include "bind/tensor/tensor.h"
#include "io/file.h"
#include "io/value.h"

namespace strata::py {

// Exact types only: None, bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict,
// OrderedDict, Counter, Size, dtype, device, layout, Tensor, Parameter, Buffer. Raises TypeError with the place inside
// the object and what to do for everything else.
io::Value to_value(PyObject* object);
// A new reference. What is one Value becomes one object.
PyObject* from_value(const io::Value& value, const io::Source& source);

}  // namespace strata::py
