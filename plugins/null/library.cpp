// A library of one operator: products of matrices of float32 and float64, of any strides. Each sum goes in order, one
// rounding a step, as no printed kernel does: its bits tell who computed a product.
//
// strata_null_products() counts the runs.
#include <atomic>
#include <cstring>

#include "null.h"

namespace null {

struct Product {
  const char* name;
};

namespace {

constexpr Product mm{"aten::mm"};
std::atomic<int64_t> products{0};

// What a task keeps of an operand.
struct Matrix {
  Memory memory;
  uint64_t offset;
  int64_t rows, columns, by_row, by_column;

  explicit Matrix(const StrataOperand& o)
      : memory(sdk::handle_cast<Memory>(o.memory)),
        offset(o.offset),
        rows(o.sizes[0]),
        columns(o.sizes[1]),
        by_row(o.strides[0]),
        by_column(o.strides[1]) {}
  template <class T>
  T* at() const {
    return reinterpret_cast<T*>(address(memory) + offset);
  }
};

template <class T>
void multiply(const Matrix& c, const Matrix& a, const Matrix& b) {
  T* to = c.at<T>();
  const T *x = a.at<T>(), *y = b.at<T>();
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < a.columns; ++k) {
        volatile const T product = x[i * a.by_row + k * a.by_column] * y[k * b.by_row + j * b.by_column];
        sum += product;
      }
      to[i * c.by_row + j * c.by_column] = sum;
    }
}

bool knows(const StrataOperand& o, uint32_t type) { return o.kind == STRATA_TENSOR && o.dims == 2 && o.type == type; }

}  // namespace

Operator find_operator(int32_t, const char* name) { return std::strcmp(name, mm.name) == 0 ? &mm : nullptr; }

bool run_operator(Queue* queue, Operator op, const StrataOperand* results, uint32_t result_count,
                  const StrataOperand* arguments, uint32_t argument_count) {
  if (!accepts(op->name) || result_count != 1 || argument_count != 2) return false;
  const uint32_t type = results[0].type;
  if ((type != STRATA_F32 && type != STRATA_F64) || !knows(results[0], type) || !knows(arguments[0], type) ||
      !knows(arguments[1], type))
    return false;
  if (!queue) return true;
  if (fails(Fault::Library)) sdk::fail(STRATA_FAILED, "a product failed: a fault that was asked for");
  ++products;
  queue->add([=, c = Matrix(results[0]), a = Matrix(arguments[0]), b = Matrix(arguments[1])] {
    type == STRATA_F32 ? multiply<float>(c, a, b) : multiply<double>(c, a, b);
    return std::string();
  });
  return true;
}

}  // namespace null

extern "C" __attribute__((visibility("default"))) int64_t strata_null_products() { return null::products; }
