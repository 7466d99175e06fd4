#include "device/fallback.h"

#include <algorithm>
#include <chrono>

#include <map>
#include <mutex>
#include <set>

#include "base/env.h"
#include "core/generator_scope.h"
#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "run/random.h"

namespace strata::device {

namespace {

struct Ledger {
  std::mutex lock;
  std::map<std::pair<std::string, std::string>, FallbackRow> rows;
  std::set<std::pair<std::string, std::string>> warned;
  bool on = env_text("STRATA_FALLBACK") != "0", rescues = false;
  double budget = -1, spent = 0;
};
Ledger& ledger() {
  static Ledger* l = new Ledger;
  return *l;
}

// Generators of the device, which the CPU's code gets as its own, in their state: what it draws is drawn from them.
class Lent {
 public:
  Lent(Unit& unit, Stack& args) : first_(default_generator(unit.device())), scope_(first_.lent) {
    for (IValue& v : args) {
      if (!v.is<Generator>()) continue;
      eager::check_generator(v.get<Generator>(), unit.device());
      others_.emplace_back(v.get<Generator>());
      v = IValue(others_.back().lent);
    }
  }
  void give_back() {
    first_.give_back();
    for (Pair& p : others_) p.give_back();
  }

 private:
  struct Pair {
    explicit Pair(const Generator& g) : own(g), lent(Generator::make()), before(g.state()) { lent.set_state(before); }
    void give_back() {
      const PhiloxState now = lent.state(), found = own.state();
      if (found.seed == before.seed && found.offset == before.offset)
        own.set_state(now);
      else  // another thread has drawn meanwhile
        own.reserve(4 * int64_t(now.offset - before.offset));
    }
    Generator own, lent;
    PhiloxState before;
  };
  Pair first_;
  GeneratorScope scope_;
  std::vector<Pair> others_;
};

// What gives the host a value that it asked for is no fallback.
bool reads_value(const Operator& op) {
  const Schema& s = op.schema();
  return !s.writes() && !s.returns.empty() &&
         std::none_of(s.returns.begin(), s.returns.end(), [](const Argument& r) { return r.type.is_tensor(); });
}

}  // namespace

std::vector<FallbackRow> fallback_rows() {
  Ledger& l = ledger();
  std::lock_guard<std::mutex> hold(l.lock);
  std::vector<FallbackRow> out;
  for (const auto& [key, row] : l.rows) out.push_back(row);
  std::stable_sort(out.begin(), out.end(), [](const FallbackRow& a, const FallbackRow& b) { return a.us > b.us; });
  return out;
}

void reset_fallbacks() {
  Ledger& l = ledger();
  std::lock_guard<std::mutex> hold(l.lock);
  l.rows.clear();
  l.spent = 0;
}

void set_fallback(bool on) {
  std::lock_guard<std::mutex> hold(ledger().lock);
  ledger().on = on;
}

bool fallback_on() {
  std::lock_guard<std::mutex> hold(ledger().lock);
  return ledger().on;
}

void set_rescue(bool on) {
  std::lock_guard<std::mutex> hold(ledger().lock);
  ledger().rescues = on;
}

bool rescues() {
  std::lock_guard<std::mutex> hold(ledger().lock);
  return ledger().rescues;
}

void set_fallback_budget(double us) {
  std::lock_guard<std::mutex> hold(ledger().lock);
  ledger().budget = us;
  ledger().spent = 0;
}

namespace {
// The operator on the CPU; what it gives and writes lies there.
void on_copies(Unit& unit, Operator& op, Stack& copies) {
  Lent generators(unit, copies);
  const ir::BelowAutograd below;
  redispatch_boxed(op, dispatch_of_stack(copies), copies);
  generators.give_back();
}
}  // namespace

void run_on_host(Unit& unit, Operator& op, Stack& stack, bool refused) {
  // Where nothing may go to the CPU, a call that it would refuse is told its error still.
  if (refused && !reads_value(op) && !fallback_on()) {
    Twins tried(unit, Twins::Copies);
    Stack copies = tried.of(stack);
    on_copies(unit, op, copies);
  }
  Twins twins(unit, Twins::Copies);
  run_on_host(unit, op, stack, twins, {});
}

void run_on_host(Unit& unit, Operator& op, Stack& stack, Twins& twins, Stack copies) {
  const std::string device = unit.plugin().table->name;
  Ledger& l = ledger();
  const bool counted = !reads_value(op);
  if (counted) {
    std::lock_guard<std::mutex> hold(l.lock);
    STRATA_CHECK_NOT_IMPLEMENTED(
        l.on, op.name, ": The operator '", op.name, "' is not currently implemented for the device '", device,
        "', and the fallback to the CPU is off; switch it on with strata.fallback.on(), move the "
        "operands with .to(\"cpu\"), or register a kernel with strata.library");
    STRATA_CHECK(l.budget < 0 || l.spent <= l.budget, op.name, ": expected at most ", l.budget,
                 " us of fallbacks to the CPU, got ", l.spent,
                 "; strata.fallback.report() says which operators they are");
  }
  const auto start = std::chrono::steady_clock::now();
  const Stack args = stack;
  stack = copies.empty() ? twins.of(args) : std::move(copies);
  on_copies(unit, op, stack);
  twins.carry_over(op.schema(), args);
  stack = twins.back(stack);
  if (!counted) return;
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  std::unique_lock<std::mutex> hold(l.lock);
  FallbackRow& row = l.rows[{op.name, device}];
  row.op = op.name;
  row.device = device;
  ++row.calls;
  row.bytes += twins.bytes();
  row.us += us;
  l.spent += us;
  if (!l.warned.insert({op.name, device}).second) return;
  hold.unlock();
  warn(str_cat("The operator '", op.name, "' is not currently supported on the ", device,
               " backend and will fall back to run on the CPU. This may have performance implications; "
               "strata.fallback.report() says which."));
}

}  // namespace strata::device
