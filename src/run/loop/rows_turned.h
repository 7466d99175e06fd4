// Sums of long rows that lie turned in memory: neighbours there are far apart in the row, as in x.t().sum().
#pragma once
#include "run/loop/rows_fold.h"
#include "run/loop/rows_loop.h"
#include "run/loop/turned_tiles.h"

namespace strata::eager {

// 1 and the reduced dim along which the elements lie, where that is not the last one; else 0.
size_t turned_dim(const RowsLoop& loop, const RowOperand& o);
// `many` blocks of the reduced dims from `inside` on that begin an element apart, one after the other into `buffer`.
void turn_blocks(const RowsLoop& loop, const RowOperand& o, const char* p, size_t inside, int64_t block, char* buffer,
                 int64_t many);

// The first pass of a kernel of one sum or product over the whole parts of a row, for an operand whose last reduced dim
// goes across memory and whose dim before that lies along it. Parts whose elements share lines of the cache are read
// together: some positions of tree T of all of them at a time.
class TurnedRow {
 public:
  // At the `operands` of a row.
  TurnedRow(const RowsLoop& loop, char* const* operands);
  // 0, or how many whole parts it can take.
  int64_t parts() const { return parts_; }
  // What the first pass gives for each, into partial[0 .. parts()).
  void run(Value* partial) const;

 private:
  struct Room;
  bool fit(char* const* operands);
  bool choose();
  void by_tiles(Value* partial) const;
  void group(int64_t first, int64_t count, Value* partial) const;
  void read(int64_t first, int64_t last, int64_t position, const Room& room) const;
  void block(int64_t row, int64_t height, int64_t first, int64_t last, char* to) const;

  const RowsLoop& l_;
  size_t input_ = 0;
  const char* base_ = nullptr;
  int64_t parts_ = 0, rows_ = 0, columns_ = 0;  // of the turned matrix: its rows lie across memory
  int64_t width_ = 0, kernel_width_ = 0, accumulator_ = 0;
  int64_t common_ = 0;    // positions after which rows and chunks begin together
  int64_t together_ = 0;  // positions, of `common_`, that are read at a time
  int64_t parts_at_once_ = 0;
  TurnedTilesFn tiles_ = nullptr;  // in the kernel's place, where it joins elements as they are
};

}  // namespace strata::eager
