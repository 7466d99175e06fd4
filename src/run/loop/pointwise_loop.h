// The iteration below a pointwise kernel: cuts tensors of any strides and dtypes into contiguous runs of blocks. What
// is already contiguous is passed in place; the rest goes through small buffers.
#pragma once
#include "core/tensor.h"
#include "run/loop/contiguous.h"

namespace strata::eager {

class Maker;

class PointwiseLoop {
 public:
  explicit PointwiseLoop(IntArrayRef shape) : shape_(shape) {}
  // `kernel` is the dtype that the kernel writes or reads; the tensor's own may differ.
  void add_output(const Tensor& t, DType kernel) { add(t, kernel, true); }
  void add_input(const Tensor& t, DType kernel) { add(t, kernel, false); }
  // Elements of the kernel's dtype, whose strides are bytes along the dims of the shape.
  void add(char* base, DimVec strides, DType kernel, bool output);
  // An input that lies nowhere (loop/maker.h).
  void add_made(const Maker& maker, DimVec strides, DType kernel);
  int32_t run(const StrataKernelEntry& kernel, const void* params);
  // In the place of a run, by strides alone: a bit for each input that is one value in every row, where rows lie as
  // kernels take them, and are so short that a call for each would show; else -1. together: the kernel's.
  int64_t row_values(int64_t together);

 private:
  struct Operand {
    char* base;
    DimVec strides;  // bytes, by dim of shape_
    DType dtype, kernel;
    bool output;
    bool ordered = false;          // contiguous over the whole iteration
    bool dense = false;            // the same without conversion
    bool constant = false;         // one element
    int64_t repeats = 0;           // an input's row comes again for so many elements, which are many rows
    bool turned = false;           // neighbours in memory belong to different rows
    const Maker* maker = nullptr;  // makes an input that lies nowhere
  };
  void add(const Tensor& t, DType kernel, bool output);
  int64_t elements() const;
  // Long arrays of two bytes an element (pointwise_table.cpp).
  bool looks_up(const StrataKernelEntry& kernel) const;
  int32_t run_looked_up(const StrataKernelEntry& kernel, const void* params, int64_t n) const;
  bool lay_out(int64_t n);  // of so many elements: whether all is dense
  void take_at_once(int64_t together);
  int64_t values_of_rows() const;
  void order_dims();
  void coalesce();
  void bring_near();
  void find_rows(int64_t n);
  bool results_apart(unsigned inputs) const;  // no result lies where one of these inputs is read
  bool holds(const int64_t* jump, const int64_t* step, int64_t rows, int64_t inner) const;
  // Rows where they lie, and rows that share values, which the kernel holds (pointwise_rows.cpp).
  bool rows_in_place() const;
  // The flag of a kernel's form for rows where what it holds is one value each and all lies as it takes it; 0: none.
  int64_t one_value_each() const;
  // Rows of one or two blocks, which go down the rows as a kernel's blocks.
  bool blocks_each() const;
  void run_blocks(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end, int32_t* status) const;
  void run_valued(StrataPointwiseFn fn, const void* params, int64_t flags, int64_t begin, int64_t end,
                  int32_t* status) const;
  void run_down(StrataPointwiseFn fn, char* const* ptr, const int64_t* jump, const int64_t* step, const void* params,
                int64_t rows, int64_t inner, int32_t* status) const;
  void run_rows(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end, int32_t* status) const;
  // Long rows beside operands that lie turned over, in tiles of some rows (pointwise_tiles.cpp): how many, 0 for
  // others.
  int64_t count_tiles();
  void run_tiles(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end, int32_t* status) const;
  void run_range(StrataPointwiseFn fn, const void* params, int64_t begin, int64_t end, int32_t* status) const;
  void stage(const Operand& o, char* buffer, int64_t begin, int64_t count, bool in) const;
  static void take(const Operand& o, const char* from, int64_t stride, char* buffer, int64_t count);
  int64_t offset_at(const Operand& o, int64_t index) const;

  DimVec shape_;
  Operand operands_[kMaxOperands];
  int count_ = 0;
  int outputs_ = 0;
  int64_t row_ = 0;     // elements after which what repeats comes again
  int64_t widest_ = 1;  // bytes of a kernel's element
  int64_t block_ = kBlock,
          long_row_ = 0;  // elements that a kernel computes at a time, and a row that is worth its call
  int64_t tile_rows_ = 0, tile_columns_ = 0;
  bool made_ = false;  // an input lies nowhere
  // Bits of inputs that the kernel holds, of its forms over rows, and of inputs that the last of these has one value
  // of.
  unsigned held_ = 0, row_forms_ = 0;
  int64_t row_values_ = 0;
  bool again_ = false;  // elements may be computed twice
};

}  // namespace strata::eager
