#include "jit/compile/group.h"

#include <algorithm>

namespace strata::jit {

namespace {

// The blocks that a launch reads and writes.
struct Touched {
  std::vector<int> reads, writes;
  explicit Touched(const Launch& l) {
    for (size_t i = 0; i < l.ins.size(); ++i) {
      if (l.ins[i].block < 0) continue;
      reads.push_back(l.ins[i].block);
      if (l.kind == Launch::Call && l.written[i]) writes.push_back(l.ins[i].block);
    }
    for (const Operand& o : l.outs)
      if (o.block >= 0) writes.push_back(o.block);
  }
};

bool may_refuse(const Launch& l) {
  return l.kind == Launch::Call || (l.space && l.space->checks) ||
         (l.pointwise && eager::kernel_for(*l.pointwise, l.dtype).sets_status);  // a divisor of 0
}

bool meet(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

class Grouping {
 public:
  explicit Grouping(const LaunchList& list) : list_(list) {
    for (const Launch& l : list.launches) touched_.emplace_back(l);
    outlives_.assign(list.blocks.size(), false);
    for (size_t b = 0; b < list.blocks.size(); ++b) outlives_[b] = list.blocks[b].param >= 0;
    for (const Operand& o : list.results)
      if (o.block >= 0) outlives_[size_t(o.block)] = true;
  }

  std::vector<Group> run() {
    find_live();
    readers_.assign(list_.blocks.size(), 0);
    for (size_t i = 0; i < touched_.size(); ++i)
      if (live_[i])
        for (int b : touched_[i].reads) ++readers_[size_t(b)];
    for (size_t i = 0; i < list_.launches.size(); ++i)
      if (live_[i]) add(int(i));
    join();
    join_small();
    // What is stored can be told now that all are placed.
    for (Group& g : groups_)
      // One alone has a kernel that is linked; on a device it is compiled with the others.
      if ((g.launches.size() > 1 && !only_moves(g)) || (list_.elsewhere() && fusible(g))) {
        std::string why;
        g.fused = fuse(list_, g.launches, stored(g.launches), why);
      }
    return std::move(groups_);
  }

 private:
  void find_live() {
    std::vector<char> needed = outlives_;
    live_.assign(list_.launches.size(), false);
    for (size_t i = live_.size(); i-- > 0;) {
      const Touched& t = touched_[i];
      live_[i] = may_refuse(list_.launches[i]) ||
                 std::any_of(t.writes.begin(), t.writes.end(), [&](int b) { return needed[size_t(b)]; });
      if (live_[i])
        for (int b : t.reads) needed[size_t(b)] = true;
    }
  }

  // Of the blocks that these launches write, those that others read; and all that outlive the call.
  std::vector<char> stored(const std::vector<int>& launches) const {
    std::vector<char> out = outlives_;
    std::vector<int> others = readers_;
    for (int i : launches)
      for (int b : touched_[size_t(i)].reads) --others[size_t(b)];
    for (int i : launches)
      for (int b : touched_[size_t(i)].writes) out[size_t(b)] |= others[size_t(b)] > 0;
    return out;
  }

  bool minds(const Touched& moved, const Touched& passed) const {
    return meet(passed.writes, moved.reads) || meet(passed.writes, moved.writes) || meet(passed.reads, moved.writes);
  }

  bool shares(const Group& g, const Touched& t) const {
    return std::any_of(g.launches.begin(), g.launches.end(), [&](int i) {
      const Touched& o = touched_[size_t(i)];
      return meet(o.writes, t.reads) || meet(o.reads, t.reads) || meet(o.writes, t.writes);
    });
  }

  void add(int launch) {
    const Launch& l = list_.launches[size_t(launch)];
    const Touched& t = touched_[size_t(launch)];
    std::string why = l.kind == Launch::Call ? "it is called whole: no expression of the table says all of it"
                                             : "nothing before it shares its memory";
    if (l.kind != Launch::Call)
      for (size_t g = groups_.size(); g-- > 0;) {
        Group& to = groups_[g];
        if (shares(to, t)) {
          std::vector<int> all = to.launches;
          all.push_back(launch);
          if (can_fuse(list_, all, stored(all), why)) {
            to.launches = std::move(all);
            return;
          }
        }
        if (std::any_of(to.launches.begin(), to.launches.end(), [&](int i) { return blocks_way(launch, i); })) break;
      }
    groups_.push_back({{launch}, std::nullopt, why});
  }

  // Groups that began apart and share memory now: a later one moves up to an earlier one, if nothing between minds.
  void join() {
    for (size_t j = groups_.size(); j-- > 1;)
      for (size_t i = j; i-- > 0;) {
        if (!fusible(groups_[i]) || !fusible(groups_[j])) {
          if (between(groups_[j], groups_[i])) break;
          continue;
        }
        const bool shared = std::any_of(groups_[j].launches.begin(), groups_[j].launches.end(),
                                        [&](int l) { return shares(groups_[i], touched_[size_t(l)]); });
        if (shared && join(i, j)) break;
        if (between(groups_[j], groups_[i])) break;
      }
  }

  // Small pieces of work over one shape that have nothing to do with each other are one kernel: to launch one takes as
  // long as its work. Not too many: what is compiled grows, and equal texts are compiled once.
  void join_small() {
    constexpr size_t kMost = 16;
    for (size_t j = groups_.size(); j-- > 1;) {
      const DimVec* shape = small(groups_[j]);
      for (size_t i = j; shape && i-- > 0;) {
        const DimVec* other = small(groups_[i]);
        if (other && *other == *shape && groups_[i].launches.size() + groups_[j].launches.size() <= kMost && join(i, j))
          break;
        if (between(groups_[j], groups_[i])) break;
      }
    }
  }

  // The shape of a group that computes few elements, each by itself; else null.
  const DimVec* small(const Group& g) const {
    constexpr int64_t kSmall = 1024;  // elements
    const Launch& one = list_.launches[size_t(g.launches[0])];
    if (one.kind != Launch::Pointwise) return nullptr;
    const DimVec& shape = one.outs[0].sizes;
    int64_t elements = 1;
    for (int64_t n : shape) elements *= n;
    const bool fits = elements <= kSmall && std::all_of(g.launches.begin(), g.launches.end(), [&](int i) {
                        const Launch& l = list_.launches[size_t(i)];
                        return l.kind == Launch::Pointwise && l.outs[0].sizes == shape;
                      });
    return fits ? &shape : nullptr;
  }

  // The later group becomes a part of the earlier one, if they make one kernel.
  bool join(size_t earlier, size_t later) {
    std::vector<int> all = groups_[earlier].launches;
    all.insert(all.end(), groups_[later].launches.begin(), groups_[later].launches.end());
    std::string why;
    if (!can_fuse(list_, all, stored(all), why)) return false;
    groups_[earlier].launches = std::move(all);
    groups_.erase(groups_.begin() + int64_t(later));
    return true;
  }

  // Whether it brings short rows of elements as they are to a block, as what cat joins along a last dim: linked loops
  // move these faster than a kernel does.
  bool only_moves(const Group& g) const {
    constexpr int64_t kMost = 2048, kLeast = 8192;  // bytes of a row, and of a launch, which shows beside fewer
    return std::all_of(g.launches.begin(), g.launches.end(), [&](int i) {
      const Launch& l = list_.launches[size_t(i)];
      if (l.kind != Launch::Copy || l.ins[0].dtype != l.outs[0].dtype || l.ins[0].sizes != l.outs[0].sizes)
        return false;
      const Operand &from = l.ins[0], &to = l.outs[0];
      int64_t row = 1, all = 1;
      bool joined = true;
      for (size_t d = to.sizes.size(); d-- > 0; all *= to.sizes[d]) {
        joined &= to.sizes[d] == 1 || (from.strides[d] == row && to.strides[d] == row);
        if (joined) row *= to.sizes[d];
      }
      const int64_t width = itemsize(to.dtype);
      return row > 1 && row * width <= kMost && all * width >= kLeast;
    });
  }

  bool fusible(const Group& g) const { return list_.launches[size_t(g.launches[0])].kind != Launch::Call; }

  // Whether `moved` may not pass `passed`.
  bool between(const Group& moved, const Group& passed) const {
    for (int m : moved.launches)
      for (int p : passed.launches)
        if (blocks_way(m, p)) return true;
    return false;
  }

  bool blocks_way(int moved, int passed) const {
    const Touched &t = touched_[size_t(moved)], &p = touched_[size_t(passed)];
    if (minds(t, p)) return true;
    // What is drawn has its words when the call has drawn.
    if (list_.launches[size_t(passed)].draws && list_.launches[size_t(moved)].kind == Launch::Draw) return true;
    // What may be refused is refused before memory that is anybody's changes.
    return may_refuse(list_.launches[size_t(passed)]) &&
           std::any_of(t.writes.begin(), t.writes.end(), [&](int b) { return list_.blocks[size_t(b)].param >= 0; });
  }

  const LaunchList& list_;
  std::vector<Touched> touched_;
  std::vector<char> outlives_, live_;
  std::vector<int> readers_;  // by block: how often live launches read it
  std::vector<Group> groups_;
};

}  // namespace

std::vector<Group> group(const LaunchList& list) { return Grouping(list).run(); }

namespace {

// Whether b's place begins where a's ends, along a dim that is not the first one.
bool lies_behind(const Operand& a, const Operand& b) {
  if (a.block != b.block || a.dtype != b.dtype || a.strides != b.strides || a.sizes[0] != b.sizes[0]) return false;
  size_t differ = 0, along = 0;
  for (size_t d = 1; d < a.sizes.size(); ++d) {
    const bool here = b.offset - a.offset == a.sizes[d] * a.strides[d];
    along += here && a.sizes[d] > 0;
    differ += !here && a.sizes[d] != b.sizes[d];
  }
  return along == 1 && differ == 0;
}

}  // namespace

void join_copies(const LaunchList& list, std::vector<Group>& groups) {
  if (list.elsewhere()) return;
  auto copy = [&](const Group& g, int l) {
    const Launch& launch = list.launches[size_t(l)];
    const bool is = !g.fused && launch.kind == Launch::Copy && launch.outs[0].sizes.size() > 1 &&
                    launch.ins[0].block != launch.outs[0].block && launch.ins[0].sizes == launch.outs[0].sizes;
    return is ? &launch : nullptr;
  };
  for (size_t i = 1; i < groups.size();) {
    const Launch *a = copy(groups[i - 1], groups[i - 1].launches.back()), *b = copy(groups[i], groups[i].launches[0]);
    if (a && b && a->node == b->node && lies_behind(a->outs[0], b->outs[0])) {
      groups[i - 1].launches.insert(groups[i - 1].launches.end(), groups[i].launches.begin(), groups[i].launches.end());
      groups[i - 1].copies = true;
      groups.erase(groups.begin() + int64_t(i));
    } else {
      ++i;
    }
  }
}

}  // namespace strata::jit
