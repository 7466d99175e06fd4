// Which launches become one kernel. Launches keep the order that their reads and writes need; one joins an earlier
// group when nothing between them minds, when the two share memory, and when fuse() makes a kernel of them.
#pragma once
#include "jit/compile/fused.h"

namespace strata::jit {

struct Group {
  std::vector<int> launches;
  std::optional<Fused> fused;  // of several launches
  std::string alone;           // why the first of them did not join an earlier group; for people
  bool copies = false;         // of join_copies()
};

// The operators that a group does the work of, for people.
std::string operators_of(const LaunchList& list, const Group& g);

// Launches whose results nobody needs are left out.
std::vector<Group> group(const LaunchList& list);

// Copies that bring an operator's inputs side by side along a dim, each by itself so far, become one group: they go
// some rows at a time, since memory would be walked once for each.
void join_copies(const LaunchList& list, std::vector<Group>& groups);

}  // namespace strata::jit
