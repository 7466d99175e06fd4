// How far words are from each other, for messages that suggest what was meant.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

// How many letters have to be put in, taken out or changed to make `b` of `a`.
inline size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      corner = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, corner + (a[i] != b[j])}));
  }
  return row[b.size()];
}

}  // namespace strata
