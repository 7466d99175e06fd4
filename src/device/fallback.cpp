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

// A generator of the device takes the place of the CPU's own: what the CPU's code draws is drawn from it.
class Lent {
 public:
  Lent(Unit& unit, Stack& args) : generator_(default_generator(unit.device())), scope_(generator_) {
    for (IValue& v : args) {
      if (!v.is<Generator>() || !v.get<Generator>().defined()) continue;
      eager::check_generator(v.get<Generator>(), unit.device());
      generator_ = v.get<Generator>();
      v = IValue(Generator());  // that of the scope
    }
  }

 private:
  Generator generator_;
  GeneratorScope scope_;
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
  const Lent generator(unit, copies);
  const ir::BelowAutograd below;
  redispatch_boxed(op, dispatch_of_stack(copies), copies);
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
