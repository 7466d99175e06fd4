// A nest as a device's kernel: the printed function, and an entry point whose items are the turns of the loops that may
// run in any order. An item runs all turns of the loops whose order matters.
#pragma once
#include <string>

#include "lower/print/print_nest.h"

namespace strata::lower {

// What the entry point takes: parameters() of the nest but for Begin, End and sizes that are known. Of a kernel that
// may set its status the last two say where: an array, and which of its words; others have none.
std::vector<NestParameter> entry_parameters(const Nest& nest);
// The loops that make items (groups), outermost first: their numbers of turns multiply to that of items.
std::vector<int> item_ranges(const Nest& nest, bool groups = false);
// Whether a run may or something into the status.
bool may_set_status(const Nest& nest);

// A whole text in the dialect; the entry point is called `entry`. Where `group` is not 0, that many items share a turn
// of the loops that make items otherwise, and its elements: for nests with grouped_ranges().
std::string print_entry(const Nest& nest, const Dialect& dialect, const std::string& entry, int group = 0);
// The same of nests of different names together; `groups`: of each.
std::string print_entries(const std::vector<Nest>& nests, const Dialect& dialect,
                          const std::vector<std::string>& entries, const std::vector<int>& groups);

}  // namespace strata::lower
