#include "run/launch.h"

#include <algorithm>

#include "dispatch/seen.h"
#include "run/observe.h"

namespace strata::eager {
namespace {

// On the CPU; of shapes alone it is told.
int32_t run(const SpaceCall& c) {
  if (c.outs[0]->filled_by() != 1)
    return space({c.op, c.dtype, c.outs, c.ins, c.places, c.scalars.data(), c.extents, c.index});
  if (LaunchObserver* o = observer_of(*c.outs[0])) o->space(c);
  return 0;
}

// The kernel over a computed group of many dims, so many of them at a time: what was done before is the next turn's
// input.
int32_t in_turns(const SpaceCall& c, size_t rank) {
  STRATA_INTERNAL(c.outs.size() == 1 && c.ins.size() == 1, c.name, ": turns take one tensor");
  const Tensor& to = *c.outs[0];
  Tensor from = *c.ins[0];
  int32_t status = 0;
  for (size_t first = 0; first < rank; first += kMaxGroup) {
    const size_t count = std::min(size_t(kMaxGroup), rank - first), past = first + count;
    InlineVec<Place, 2> places;
    DimVec sizes(from.sizes());
    for (const Place& p : c.places) {
      Place part{p.name, {}};
      const bool group = p.dims.size() == rank;
      for (size_t k = group ? first : 0; k < (group ? past : p.dims.size()); ++k) part.dims.push_back(p.dims[k]);
      if (group)
        for (int64_t d : part.dims) sizes[size_t(d)] = to.sizes()[size_t(d)];
      places.push_back(std::move(part));
    }
    InlineVec<Slot, 8> slots;
    const Slot* slot = c.scalars.data();
    for (uint8_t n : c.lists) {
      const bool list = n == rank;
      for (size_t k = list ? first : 0; k < (list ? past : n); ++k) slots.push_back(slot[k]);
      slot += n;
    }
    const Tensor part = past == rank ? to : make_tensor_as(to, sizes, to.dtype());
    const Tensor *outs = &part, *ins = &from;
    status |= run({c.op,
                   c.name,
                   c.dtype,
                   {&outs, 1},
                   {&ins, 1},
                   {places.data(), places.size()},
                   {slots.data(), slots.size()},
                   {},
                   c.extents,
                   c.index});
    from = part;
  }
  return status;
}

}  // namespace

int32_t launch(const SpaceCall& c) {
  check_seen(c.name);
  size_t rank = 0;
  for (const Place& p : c.places) rank = std::max(rank, p.dims.size());
  return rank > size_t(kMaxGroup) ? in_turns(c, rank) : run(c);
}

}  // namespace strata::eager
