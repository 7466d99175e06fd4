// Tensors made of Python data.
#pragma once
#include "bind/types/types.h"

namespace strata::py {

// A new tensor with the values of nested sequences, numbers, arrays or tensors. Without `dtype` it is found from the
// data. Raises ValueError for ragged sequences, RuntimeError where no dtype fits.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, std::optional<Device> device);
// Writes one Python number as `dtype`. Raises for values out of range.
void store_number(char* to, DType dtype, PyObject* number);

// A tensor over the memory of a NumPy array; `warn_readonly` warns of arrays that must not be written.
Tensor tensor_over_array(PyObject* array, bool warn_readonly = true);
bool is_array(PyObject* o);
// Over the memory of an object with __array_interface__ or a DLPack capsule.
Tensor tensor_from_dlpack(PyObject* o);
// Keeps `owner` alive as long as the storage.
Ref<Storage> storage_over(void* data, size_t bytes, PyObject* owner);

void init_numpy(PyObject* module);
void init_dlpack(PyObject* module);

// Whether a tensor is one of Python's sparse classes, whose numbers lie beside it.
bool is_sparse(PyObject* tensor);
// Raises NotImplementedError where it is one: `what` reads numbers.
void refuse_sparse(PyObject* tensor, const char* what);

}  // namespace strata::py
