// Loop IR -> C text, header-free C11 for Clang 19 and GCC 12 (kernel_abi.h says what the functions promise).
// Instruction sets: Base has one-lane bodies for x86-64; V3 (AVX2, FMA) and V4 (AVX-512) have 16-lane bodies. All give
// the same bits. Compile with kCompileFlags and the set's -march.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/pass/stages.h"

namespace strata::lower {

enum class Isa : uint8_t { Base, V3, V4 };
constexpr int kIsaCount = 3;
const char* isa_name(Isa isa);   // "base", "v3", "v4"
const char* isa_flags(Isa isa);  // compiler flags
extern const char* const kCompileFlags;

// What a caller of a kernel must know, from the loop IR; the same facts stand in the printed StrataKernelEntry.
struct KernelInfo {
  std::string name;
  KernelKind kind;
  DType dtype;
  std::vector<Operand> outputs, inputs;
  std::vector<Scalar> scalars;
  std::vector<DType> scratch;  // rows of temporaries; each needs room for the compute type
  struct Reduction {
    Combine combine;
    DType accumulator;
  };
  std::vector<Reduction> reductions;
  struct Pass {
    int reductions;
    bool elementwise;
  };
  std::vector<Pass> passes;
};

// Raise Value where the expression makes no sense for the dtype.
KernelInfo describe(const KernelDesc& desc, DType dtype);
std::string print_kernel(const KernelDesc& desc, DType dtype, Isa isa);  // a whole C file, table symbol included
// Whether a kernel has a form for rows that lie across memory: one sum, product or extremum of cheap text, and what is
// made of it.
bool reduces_columns(const Kernel& kernel);
// Whether sums in such a kernel read and add and do little else: several positions of tree T go side by side then.
bool takes_trees(const Kernel& kernel);
// Whether every pass of a row kernel has a form for rows side by side (kernel_abi.h); the input that a pass reduces as
// it is, or -1.
bool computes_across(const Kernel& kernel, Isa isa);
// Whether a pass has a text for rows side by side: of these kernels, where it does not only reduce what it reads; and
// the last one of columns that graphs reduce, since they compute more of what they reduced than the table does.
bool prints_across(const Kernel& kernel, size_t pass, Isa isa);
int plain_input(const Pass& pass);
std::string kernel_symbol(const Kernel& kernel, Isa isa);  // "v4_add_Tensor_f32"

// Parts, for files of many kernels.
struct Needs {
  std::set<std::string> helpers;       // of the prelude by name, "fma_vf32"
  std::vector<std::string> functions;  // that are seldom called, without what stands before their parameters
  void insert(const std::string& helper) { helpers.insert(helper); }
  std::string function(const std::string& text);  // its name, the same for the same text
};
std::string print_function(const Kernel& kernel, Isa isa, Needs& needs);
std::string print_across(const Kernel& kernel, size_t pass, Isa isa, Needs& needs);
// A long pointwise kernel of a graph as several functions and the one that calls them for some blocks after each other.
Stages stages_of(const Kernel& kernel, Isa isa);
// The long passes of a row kernel as several each, with at most so many scratch rows in all.
void cut_passes(Kernel& kernel, size_t most);
inline bool has_pairs(const Operand& o) { return is_complex(o.storage); }
inline std::string bytes(int64_t n) { return std::to_string(n); }

std::string print_pointwise(const Kernel& kernel, Isa isa, Needs& needs);
bool loads(const Pass& pass, size_t input);
// Lines that hold `lanes` elements of an input are asked for. Arithmetic of so many lanes leaves few loads in flight.
std::string fetch(const Operand& o, const std::string& at, int64_t lanes);
std::string print_stages(const Kernel& kernel, const Stages& stages, Isa isa, Needs& needs);
// Its values need more registers than there are.
bool is_long(const Pass& pass);
// Of the vectors of a pass that takes several at a time, or 0; the blocks of 16 that a pointwise kernel takes at a
// time; the line with which a text of these kernels says how many lanes its vectors have, where it has to.
int64_t wide_lanes(const Kernel& kernel, const Pass& pass, Isa isa);
int64_t together(const Kernel& kernel, Isa isa);
// A bit for each input of a pointwise kernel that it can hold, where registers are enough for it.
unsigned held_inputs(const Kernel& kernel, Isa isa);
// A bit for each form over rows (kernel_abi.h): of kernels that have so little to do that a call for each row would
// show.
unsigned row_forms(const Kernel& kernel, Isa isa);
bool walks_rows(const Kernel& kernel, Isa isa);  // there could be one; a graph's kernel has the one that it needs
std::string lanes(const std::vector<Kernel>& kernels, Isa isa);
// The line with which the function of a long pass begins.
std::string frame(const Kernel& kernel, const Pass& pass, bool vector);
std::string comment(const Kernel& kernel, const std::string& what);
std::string print_file(const std::string& family, const std::vector<Kernel>& kernels, Isa isa);
std::string prelude(const Needs& needs);
// A file in which BodyPrinter marked lines: each of these after a #line to the user's, the others after one to `name`.
std::string with_lines(const std::string& text, const std::string& name);
// The conversions of half floats as C functions of one value: "f16_to_f32", "f32_to_f16", "bf16_to_f32", "f32_to_bf16".
std::string half_function(const std::string& name);
// A C file for the core of what C++ needs: these as strata_f16_to_f32 ..., and mathematics as strata_exp_f64 ...
std::string host_file();

DType mask_lane(int bits);  // the integer type of masks over lanes of that width

// Whether a pass of a row kernel only writes outputs with one value per row; it does so for many rows, whose reductions
// are so many bytes from each other (kernel_abi.h).
bool writes_rows(const Pass& pass);
// The pass as it is where lanes are rows: values per row are values of lanes.
Pass side_by_side(Pass pass);
int64_t reduced_bytes(const Kernel& kernel);

// One pass as statements. Kept apart from the loop around it, which differs between kinds of kernels.
class BodyPrinter {
 public:
  // wide: with vectors of so many lanes in the place of LANES, 32 or 64. across: lanes are rows (side_by_side() made
  // the pass).
  BodyPrinter(const Kernel& kernel, const Pass& pass, bool vector, Needs& needs, int64_t wide = 0, bool across = false);

  std::string uniform_part();  // scalars, results of reductions, operands with one value per row, and what follows
  std::string column_part(int indent);  // across: what is one value for each row, before the elements
  bool in_columns(int v) const { return hoisted_[size_t(v)]; }
  std::string element_part(int indent);
  std::string place_of(int part, bool pairs) const;  // of a value per row, among such values
  std::string ref(int v, bool vector);               // a node as an operand
  std::string mask(int v, int bits);                 // a Bool node as a mask of that lane width
  std::string type(DType t, bool vector);
  std::string type(DType t) { return type(t, vector_); }
  std::string helper(const std::string& name, DType t, bool vector);  // notes the need
  static std::string literal(const Node& n);
  std::string constant(DType t, uint64_t bits);  // as an operand of this body's lanes
  std::string unique(const std::string& wish);
  // Text whose lines with_lines() gives a #line to where an origin is; as it is where that is not known.
  std::string marked(std::string text, int origin) const;
  std::vector<char> lane_by_lane() const;  // by node: whether no vector has it side by side
  std::vector<char> rarely() const;        // by node: whether only slow parts use it
  // wide: held inputs are variables, `held_` before their names, and other operands' blocks lie side by side.
  void hold(unsigned inputs) { holds_ = inputs; }
  // wide: the bytes to an operand's next block; `suffix` stands behind its name.
  std::string block_step(const Operand& o, const std::string& suffix) const;
  // Rows are whole vectors wherever this text is used: nothing of it looks for their ends.
  bool ends_nowhere() const { return vector_ && kernel_.whole(16) && !kernel_.across; }

 private:
  std::string wish(const Node& n) const;  // its name, if that is free
  std::string statement(int v, bool vector);
  std::string expression(int v, bool vector);
  void emit(int v);
  void emit_group(int group);
  std::string any_lane(int condition);  // whether one has it
  void emit_lanes(int group, const std::vector<int>& owned);
  bool goes_lane_by_lane(int group) const;
  void emit_repeat(int carry);
  void line(const std::string& text, int origin = -1);
  void find_groups();
  void find_columns();
  int mask_bits(int v) const;
  bool tests_bit(int v) const;
  std::string load(const Node& n, bool vector);

  const Kernel& kernel_;
  const Pass& pass_;
  bool vector_, across_;
  unsigned holds_ = 0;  // a bit for each input that is a variable
  int64_t wide_;
  Needs& needs_;
  std::vector<std::string> names_;
  std::map<std::string, int> used_;
  std::vector<std::vector<int>> users_;
  std::vector<int> owner_, group_of_;  // group: Rare nodes with one condition; owner: the innermost a node is inside of
  std::vector<std::vector<int>> groups_;
  std::vector<std::vector<char>> inside_;  // [group][node]: only the group's slow parts use it
  std::vector<char> emitted_, splat_, hoisted_;
  std::vector<uint64_t> loops_;  // per node: the carries on whose states it depends, a bit each
  uint64_t open_ = 0;            // those whose loops are being printed
  std::vector<std::vector<std::string>> carry_names_;
  int of_lane_ = -1;  // the group whose slow parts are being printed for one lane of a vector
  std::string out_;
  int indent_ = 2;
};

}  // namespace strata::lower
