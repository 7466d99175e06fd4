// Plans whose tensors lie on a device of a plugin: their fused kernels as nests, and what the layer of devices offers
// to compile and run them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "dispatch/ivalue.h"
#include "dispatch/operator.h"
#include "lower/ir/nest.h"

namespace strata::jit {

struct Launch;
struct Fused;

constexpr int64_t kBusyRows = 256;  // that keep a device busy by themselves

// A fused kernel as a nest, and its shape. Strides that are 0 or 1 are constants of the text, and so are sizes of rows.
struct DeviceKernel {
  lower::Nest nest;
  std::vector<int64_t> extent;       // by range
  std::vector<int64_t> stride;       // elements, by dim of each operand
  int64_t rows = 0, row_length = 0;  // of a kernel that reduces rows
  // Of few long rows: what their chunks give, and the fold of it (lower/pass/split_rows.h). The nest has all strides as
  // parameters then.
  bool in_chunks = false;
};

// `outputs`: of each operand that is written its nodes in `graph`, as storage; loads are numbered as f.ins. Nodes of
// Op::Index with part 1 stand for the row-major number of an element in the whole space.
DeviceKernel device_kernel(const lower::Graph& graph, const std::vector<std::array<int, 2>>& outputs, const Fused& f);
// The numbers that a launch of it takes beside memory: a device takes so many bytes and no more.
constexpr size_t kMaxArguments = 120;

// What a plan launched before, for a device that replays launches at less cost than one by one.
class DeviceReplays {
 public:
  // While it lives, launches of this thread may be kept; give() gives them, what was not given is left out.
  class Run {
   public:
    virtual ~Run() = default;
    virtual void give() = 0;
  };
  virtual ~DeviceReplays() = default;
  virtual std::unique_ptr<Run> begin() = 0;  // null: nothing is kept
};

// The compiled kernels of one or several plans.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  // The kernel of that number: where its operands lie, outputs first, in bytes from a storage's beginning; 16 bytes a
  // scalar. `op`: whom to blame.
  virtual void run(size_t kernel, ArrayRef<const Storage*> memory, ArrayRef<int64_t> offset, const void* scalars,
                   const char* op) const = 0;
  // A launch by itself, as eager makes it. `state`: of a draw.
  virtual void run(const Launch& l, const std::vector<Tensor>& outs, const std::vector<Tensor>& ins,
                   PhiloxState state) const = 0;
  // Of one plan; null where the device replays nothing.
  virtual std::unique_ptr<DeviceReplays> replays() const = 0;
  // In the device's dialect, or in that of another one, by name.
  virtual std::string source(const std::string& device = "") const = 0;
  // How many kernels were compiled now, and in which time; the others were there.
  int64_t compiled = 0;
  double ms = 0;
};

// What a higher layer sets.
struct DeviceBackend {
  bool (*offers)(Device device, const std::string& op);  // whether an operator may run there by printed kernels
  // Whether the device's library computes it for these shapes: it is called whole then.
  bool (*by_library)(Device device, const Operator& op, const Stack& args, const Stack& results);
  bool (*rescues)();  // operators are to run one by one, each waited for
  std::shared_ptr<DeviceProgram> (*compile)(Device device, std::vector<DeviceKernel> kernels);
};
void set_device_backend(const DeviceBackend& backend);
const DeviceBackend& device_backend();

}  // namespace strata::jit
