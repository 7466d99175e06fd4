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

// A block that copies make up part by part and that one copy then lays out anew (the stacked gradients of queries, keys
// and values, say): the parts go straight to their last places.
class LayingOut {
 public:
  explicit LayingOut(LaunchList& list) : list_(list), writers_(list.blocks.size()), reads_(list.blocks.size()) {
    for (size_t i = 0; i < list.launches.size(); ++i) {
      const Launch& l = list.launches[i];
      for (const Operand& o : l.ins)
        if (o.block >= 0) ++reads_[size_t(o.block)];
      for (const Operand& o : l.outs)
        if (o.block >= 0) writers_[size_t(o.block)].push_back(i);
    }
    for (const Operand& o : list.results)
      if (o.block >= 0) ++reads_[size_t(o.block)];
  }

  void run() {
    std::vector<char> gone(list_.launches.size());
    for (size_t i = 0; i < gone.size(); ++i) gone[i] = lay_out(i);
    size_t at = 0;
    std::erase_if(list_.launches, [&](const Launch&) { return gone[at++]; });
  }

 private:
  static constexpr int64_t kRun = 16;  // elements that stay side by side, at least: shorter ones cost more than a pass

  bool lay_out(size_t at) {
    const Launch& copy = list_.launches[at];
    if (copy.kind != Launch::Copy) return false;
    const Operand &to = copy.outs[0], &from = copy.ins[0];
    const Block &to_block = list_.blocks[size_t(to.block)], &from_block = list_.blocks[size_t(from.block)];
    const std::vector<size_t>& parts = writers_[size_t(from.block)];
    if (to.block == from.block || to.dtype != from.dtype || !(to.sizes == from.sizes) || to_block.param >= 0 ||
        from_block.param >= 0 || from_block.constant.defined() || reads_[size_t(from.block)] != 1 || parts.empty() ||
        !to.covers_block(to_block.bytes) || !from.covers_block(from_block.bytes) || from.sizes.empty() ||
        from.sizes.back() < kRun || from.strides.back() != 1 || to.strides.back() != 1)
      return false;
    std::vector<size_t>& written = writers_[size_t(to.block)];
    if (*std::min_element(written.begin(), written.end()) < at) return false;
    std::vector<Operand> places;
    for (size_t p : parts) {
      const Launch& part = list_.launches[p];
      Operand place;
      if (p > at || part.kind != Launch::Copy || !find_place(part.outs[0], from, to, place)) return false;
      places.push_back(std::move(place));
    }
    for (size_t i = 0; i < parts.size(); ++i) list_.launches[parts[i]].outs[0] = std::move(places[i]);
    std::erase(written, at);
    written.insert(written.end(), parts.begin(), parts.end());
    return true;
  }

  // Where `part` of `from` lies in `to`, an index of one being the same index of the other. False where a dim of the
  // part goes along none of theirs.
  static bool find_place(const Operand& part, const Operand& from, const Operand& to, Operand& place) {
    std::vector<size_t> dims;
    for (size_t d = 0; d < from.sizes.size(); ++d)
      if (from.sizes[d] > 1) dims.push_back(d);
    std::sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return from.strides[a] > from.strides[b]; });
    place = {to.block, to.offset, part.sizes, DimVec(part.sizes.size(), 1), part.dtype};
    DimVec left(from.sizes);  // of each dim, from where the part begins
    int64_t rest = part.offset;
    for (size_t d : dims) {
      place.offset += rest / from.strides[d] * to.strides[d];
      left[d] -= rest / from.strides[d];
      rest %= from.strides[d];
    }
    for (size_t e = 0; e < part.sizes.size(); ++e) {
      if (part.sizes[e] == 1) continue;
      const auto d =
          std::find_if(dims.begin(), dims.end(), [&](size_t i) { return from.strides[i] == part.strides[e]; });
      if (d == dims.end() || part.sizes[e] > left[*d]) return false;
      place.strides[e] = to.strides[*d];
      dims.erase(d);
    }
    return part.dtype == from.dtype;
  }

  LaunchList& list_;
  std::vector<std::vector<size_t>> writers_;  // by block: launches
  std::vector<int> reads_;                    // by block
};

}  // namespace

void forward_copies(LaunchList& list) {
  Forwarding(list).run();
  LayingOut(list).run();
}

}  // namespace strata::jit
