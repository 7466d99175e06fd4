#include <algorithm>

#include "jit/compile/launches.h"

namespace strata::jit {

namespace {

class Forwarding {
 public:
  explicit Forwarding(LaunchList& list)
      : list_(list), uses_(list.blocks.size()), stands_for_(list.blocks.size()), is_result_(list.blocks.size()) {
    for (size_t b = 0; b < stands_for_.size(); ++b) stands_for_[b] = int(b);
    for (size_t i = 0; i < list.launches.size(); ++i) {
      const Launch& l = list.launches[i];
      for (size_t k = 0; k < l.ins.size(); ++k) use(l.ins[k], i, k < l.written.size() && l.written[k]);
      for (const Operand& o : l.outs) use(o, i, true);
    }
    for (const Operand& o : list.results)
      if (o.block >= 0) is_result_[size_t(o.block)] = true;
  }

  void run() {
    std::vector<char> gone(list_.launches.size());
    for (size_t i = 0; i < gone.size(); ++i)
      if ((gone[i] = is_twin(i))) join(i);
    size_t at = 0;
    std::erase_if(list_.launches, [&](const Launch&) { return gone[at++]; });
    for (Launch& l : list_.launches)
      for (auto* operands : {&l.outs, &l.ins})
        for (Operand& o : *operands) o.block = block_of(o);
    for (Operand& o : list_.results) o.block = block_of(o);
  }

 private:
  struct Use {
    size_t at;
    bool writes;
  };

  void use(const Operand& o, size_t at, bool writes) {
    if (o.block >= 0) uses_[size_t(o.block)].push_back({at, writes});
  }

  int block_of(const Operand& o) const {
    int b = o.block;
    while (b >= 0 && stands_for_[size_t(b)] != b) b = stands_for_[size_t(b)];
    return b;
  }

  // Whether the copy at `at` makes a twin: all of a block that the graph made, into a block that begins with it, and
  // from then on one of the two is not touched, or neither is written.
  bool is_twin(size_t at) const {
    const Launch& copy = list_.launches[at];
    if (copy.kind != Launch::Copy) return false;
    const Operand &to = copy.outs[0], &from = copy.ins[0];
    const size_t to_at = size_t(block_of(to)), from_at = size_t(block_of(from));
    const Block &to_block = list_.blocks[to_at], &from_block = list_.blocks[from_at];
    if (to_at == from_at || to.dtype != from.dtype || !(to.sizes == from.sizes) || !(to.strides == from.strides) ||
        to_block.param >= 0 || from_block.param >= 0 || from_block.constant.defined() ||
        to_block.bytes != from_block.bytes || !to.covers_block(to_block.bytes) || !from.covers_block(from_block.bytes))
      return false;
    if (is_result_[to_at] && is_result_[from_at]) return false;
    bool made = false, from_used = is_result_[from_at], written = false;
    for (const Use& u : uses_[to_at]) {
      if (u.at < at) return false;
      written |= u.at > at && u.writes;
    }
    for (const Use& u : uses_[from_at]) {
      made |= u.at < at && u.writes;
      from_used |= u.at > at;
      written |= u.at > at && u.writes;
    }
    return made && !(from_used && written);
  }

  // The copy at `at` is no more, and who used its result uses what it copied.
  void join(size_t at) {
    const size_t kept = size_t(block_of(list_.launches[at].ins[0])),
                 gone = size_t(block_of(list_.launches[at].outs[0]));
    uses_[kept].insert(uses_[kept].end(), uses_[gone].begin(), uses_[gone].end());
    std::erase_if(uses_[kept], [&](const Use& u) { return u.at == at; });
    stands_for_[gone] = int(kept);
    is_result_[kept] |= is_result_[gone];
  }

  LaunchList& list_;
  std::vector<std::vector<Use>> uses_;  // by block
  std::vector<int> stands_for_;         // by block: the one in its place
  std::vector<char> is_result_;
};

}  // namespace

void forward_copies(LaunchList& list) { Forwarding(list).run(); }

}  // namespace strata::jit
