#include "ir/pass/inverse.h"

#include "base/error.h"
#include "ir/rewrite.h"

namespace strata::ir {

namespace {

Arg inverse_order(const Arg& dims) {
  const std::vector<int64_t>& order = dims.constant.get<std::vector<int64_t>>();
  const int64_t count = int64_t(order.size());
  std::vector<int64_t> back(order.size());
  for (int64_t d = 0; d < count; ++d) {
    const int64_t to = order[size_t(d)];
    if (to >= -count && to < count) back[size_t(to < 0 ? to + count : to)] = d;
  }
  return {Arg::Constant, IValue(std::move(back)), {}};
}

}  // namespace

Node inverse_call(std::string_view name, const Node& view, const Type& base, Id value) {
  const Schema& own = view.op->schema();
  OperatorTable& table = OperatorTable::instance();
  const std::string full = str_cat("aten::", name);
  Node best;
  for (Operator* op : name.find('.') == name.npos ? table.overloads(full) : std::vector{table.find(full)}) {
    if (!op || op->schema().writes()) continue;
    const Schema& schema = op->schema();
    const bool into = schema.arg_index("src") >= 0;
    Node n;
    n.op = op;
    for (const Argument& a : schema.args) {
      const int k = own.arg_index(a.name);
      if (n.args.empty())
        n.args.push_back(Arg::one(into ? kNone : value));
      else if (a.name == "src")
        n.args.push_back(Arg::one(value));
      else if (!into && a.name == "size")
        n.args.push_back({Arg::Constant, IValue(numbers(base.sizes)), {}});
      else if (!into && a.name == "dtype")
        n.args.push_back({Arg::Constant, IValue(base.dtype), {}});
      else if (k > 0 && to_string(own.args[size_t(k)].type) == to_string(a.type))
        n.args.push_back(!into && a.name == "dims" ? inverse_order(view.args[size_t(k)]) : view.args[size_t(k)]);
      else
        break;
    }
    if (n.args.size() == schema.args.size() && (!best.op || n.args.size() > best.args.size())) best = std::move(n);
  }
  return best;
}

}  // namespace strata::ir
