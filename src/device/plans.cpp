// Plans of compiled graphs on a device (jit/compile/elsewhere.h): their fused kernels as one text, launched with what
// eager's launches are.
#include <algorithm>
#include <chrono>

#include "base/env.h"
#include "core/stream.h"
#include "device/batch.h"
#include "device/fallback.h"
#include "device/launch.h"
#include "device/library.h"
#include "jit/compile/elsewhere.h"
#include "jit/compile/launches.h"
#include "lower/pass/split_rows.h"

namespace strata::device {

namespace {

// The nest's key is what it says; equal kernels of different graphs are one.
const KernelNest& known(const lower::Nest& nest, int group) {
  return kernel_nest(str_cat(lower::dump(nest), "//", nest.text, "//", group), [&] { return nest; }, group);
}

class Program final : public jit::DeviceProgram {
 public:
  Program(Unit& unit, std::vector<jit::DeviceKernel> kernels) : unit_(unit) {
    std::vector<const KernelNest*> nests;
    for (jit::DeviceKernel& k : kernels) {
      Use u;
      u.extent = std::move(k.extent);
      u.stride = std::move(k.stride);
      const bool groups = unit.plugin().dialect.group;
      std::optional<lower::SplitRows> split;
      if (k.in_chunks && groups) split = lower::split_rows(k.nest);
      if (split) {
        u.rows = k.rows;
        u.chunks = (k.row_length + lower::kChunk - 1) / lower::kChunk;
        u.own = k.nest.operands.size();
        for (const lower::NestOperand& o : k.nest.operands) {
          u.outs += o.output;
          u.dims.push_back(o.dims.size());
        }
        for (size_t r = 0; r < k.nest.ranges.size(); ++r)
          if (k.nest.loops() >> r & 1) u.kept.push_back(r);
        u.nest = &known(split->parts, unit.plugin().dialect.group);
        u.fold = &known(split->fold, unit.plugin().dialect.group);
        nests.push_back(u.fold);
      } else {
        u.nest = &known(k.nest, k.rows && groups ? group_for(unit, k.rows, k.row_length) : 0);
      }
      nests.push_back(u.nest);
      if (u.chunks) u.extent.push_back(u.chunks);
      u.items = items(*u.nest, u.extent);
      if (u.fold) u.fold_items = items(*u.fold, u.extent);
      uses_.push_back(std::move(u));
    }
    const auto start = std::chrono::steady_clock::now();
    const std::vector<StrataKernel> made = unit.kernels().get(nests, &compiled);
    if (compiled) ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    size_t next = 0;
    for (Use& u : uses_) {
      if (u.fold) u.fold_kernel = made[next++];
      u.kernel = made[next++];
    }
  }

  void run(size_t kernel, ArrayRef<const Storage*> memory, ArrayRef<int64_t> offset, const void* scalars,
           const char* op) const override {
    const Use& u = uses_[kernel];
    if (u.chunks) return run_chunks(u, memory, offset, scalars, op);
    unit_.launch(u.kernel, *u.nest, {memory, offset, u.extent, u.stride, scalars}, u.items, op);
  }

  void run(const jit::Launch& l, const std::vector<Tensor>& outs, const std::vector<Tensor>& ins,
           PhiloxState state) const override {
    std::vector<const Tensor*> out_list, in_list;
    for (const Tensor& t : outs) out_list.push_back(&t);
    for (const Tensor& t : ins) in_list.push_back(&t);
    const ArrayRef<const Tensor*> to(out_list.data(), out_list.size()), from(in_list.data(), in_list.size());
    switch (l.kind) {
      case jit::Launch::Pointwise:
        return pointwise(unit_, *l.pointwise, l.dtype, to, from, l.scalars);
      case jit::Launch::Rows:
        return rows(unit_, *l.rows, l.dtype, to, from, l.scalars, l.dims);
      case jit::Launch::Draw:
        return draw(unit_, *l.draw->op, l.dtype, outs[0], from, l.draw->numbers, state);
      case jit::Launch::Copy:
        return copy(unit_, outs[0], ins[0]);
      case jit::Launch::Fill:
        return fill(unit_, outs[0], l.scalars[0]);
      default: {
        const jit::SpaceData& s = *l.space;
        return space(unit_,
                     {*s.op, l.name, l.dtype, to, from, s.places, s.scalars, s.lists, s.extents, s.index, s.outside});
      }
    }
  }

  std::unique_ptr<jit::DeviceReplays> replays() const override {
    static const bool wanted = env_text("STRATA_REPLAYS") != "0";
    return wanted && unit_.plugin().table->graph_create ? std::make_unique<Graphs>(unit_) : nullptr;
  }

  std::string source(const std::string& device) const override {
    const Plugin* plugin = &unit_.plugin();
    if (!device.empty()) {
      const std::vector<const Plugin*> all = plugins();
      const auto at = std::find_if(all.begin(), all.end(), [&](const Plugin* p) { return device == p->table->name; });
      STRATA_CHECK_VALUE(at != all.end(), "source: no plugin offers the device ", device);
      plugin = *at;
    }
    std::vector<lower::Nest> nests;
    std::vector<std::string> entries;
    std::vector<int> groups;
    for (const Use& u : uses_)
      for (const KernelNest* n : {u.nest, u.fold}) {
        if (!n) continue;
        nests.push_back(n->nest);
        nests.back().name += str_cat("_", nests.size());
        entries.push_back(str_cat("run_", nests.size()));
        groups.push_back(n->group && plugin != &unit_.plugin() ? plugin->dialect.group : n->group);
      }
    return nests.empty() ? "" : lower::print_entries(nests, plugin->dialect, entries, groups);
  }

 private:
  struct Use {
    const KernelNest *nest = nullptr, *fold = nullptr;
    StrataKernel kernel = nullptr, fold_kernel = nullptr;
    std::vector<int64_t> extent, stride;
    int64_t items = 0, fold_items = 0;
    // Of few long rows:
    int64_t chunks = 0, rows = 0;
    size_t outs = 0, own = 0;
    std::vector<size_t> dims, kept;  // by operand how many strides it has; ranges
  };

  static int64_t items(const KernelNest& nest, const std::vector<int64_t>& extent) {
    int64_t n = 1;
    for (int r : nest.items) n *= extent[size_t(r)];
    return n;
  }

  // What each chunk gives, then the fold of a row's.
  void run_chunks(const Use& u, ArrayRef<const Storage*> memory, ArrayRef<int64_t> offset, const void* scalars,
                  const char* op) const {
    std::vector<int64_t> by_chunk;  // strides of what lies by row and chunk
    for (size_t k = u.kept.size(); k-- > 0;)
      by_chunk.insert(by_chunk.begin(), by_chunk.empty() ? u.chunks : by_chunk[0] * u.extent[u.kept[k + 1]]);
    by_chunk.push_back(1);
    std::vector<Ref<Storage>> made;
    std::vector<const Storage*> parts;
    for (const lower::NestOperand& o : u.nest->nest.operands) {
      if (!o.output) continue;
      made.push_back(Storage::away(unit_, size_t(u.rows * u.chunks * itemsize(o.storage))));
      parts.push_back(made.back().get());
    }
    const size_t count = parts.size();
    std::vector<const Storage*> first = parts, second(memory.begin(), memory.end());
    std::vector<int64_t> first_offset(count, 0), second_offset(offset.begin(), offset.end()), first_stride,
        second_stride = u.stride;
    size_t outs_strides = 0;
    for (size_t k = 0; k < u.outs; ++k) outs_strides += u.dims[k];
    for (size_t k = 0; k < count; ++k) {
      second.push_back(parts[k]);
      second_offset.push_back(0);
      first_stride.insert(first_stride.end(), by_chunk.begin(), by_chunk.end());
      second_stride.insert(second_stride.end(), by_chunk.begin(), by_chunk.end());
    }
    for (size_t k = u.outs; k < u.own; ++k) first.push_back(memory[k]), first_offset.push_back(offset[k]);
    first_stride.insert(first_stride.end(), u.stride.begin() + int64_t(outs_strides), u.stride.end());
    unit_.launch(u.kernel, *u.nest, {first, first_offset, u.extent, first_stride, scalars}, u.items, op);
    unit_.launch(u.fold_kernel, *u.fold, {second, second_offset, u.extent, second_stride, scalars}, u.fold_items, op);
  }

  Unit& unit_;
  std::vector<Use> uses_;
};

[[maybe_unused]] const bool set =
    (jit::set_device_backend({[](Device device, const std::string& op) { return unit(device).offers(op); },
                              [](Device device, const Operator& op, const Stack& args, const Stack& results) {
                                Unit& u = unit(device);
                                return has_library(u, op) && library_takes(u, op, args, results);
                              },
                              rescues,
                              [](Device device, std::vector<jit::DeviceKernel> kernels) {
                                return std::shared_ptr<jit::DeviceProgram>(
                                    std::make_shared<Program>(unit(device), std::move(kernels)));
                              }}),
     true);

}  // namespace

}  // namespace strata::device
