// Space kernels: from their text to a nest.
//
// Operands name their dims: with `result[p..,i]`, `self[p..,n]` and `index[p..,i]:int64` the text of gather is
// `self[p, checked(index)]`.
//   - A dim of an output is run over; its name is the index there, an int64. Other dims are sizes only: extent(n).
//   - `p..` is the plain group: any number of dims, indexed by themselves alone. Its nest has one range for it outside
//     all others and, in the inner form, one inside them; a caller that has more dims moves the operands instead.
//   - Other groups, `f..`, have `rank` dims each. An index at a group's place is one expression for each of its dims:
//     names of groups, and of lists (`before[f]` among the scalars), stand for that dim's.
//   - Indices: `e` is promised to be inside; `checked(e)` reads 0 and sets the status where it is not; `wrapped(e)`
//     counts negative ones from the end first. `inside(x[...], fill)` is fill where any index is outside.
//   - place(g, e) is the row-major number of the place e in group g, product(g, e) the product of e over its dims.
//   - A bare operand is read at its own dims.
//   - Dims that the description is `over` are of no output: sum(e), max(e) ... run over all of them, in the order
//     given, as tree T or as a sequence; argmax(e, place) gives the place of the largest, an int64 that is not
//     negative, or, in a sequence, -1 where nothing is larger than -inf (or the least integer). Of inside(x[...])
//     without a value what is outside is absent.
//   - sum_products(a, b) runs over the same dims, by fma in chains of 1,024: pass/contraction.h.
//   - A text whose last line is sum_into(result[...], e), prod_into, max_into, min_into or put_into scatters: it
//     runs over the dims of the inputs that it reads at their own place, those that it is `over`, and the plain group,
//     and e changes what stands at that place of the result, which begins as the caller left it. Of inside(result[...])
//     what is outside is left out, as where a third argument, a condition, is false. Contributions to one place come in
//     the order of the loops: the plain group's dims do not matter to it, the others run as the inputs name them, the
//     last fastest. Sums and products of floats form chains of 1,024, whose results are added (multiplied) in order,
//     unless the description says `sequence`.
//   - repeat, recurrence, scan: values handed from turn to turn (pass/carry_text.h).
#pragma once
#include "lower/ir/nest.h"

namespace strata::lower {

struct SpaceForm {
  int rank = 0;          // dims of each computed group; 0 where there is none
  bool inner = false;    // whether the plain group has a range inside the others
  bool chained = false;  // of a scatter: for more than 1,024 contributions to a place
};

Nest build_space(const KernelDesc& desc, DType dtype, SpaceForm form);

// The forms that are printed ahead for a kernel: a computed group has 1 to 3 dims, or the description's rank alone.
std::vector<SpaceForm> space_forms(const KernelDesc& desc, DType dtype);

// "flip_r2_in"
std::string space_name(const std::string& kernel, SpaceForm form);

}  // namespace strata::lower
