// A graph as launches over memory: what its operators would launch one by one, found by running it over shapes under a
// LaunchObserver. Operators are gone here, but for those whose launches are not all told, which are called whole.
// Views are gone, too: an operand is a place in a block of memory, with sizes and strides, so that what a launch reads
// and writes is all that orders it.
#pragma once
#include "ir/graph.h"
#include "jit/compile/flow.h"
#include "run/launch.h"
#include "run/pointwise.h"
#include "run/random.h"
#include "run/rows.h"
#include "run/space_pieces.h"

namespace strata::jit {

struct Block {
  int64_t bytes = 0;
  int param = -1;        // the graph's parameter that it belongs to
  Tensor constant;       // a number
  bool on_host = false;  // where the launches are a device's: memory of the CPU
};

struct Operand {
  int block = -1;
  int64_t offset = 0;  // elements
  DimVec sizes, strides;
  DType dtype = DType::F32;
  bool operator==(const Operand& o) const {
    return block == o.block && offset == o.offset && sizes == o.sizes && strides == o.strides && dtype == o.dtype;
  }
  bool covers_block(int64_t bytes) const;    // dense, all of it
  bool in_short_pieces(int64_t most) const;  // of fewer elements each, in order
};

// What a space kernel's launch needs beside its operands.
struct SpaceData {
  const eager::SpaceOp* op;
  std::vector<eager::Place> places;
  std::vector<eager::Slot> scalars;
  std::vector<uint8_t> lists;
  std::vector<eager::Extent> extents;
  int index;
  bool in_pieces = false;  // pieces_of() gives them
  bool guards = false;     // it reads where it may be outside
  bool hosted = false;     // C++ stands for it in eager
  // Where an index may lie outside: which of the operands the operator's tensor arguments are, in order, for its error.
  bool checks = false;
  std::vector<size_t> args;
  ErrorKind outside = ErrorKind::Index;
};

// Of a draw: its words begin at a counter of its stretch. A run reserves a stretch from the default generator at once:
// all that is drawn between two calls that draw by themselves, whether or not it is needed.
struct DrawData {
  const eager::DrawOp* op;
  std::vector<eager::DrawNumber> numbers;
  size_t stretch;
  int64_t counter;
};

struct Launch {
  enum Kind : uint8_t { Pointwise, Rows, Space, Draw, Copy, Fill, Call };
  Kind kind = Pointwise;
  const ir::Node* node = nullptr;  // the operator that asked for it
  const char* name = "";           // for errors
  DType dtype = DType::F32;        // what the kernel computes in
  std::vector<Operand> outs, ins;
  std::vector<Scalar> scalars;  // of Fill: the value
  const eager::PointwiseOp* pointwise = nullptr;
  const eager::RowsOp* rows = nullptr;
  DimVec dims;  // that rows reduces
  std::shared_ptr<SpaceData> space;
  std::shared_ptr<DrawData> draw;
  // Of a call: its tensor arguments are `ins`, in order (None: block -1), its results `outs`; which of the arguments it
  // writes, and of each result whether it is new memory.
  std::vector<bool> written, fresh;
  bool draws = false;          // a call after which another stretch of draws begins
  std::shared_ptr<Flow> flow;  // of a call that is an `if` or a `loop`
  std::string operator_name() const { return node && node->op ? node->op->name : name; }
  const char* kernel() const {
    return pointwise ? pointwise->kernel : rows ? rows->kernel : draw ? draw->op->kernel.kernel : "";
  }
};

struct LaunchList {
  // numerics="fast": inside of a kernel, values of half types are handed on as they were before they were rounded.
  bool fast = false;
  Device device;  // of a plugin, where all that is no number lies there or on the CPU; else the CPU
  bool elsewhere() const { return device.type > 1; }
  std::vector<Block> blocks;
  std::vector<Launch> launches;
  std::vector<Operand> params, results;  // results: block -1 for None
  std::vector<int64_t> stretches = {0};  // of draws: counters of the stream that each takes
  std::vector<int> same_as_param;        // per result: the parameter that is the same tensor object, or -1
};

// Raises NotImplemented for what cannot be lowered. Flows have no plans yet. `device`: LaunchList's.
LaunchList lower(const ir::Graph& graph, Device device = {});

// The elements of a space kernel's launch piece by piece, reading `ins`; null where it has none (run/space_pieces.h).
std::unique_ptr<eager::SpacePieces> pieces_of(const Launch& launch, const std::vector<Tensor>& ins);

// A kernel that C++ stands for in eager, and that is part of no other one, becomes that call.
void call_host(LaunchList& list, size_t launch);

// Copies of whole blocks that nobody could tell from what was copied are left out.
void forward_copies(LaunchList& list);

// Which of the graph's parameters are written.
std::vector<int> written_params(const LaunchList& list);

std::string print(const LaunchList& list);

}  // namespace strata::jit
