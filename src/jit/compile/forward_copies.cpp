#include <algorithm>

#include "jit/compile/launches.h"

namespace strata::jit {

namespace {

bool reads(const Launch& l, int block) {
  return std::any_of(l.ins.begin(), l.ins.end(), [&](const Operand& o) { return o.block == block; });
}

bool writes(const Launch& l, int block) {
  if (std::any_of(l.outs.begin(), l.outs.end(), [&](const Operand& o) { return o.block == block; })) return true;
  for (size_t i = 0; i < l.written.size(); ++i)
    if (l.written[i] && l.ins[i].block == block) return true;
  return false;
}

bool is_result(const LaunchList& list, int block) {
  return std::any_of(list.results.begin(), list.results.end(), [&](const Operand& o) { return o.block == block; });
}

// Whether the copy at `at` makes a twin: all of a block that the graph made, into a block that begins with it, and from
// then on one of the two is not touched, or neither is written.
bool is_twin(const LaunchList& list, size_t at) {
  const Launch& copy = list.launches[at];
  if (copy.kind != Launch::Copy) return false;
  const Operand &to = copy.outs[0], &from = copy.ins[0];
  const Block &to_block = list.blocks[size_t(to.block)], &from_block = list.blocks[size_t(from.block)];
  if (to.block == from.block || to.dtype != from.dtype || !(to.sizes == from.sizes) || !(to.strides == from.strides) ||
      to_block.param >= 0 || from_block.param >= 0 || from_block.constant.defined() ||
      to_block.bytes != from_block.bytes || !to.covers_block(to_block.bytes) || !from.covers_block(from_block.bytes))
    return false;
  if (is_result(list, to.block) && is_result(list, from.block)) return false;
  bool made = false, from_used = is_result(list, from.block), written = false;
  for (size_t i = 0; i < list.launches.size(); ++i) {
    const Launch& l = list.launches[i];
    if (i < at) {
      made |= writes(l, from.block);
      if (reads(l, to.block) || writes(l, to.block)) return false;
    } else if (i > at) {
      from_used |= reads(l, from.block) || writes(l, from.block);
      written |= writes(l, from.block) || writes(l, to.block);
    }
  }
  return made && !(from_used && written);
}

}  // namespace

void forward_copies(LaunchList& list) {
  for (size_t at = 0; at < list.launches.size();) {
    if (!is_twin(list, at)) {
      ++at;
      continue;
    }
    const int kept = list.launches[at].ins[0].block, gone = list.launches[at].outs[0].block;
    auto rename = [&](Operand& o) {
      if (o.block == gone) o.block = kept;
    };
    for (Launch& l : list.launches)
      for (auto* operands : {&l.outs, &l.ins})
        for (Operand& o : *operands) rename(o);
    for (Operand& o : list.results) rename(o);
    list.launches.erase(list.launches.begin() + int64_t(at));
  }
}

}  // namespace strata::jit
