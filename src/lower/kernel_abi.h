// What a printed CPU kernel looks like to its caller. Kernels see only contiguous runs of elements: iteration over
// strides, broadcasting, type conversion of operands, ends of rows and threads are the callers' work (run/).
//
// Pointwise: `blocks` runs of 16 elements. ptr holds the outputs, then the inputs; step the bytes to advance after each
// block (0: the operand is the same 16 values for every block). Buffers are whole blocks. params holds the scalars, one
// 16-byte slot each, in the compute type. flags bit 0: streaming stores (outputs 64-byte aligned). Bit 1, where
// the kernel holds inputs: `blocks` runs of STRATA_HELD_BYTES of an operand, of which the held inputs' are read once,
// and the steps lead from run to run. Bit 2 there: `blocks` rows of as many elements as stand behind the steps, which
// lead from row to row; a held input is one value for a row; 16 elements or more, and where they are not whole blocks,
// some are computed twice. Bits 3, 4 and 5, where the entry says so: the same, of the first input alone, of the second
// or of none; bit 6 of the entry's row_values. A division of integers by zero ors 1 into *status, an index out of
// range 2.
//
// Rows: one function per pass over a row; see RowArgs. Reductions follow tree T: a call covers at most 65,536 elements
// that begin at a multiple of 65,536, and gives its partial results; the caller folds these pairwise in order.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STRATA_HELD_BYTES = 256 };

typedef void (*StrataPointwiseFn)(char* const* ptr, const int64_t* step, const void* params, int64_t blocks,
                                  int64_t flags, int32_t* status);

typedef struct StrataRowArgs {
  char* const* ptr;      // outputs, then inputs: the first element of this call's part of the row, or, for operands
                         // with one value per row, that value
  const void* params;    // scalars, 16-byte slots, compute type
  const void* reduced;   // results of the reductions of earlier passes, 16-byte slots, accumulator type
  char* const* scratch;  // rows of temporaries in the compute type, this call's part
  void* partial;         // out: this pass's reductions over this part, 16-byte slots, accumulator type
  int64_t count;         // elements in this part, 1 to 65,536; or rows, see below
  int64_t first;         // logical index in the row of the first of them
  int64_t length;        // elements of the whole row
  int32_t* status;       // as a pointwise kernel's
  const int64_t* next;   // by operand, how far the next row lies, in bytes; or null
} StrataRowArgs;

// A pass that only writes outputs with one value per row does it for `count` rows: their values follow each other, at
// inputs too, and so do their reductions, in memory as wide as the accumulator where there is one alone.
typedef void (*StrataRowFn)(const StrataRowArgs* args);

// The same reduction for neighbouring rows whose elements lie across memory, as columns side by side: columns begin an
// element apart, elements of a column `step` bytes. For kernels of one sum, product or extremum without values per row.
// One call joins `rows` elements of every column, `jump` elements from each other, in order; those of a sum may also be
// `tree` such runs that begin 16 elements from each other and become one as tree T has them.
typedef struct StrataColumnArgs {
  char* const* ptr;     // outputs (unused), then inputs: the first element of the first column
  const int64_t* step;  // by operand, like ptr
  const void* params;
  void* to;           // an accumulator for each column
  const void* lower;  // `lowers` earlier results, `apart` bytes from each other, that join it in order at last
  int64_t lowers, apart;
  int64_t columns;  // a multiple of 16; all are in memory
  int64_t rows, jump, length;
  int64_t tree;    // 1; or STRATA_COLUMN_TREE, with `begins`, for at least STRATA_TREE_BYTES of accumulators
  int64_t begins;  // 0: what is at `to` is joined first
} StrataColumnArgs;
enum { STRATA_COLUMN_TREE = 4, STRATA_TREE_BYTES = 256 };

typedef void (*StrataColumnsFn)(const StrataColumnArgs* args);

// A whole pass for neighbouring rows side by side: a column is a row, and 16 of them are one vector. What the pass
// reduces it only writes, an accumulator for each element; the caller folds (run/loop/rows_across.h). For kernels of
// real numbers that set no status.
typedef struct StrataAcrossArgs {
  // Outputs, inputs, rows of temporaries, two for each reduction of the kernel (its result; the index of an argmax),
  // and one for each reduction of this pass (what it reduces): the first element of the first column.
  char* const* ptr;
  const int64_t* step;  // likewise: bytes from one element of a column to the next
  const void* params;
  int64_t columns;   // a multiple of 16; all are in memory, side by side
  int64_t length;    // elements of a column
  int64_t first;     // where the elements at hand begin in their columns,
  int64_t elements;  // and how many they are
} StrataAcrossArgs;

typedef void (*StrataAcrossFn)(const StrataAcrossArgs* args);

enum {
  STRATA_COMBINE_ADD,
  STRATA_COMBINE_MUL,
  STRATA_COMBINE_MAX,
  STRATA_COMBINE_MIN,
  STRATA_COMBINE_OR,
  STRATA_COMBINE_AND,
  STRATA_COMBINE_ARGMAX,
  STRATA_COMBINE_ARGMIN
};

// A reduction: how partial results combine and the DType (as its number) of the accumulator. ARGMAX/ARGMIN have the
// value in the slot's first 8 bytes and the int64 index in its second 8.
typedef struct StrataReduction {
  uint8_t combine;
  uint8_t accumulator;
} StrataReduction;

typedef struct StrataRowPass {
  StrataRowFn fn;
  uint8_t reductions;       // how many it makes
  uint8_t elementwise;      // 1: writes outputs with one value per element; 0: reductions only, or per-row outputs
  uint8_t trees;            // 1: `columns` takes trees
  uint8_t plain;            // 1 and the number of an input, if the pass only reduces its elements as they are; or 0
  uint16_t broadcast;       // of `columns`: a bit for each input with one value for all of them, or (per row) for each
  uint16_t reads;           // a bit for each input whose elements it reads
  StrataColumnsFn columns;  // of the first pass, or null
  StrataAcrossFn across;    // or null; the kernel has the form if each pass has it or is plain
} StrataRowPass;

// Nests: the arguments of a printed function (lower/print/print_nest.h lists its parameters) in arrays, as its adapter
// hands them over. Sizes and strides are in elements, offsets in bytes.
typedef struct StrataNestArgs {
  void* const* memory;    // per operand, outputs first
  const int64_t* offset;  // per operand
  const int64_t* extent;  // per range
  const int64_t* stride;  // per dim, operand after operand
  const void* params;     // scalars, 16-byte slots, compute type
  const int64_t* begin;   // per range that the loops run over: from begin
  const int64_t* end;     // to before end
  int32_t* status;        // ors as pointwise kernels do
} StrataNestArgs;

typedef void (*StrataNestFn)(const StrataNestArgs* args);

// A space kernel in one form (lower/pass/space_nest.h): what its ranges and its operands' dims are.
enum { STRATA_DIM_NAMED, STRATA_DIM_PLAIN, STRATA_DIM_GROUP };

typedef struct StrataSpaceRange {
  const char* name;   // the dim's, or its group's, as the table writes it
  uint8_t kind;       // STRATA_DIM_*
  uint8_t component;  // which dim of its group; of the plain group 0 is outside, 1 inside
  uint8_t runs;  // 0: a size only; 1: a loop; 2: one whose order matters, since its turns may write one element; 3: one
                 // that nobody divides
  uint8_t named;  // 1: where along it an operand is read or written, a tensor says
} StrataSpaceRange;

typedef struct StrataSpaceOperand {
  uint8_t dtype, output, dims;
  const uint8_t* range;  // [dims]
} StrataSpaceOperand;

typedef struct StrataSpaceEntry {
  const char* name;  // without its form
  uint8_t dtype, rank, inner;
  // A scatter in chains: two outputs follow the result, what its chains gave and uint32 counts (lower/ir/nest.h). 1: of
  // sums, 2: of products.
  uint8_t chained;
  uint8_t ranges, operands, scalars;
  const StrataSpaceRange* range;      // [ranges]: the loops first, outermost first
  const StrataSpaceOperand* operand;  // [operands], outputs first
  StrataNestFn fn;
} StrataSpaceEntry;

typedef struct StrataSpaceFile {
  const StrataSpaceEntry* entries;
  int64_t count;
} StrataSpaceFile;

// An entry of float16 with nothing but its name and dtype: float32's kernel serves, between conversions.
typedef struct StrataKernelEntry {
  const char* name;
  uint8_t dtype;  // storage dtype of the inputs, as DType's number
  uint8_t kind;   // 0 pointwise, 1 rows
  uint8_t outputs, inputs, scalars;
  uint8_t scratch_rows, passes, reductions;
  uint8_t sets_status;  // 1: it may or something into *status; others never touch it
  uint8_t together;     // blocks that a pointwise function computes at a time, the last ones too where there are fewer
  uint8_t held;         // a bit for each input that a pointwise function holds (flags bit 1)
  uint8_t row_forms;    // a bit for each of flags bits 3 to 6 that a pointwise function knows
  uint8_t row_values;   // a bit for each input of which a row has one value in the form of flags bit 6
  uint8_t costly;       // 1: an element of a pointwise function takes longer than to look it up (PointwiseLoop)
  uint8_t local_rows;   // the last of the scratch rows: read by the passes just behind the one that writes them
  StrataPointwiseFn pointwise;
  const StrataRowPass* pass;         // [passes]; the last one writes the outputs
  const StrataReduction* reduction;  // [reductions] in order of passes
  const uint8_t* output_dtype;       // [outputs], DType numbers
  const uint8_t* per_row;            // [outputs + inputs]: 1 where the operand has one value per row
} StrataKernelEntry;

typedef struct StrataKernelFile {
  const StrataKernelEntry* entries;
  int64_t count;
} StrataKernelFile;

#ifdef __cplusplus
}
#endif
