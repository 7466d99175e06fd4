// How many lanes the vectors of a text have.
#include <algorithm>

#include "lower/print/print_c.h"

namespace strata::lower {

namespace {

// Long arithmetic over whole vectors goes four of them at a time, which are 64 lanes, or 32 where elements have 64
// bits: their chains hide each other's waiting, and the text is no longer. Where registers are many, and lengths of
// rows are known, so that no end is to be checked for. The lanes that a kernel's passes take then, or 0.
int64_t wide_lanes(const Kernel& k, Isa isa) {
  if (isa != Isa::V4 || (k.kind == KernelKind::Pointwise && !k.fused)) return 0;
  if (std::ranges::any_of(k.outputs, has_pairs) || std::ranges::any_of(k.inputs, has_pairs)) return 0;
  int64_t lanes = 0;
  for (const Pass& p : k.passes) {
    if (!is_long(p) || !p.elementwise) continue;
    Needs unused;
    const std::vector<char> alone = BodyPrinter(k, p, true, unused).lane_by_lane();
    bool long_lanes = false;
    for (size_t v = 0; v < alone.size(); ++v)
      long_lanes |= !alone[v] && !p.nodes[v].uniform && traits(p.nodes[v].type).bits > 32;
    lanes = long_lanes || lanes == 32 ? 32 : 64;
  }
  return lanes > 0 && (k.kind == KernelKind::Pointwise || k.whole(lanes)) ? lanes : 0;
}

}  // namespace

bool is_long(const Pass& p) { return p.nodes.size() > 32; }

int64_t wide_lanes(const Kernel& k, const Pass& p, Isa isa) {
  auto narrow = [](const Node& n) { return n.op == Op::Index || n.op == Op::Call || is_complex(n.type); };
  const bool widens =
      p.elementwise && p.reductions.empty() && p.carries.empty() && std::ranges::none_of(p.nodes, narrow);
  return widens ? wide_lanes(k, isa) : 0;
}

unsigned held_inputs(const Kernel& k, Isa isa) {
  unsigned held = 0;
  for (size_t i = 0; i < k.inputs.size() && isa == Isa::V4; ++i) held |= unsigned(k.inputs[i].held) << i;
  return held;
}

bool walks_rows(const Kernel& k, Isa isa) {
  constexpr size_t kMostNodes = 64, kMostInputs = 8;
  const auto plain = [&](const Operand& o) {
    return o.storage == DType::F32 || (o.storage == DType::F64 && isa == Isa::V4);
  };
  return isa != Isa::Base && k.kind == KernelKind::Pointwise && !k.inputs.empty() && !held_inputs(k, isa) &&
         std::ranges::all_of(k.inputs, plain) && k.inputs.size() <= kMostInputs &&
         k.passes[0].nodes.size() <= kMostNodes && stages_of(k, isa).parts.size() == 1;
}

unsigned row_forms(const Kernel& k, Isa isa) {
  constexpr size_t kLittle = 6;  // nodes
  if (!walks_rows(k, isa)) return 0;
  if (k.fused) return k.row_values >= 0 ? 8 : 0;
  if (k.inputs.size() > 2 || together(k, isa) > 1 || k.passes[0].nodes.size() > kLittle) return 0;
  return k.inputs.size() == 2 ? 7 : 4;
}

std::string frame(const Kernel& k, const Pass& p, bool vector) {
  return k.fused && vector && is_long(p) ? "  FRAME\n" : "";
}

int64_t together(const Kernel& k, Isa isa) {
  int64_t lanes = 16;
  if (k.kind == KernelKind::Pointwise)
    for (const Stage& s : stages_of(k, isa).parts)
      lanes = std::max(lanes, wide_lanes(s.kernel, s.kernel.passes[0], isa));
  return lanes / 16;
}

// Vectors have 16 lanes: a row's partial sums are one. Where registers are half as long, a vector is two, which hide
// each other's waiting; in long texts they are twice the bytes for a twentieth of the time.
std::string lanes(const std::vector<Kernel>& whole, Isa isa) {
  constexpr size_t kVeryLong = 100;  // nodes
  if (isa == Isa::Base) return "";
  std::vector<Kernel> kernels;
  for (const Kernel& k : whole)
    for (Stage& stage : stages_of(k, isa).parts) kernels.push_back(std::move(stage.kernel));
  size_t nodes = 0, side_by_side = 0;
  for (const Kernel& k : kernels)
    for (const Pass& p : k.passes)
      if (wide_lanes(k, p, isa) > 0 || held_inputs(k, isa)) return "#define WIDE\n";
  for (const Kernel& k : kernels) {
    if (k.kind == KernelKind::Rows) return "";
    for (const Pass& p : k.passes) nodes += p.nodes.size();
  }
  if (nodes <= kVeryLong * kernels.size()) return "";
  Needs unused;
  for (const Kernel& k : kernels)
    for (const Pass& p : k.passes)
      side_by_side += size_t(std::ranges::count(BodyPrinter(k, p, true, unused).lane_by_lane(), 0));
  return side_by_side > kVeryLong * kernels.size() ? "#ifndef __AVX512F__\n#define LANES 8\n#endif\n" : "";
}

}  // namespace strata::lower
