// Chains of lines: where a one-dimensional index names whole lines, all elements of a line are as far in their chain.
// So chains are counted by line, here, and kernels that count nothing run from the end of one chain to the next: Note
// [Chains].
#include <vector>

#include "run/space_launch.h"

namespace strata::eager {
namespace {

enum class Fold { First, Next, Last };  // total = line; total = total op line; line = total op line

template <class T>
void fold(Fold how, bool products, T* total, T* line, int64_t n, int64_t step) {
  const T neutral = products ? T(1) : -T(0);  // changes nothing that joins it, not even a zero's sign
  for (int64_t i = 0; i < n; ++i, ++total, line += step) {
    const T joined = how == Fold::First ? *line : products ? *total * *line : *total + *line;
    *(how == Fold::Last ? line : total) = joined;
    if (how != Fold::Last) *line = neutral;
  }
}

}  // namespace

std::optional<int32_t> SpaceLaunch::run_lines(const void* scalars, DType t, bool products) {
  const bool is_double = t == DType::F64;
  const int named = named_range();
  if (index_ < 0 || form_.operand[index_].dims != 1 || operand_[index_].width != sizeof(int64_t) || !form_.inner ||
      plain_ != 1 || named < 0 || !(is_double || t == DType::F32))
    return std::nullopt;
  const int64_t turns = extent_[form_.operand[index_].range[0]], places = extent_[named];
  if (places > 4 * turns) return std::nullopt;
  const auto* value = reinterpret_cast<const int64_t*>(operand_[index_].memory + operand_[index_].offset);
  std::vector<uint32_t> count(size_t(places), 0);
  std::vector<int64_t> ends;  // turns that begin another chain of their line
  for (int64_t i = 0; i < turns; ++i) {
    const int64_t at = value[i * operand_[index_].stride[0]];
    if (at < 0 || at >= places) return std::nullopt;
    const uint32_t before = count[size_t(at)]++;
    if (before && before % kChain == 0) ends.push_back(i);
  }
  int64_t line = 0;  // bytes from one to the next
  for (int d = 0; d < form_.operand[0].dims; ++d)
    if (form_.operand[0].range[d] == named) line = operand_[0].stride[d] * operand_[0].width;
  const int64_t length = plain_size_[0], step = operand_[0].plain[0];
  std::vector<std::vector<double>> totals(ends.empty() ? 0 : size_t(places));
  auto fold_at = [&](int64_t at, Fold how) {
    std::vector<double>& total = totals[size_t(at)];
    if (total.empty()) total.resize(size_t(length)), how = Fold::First;
    char* to = operand_[0].memory + operand_[0].offset + at * line;
    if (is_double)
      fold(how, products, total.data(), reinterpret_cast<double*>(to), length, step);
    else
      fold(how, products, reinterpret_cast<float*>(total.data()), reinterpret_cast<float*>(to), length, step);
  };
  int32_t status = 0;
  for (int64_t end : ends) {
    turns_to_ = end;
    status |= run(scalars);
    turns_from_ = end;
    fold_at(value[end * operand_[index_].stride[0]], Fold::Next);
  }
  turns_to_ = turns;
  status |= run(scalars);
  for (int64_t at = 0; at < int64_t(totals.size()); ++at)
    if (!totals[size_t(at)].empty()) fold_at(at, Fold::Last);
  return status;
}

}  // namespace strata::eager
