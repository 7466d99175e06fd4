// A graph made ready to run: fused kernels, the launches that stay alone, the operators that are called whole, and
// where in one arena what lies between them. A run needs no Python and changes nothing of the plan: several may be
// under way at once.
#pragma once
#include "ir/pass.h"
#include "jit/compile/kept.h"
#include "run/loop/rows_loop.h"

namespace strata::jit {

struct PlanOptions {
  bool lines = false;  // kernels have the user's lines, for debuggers and profilers
  bool fast = false;   // numerics="fast" (LaunchList::fast)
  bool fused = true;   // else every launch is eager's
};

class Plan {
 public:
  // Compiles the kernels; where there is no compiler the launches run one by one, and `without_compiler()` says why.
  explicit Plan(ir::Graph graph, PlanOptions options = {});
  // Several, whose kernels are compiled side by side.
  static std::vector<std::unique_ptr<Plan>> make(std::vector<ir::Graph> graphs, PlanOptions options);

  // Tensors that fit the graph's parameters, captured ones too; the written ones among them are. Below autograd.
  std::vector<Tensor> run(TensorList params) const;

  const ir::Graph& graph() const { return graph_; }
  const ir::PassLog& passes() const { return passes_; }  // that the graph went through
  const std::string& without_compiler() const { return without_compiler_; }
  size_t kernels() const;        // fused ones
  size_t by_themselves() const;  // operators that are part of none
  const std::vector<int>& written() const { return written_params_; }

  // For people.
  std::string launches() const { return print(list_); }
  std::string source(bool lines) const;  // with #line to the user's
  // Of a device's plan, in the dialect of another device.
  std::string source_for(const std::string& device) const;
  std::string explain() const;
  std::string memory() const;
  std::string cache() const;  // of each kernel: a hit, or what of its key differed
  struct Traffic {
    int64_t moved = 0, least = 0;  // bytes that kernels read and write; those of what comes in and goes out alone
  };
  Traffic traffic() const;

 private:
  struct Step {
    enum Kind : uint8_t { Single, Pointwise, Rows, Elsewhere } kind = Single;
    int group = 0;
    size_t kernel = 0;  // of the device's program
    const StrataKernelEntry* entry = nullptr;
    std::vector<char> params;  // scalars as kernels take them
    bool dense = false;        // all operands lie side by side
    int64_t elements = 0;
    int outputs = 0;
    bool leaves = false;  // all outputs are results that no later step reads
    DimVec shape;
    struct Place {
      int block;
      int64_t offset;  // bytes from the block's beginning
      DType dtype;
      DimVec strides;         // bytes
      const Launch* made_by;  // what lies nowhere
    };
    std::vector<Place> operands;  // outputs first
    eager::RowsLoop rows;         // but for where operands are
  };
  struct Frame;

  class Clock;

  explicit Plan(PlanOptions options) : options_(options) {}
  void lower(ir::Graph graph);
  static void compile(ArrayRef<Plan*> plans);
  static void find_programs(ArrayRef<Plan*> plans);  // and steps
  void tell() const;                                 // STRATA_LOGS
  std::string kernel_name(size_t program) const;
  lower::Kernel kernel_of(const Group& g) const;
  void place();
  Step step_of(int group, const StrataKernelEntry* entry) const;
  bool run_linked(const Launch& l, Step& s) const;
  // On a device: run_elsewhere.cpp.
  static void find_device_programs(ArrayRef<Plan*> plans);
  void find_device();
  void run_elsewhere(const Step& s, Frame& f) const;
  bool one_by_one() const;
  bool written_shared(TensorList params) const;
  Tensor argument(const Operand& o, const Frame& f) const;
  void run_step(const Step& s, Frame& f) const;
  void run_single(const Launch& l, Frame& f) const;
  void run_copies(const Group& g, Frame& f) const;
  void run_call(const Launch& l, Frame& f) const;
  void reserve(size_t stretch, Frame& f) const;
  PhiloxState state_of(const DrawData& draw, const Frame& f) const;
  Ref<Storage> memory(size_t bytes, bool on_host) const;
  struct Makers;
  [[noreturn]] void refuse(const Launch& l, Frame& f) const;

  const PlanOptions options_;
  ir::Graph graph_;
  ir::PassLog passes_;
  LaunchList list_;
  std::vector<Group> groups_;
  std::string key_;               // until kernels are there: what the plan is kept by
  std::optional<KeptPlan> kept_;  // until kernels are there: what the disk had; the groups are moved out
  std::vector<Step> steps_;
  std::vector<ProgramRef> programs_;  // one for each different kernel
  std::vector<Origin> origins_;
  std::vector<int> source_of_;                          // per group
  std::vector<std::pair<const char*, double>> stages_;  // of the making, in ms
  std::string without_compiler_;
  // Of a graph whose tensors lie on a device of a plugin; or why its operators run one by one.
  std::shared_ptr<DeviceProgram> program_;
  std::unique_ptr<DeviceReplays> replays_;
  std::string not_planned_;
  std::vector<int> written_params_;
  std::vector<std::array<int, 2>> alive_;  // per block: the first and the last group that needs it, or -1
  // Per block: its place in the arena (-1: none), whether it is a result's and made at each run.
  std::vector<int64_t> place_;
  std::vector<char> result_, made_by_call_;
  std::vector<std::vector<int>> ends_;  // by group: blocks that a call made and that nobody reads after it
  int64_t arena_ = -1, unshared_ = 0;   // bytes of the arena; -1: nothing lies there
};

}  // namespace strata::jit
