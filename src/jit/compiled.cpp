#include "jit/compiled.h"

#include <algorithm>
#include <unordered_map>

#include "dispatch/seen.h"
#include "grad/engine/engine.h"
#include "grad/engine/function.h"
#include "grad/engine/variable.h"
#include "ir/effect.h"
#include "ir/rewrite.h"
#include "jit/joint/absent.h"
#include "jit/joint/terms.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"

namespace strata::jit {

Compiled::Compiled(Captured captured, PlanOptions options)
    : captured_(std::move(captured)),
      options_(options),
      forward_(captured_.forward()),
      loops_(std::any_of(forward_.body.nodes.begin(), forward_.body.nodes.end(),
                         [](const ir::Node& n) { return n.kind == ir::Node::Loop; })),
      reaches_(forward_.body.params.size()) {
  const auto& results = captured_.graph.body.results;
  for (size_t k = 0; k < captured_.wanted.size() && captured_.outputs + k < results.size(); ++k)
    reaches_[size_t(captured_.wanted[k])] = results[captured_.outputs + k] != ir::kNone;
  find_views();
}

void Compiled::find_views() {
  const ir::Block& body = forward_.body;
  std::unordered_map<ir::Id, const ir::Node*> makers;
  for (const ir::Node& n : body.nodes)
    for (ir::Id v : n.results)
      if (v != ir::kNone) makers.emplace(v, &n);
  std::unordered_map<ir::Id, ViewOf> bases;
  for (size_t p = 0; p < body.params.size(); ++p) bases[body.params[p]] = {int(p), -1};
  for (size_t r = 0; r < captured_.outputs; ++r) bases.try_emplace(body.results[r], ViewOf{-1, int(r)});
  std::vector<ViewOf> found(captured_.outputs);
  bool any = false;
  for (size_t r = 0; r < found.size(); ++r) {
    ir::Id at = body.results[r];
    for (bool view = false; at != ir::kNone;) {
      if (const auto base = bases.find(at); view && base != bases.end() && base->second.result != int(r)) {
        found[r] = base->second;  // or what that one is a view of
        any = true;
      }
      const auto maker = makers.find(at);
      if (maker == makers.end() || maker->second->kind != ir::Node::Call || maker->second->args.empty()) break;
      const ir::Node& n = *maker->second;
      const bool shows = ir::is_view(*n.op), writes = n.op->schema().args[0].type.written && n.results.size() == 1;
      if ((!shows && !writes) || n.gradient != ir::Node::Through || n.args[0].kind != ir::Arg::One) break;
      view |= shows;
      at = n.args[0].values[0];
    }
  }
  if (any) views_ = std::move(found);
}

std::vector<Tensor> Compiled::with_views(std::vector<Tensor> results, const std::vector<Tensor>& params) const {
  for (size_t r = 0; r < views_.size(); ++r)
    if (const auto [p, other] = views_[r]; p >= 0 || other >= 0)
      mark_view(results[r], p >= 0 ? params[size_t(p)] : results[size_t(other)]);
  return results;
}

// Plans and derivatives are made without the lock: who makes one may warn, or ask for signals, and so wait for a thread
// that waits here. Of two that threads make at once the first stays.

const Plan& Compiled::inference() {
  if (const Plan* made = inference_made_.load(std::memory_order_acquire)) return *made;
  auto made = std::make_unique<Plan>(forward_, options_);
  std::lock_guard<std::mutex> hold(lock_);
  if (!inference_) inference_ = std::move(made);
  inference_made_.store(inference_.get(), std::memory_order_release);
  return *inference_;
}

void Compiled::make_halves() {
  if (halves_made_.load(std::memory_order_acquire)) return;
  std::lock_guard<std::mutex> hold(lock_);
  if (halves_ || captured_.tangent_of.empty()) return;
  not_again_ = why_not_again(captured_);
  own_ = std::any_of(captured_.graph.body.nodes.begin(), captured_.graph.body.nodes.end(),
                     [](const ir::Node& n) { return n.gradient == ir::Node::Own; });
  halves_ = std::make_unique<Halves>(split(captured_.graph, captured_.forward_nodes, captured_.tangent_of.size(),
                                           captured_.outputs, captured_.wanted));
  halves_made_.store(true, std::memory_order_release);
}

void Compiled::make_training() {
  if (training_made_.load(std::memory_order_acquire)) return;
  make_halves();
  if (!halves_) return;
  std::vector<std::unique_ptr<Plan>> made = Plan::make({halves_->forward, halves_->backward}, options_);
  std::lock_guard<std::mutex> hold(lock_);
  if (training_) return;
  training_ = std::move(made[0]);
  backward_ = std::move(made[1]);
  training_made_.store(true, std::memory_order_release);
}

const Plan* Compiled::training() { return make_training(), training_.get(); }
const Plan* Compiled::backward() { return make_training(), backward_.get(); }

std::vector<std::pair<std::string, const Plan*>> Compiled::plans() {
  if (!training()) return {{"forward", &inference()}};
  return {{"forward", training_.get()}, {"backward", backward_.get()}};
}

namespace {

// Where a graph is being captured, another becomes part of it, operator by operator; over shapes there is nothing to
// compile.
bool one_by_one(const std::vector<Tensor>& params) {
  return recording_here() || MetaGuard::active() ||
         std::any_of(params.begin(), params.end(), [](const Tensor& t) { return t.is_meta(); });
}

}  // namespace

namespace {

// Which tangents are there; and those alone, after `before`.
std::pair<std::vector<char>, std::vector<Tensor>> there(const std::vector<Tensor>& tangents,
                                                        std::vector<Tensor> before) {
  std::vector<char> given;
  for (const Tensor& t : tangents) {
    given.push_back(t.defined());
    if (t.defined()) before.push_back(t);
  }
  return {given, before};
}

template <class T, class Make>
std::shared_ptr<T> made_once(std::mutex& lock, std::map<std::vector<char>, std::shared_ptr<T>>& known,
                             const std::vector<char>& key, Make&& make) {
  {
    std::lock_guard<std::mutex> hold(lock);
    if (auto it = known.find(key); it != known.end()) return it->second;
  }
  std::shared_ptr<T> made = make();
  std::lock_guard<std::mutex> hold(lock);
  return known.emplace(key, std::move(made)).first->second;
}

}  // namespace

struct Compiled::Second {
  std::shared_ptr<Compiled> compiled;
  std::vector<char> there;  // of its gradients
};

// The forward is run again, with what it has `drawn`.
std::vector<Tensor> Compiled::differentiable_gradients(const std::vector<Tensor>& params,
                                                       const std::vector<Tensor>& tangents,
                                                       const DrawTape::Drawn& drawn) {
  STRATA_CHECK_NOT_IMPLEMENTED(halves_->written.empty(),
                               "graph: a second derivative (create_graph=True) of a graph that writes its input ",
                               halves_->written[0], "; take it of the function itself");
  STRATA_CHECK_NOT_IMPLEMENTED(not_again_.empty(), "graph: a second derivative (create_graph=True) ", not_again_,
                               "; take it of the function itself");
  STRATA_CHECK_NOT_IMPLEMENTED(
      !recording_here() || !(drawn.any || draws(forward_)),
      "graph: a second derivative (create_graph=True) through random numbers, inside of another "
      "capture; take it of the function itself");
  STRATA_CHECK_NOT_IMPLEMENTED(!drawn.torn,
                               "graph: a second derivative (create_graph=True) through random numbers of a call while "
                               "which another thread drew some, too; draw on one thread at a time");
  Generator again = Generator::make();
  again.set_state(drawn.begin);
  std::optional<GeneratorScope> scope;
  if (drawn.any) scope.emplace(again);
  if (one_by_one(params)) return jit::differentiable_gradients(captured_, params, tangents);
  const auto [given, all] = there(tangents, params);
  const std::shared_ptr<Second> second = made_once(lock_, second_, given, [&] {
    Derivative made = differentiate(captured_, params, tangents);
    return std::make_shared<Second>(
        Second{std::make_shared<Compiled>(std::move(made.captured), options_), std::move(made.there)});
  });
  again.set_state(drawn.begin);  // the capture has drawn it, too
  std::vector<Tensor> found = second->compiled->run(all), gradients;
  size_t next = 0;
  for (char is_there : second->there) gradients.push_back(is_there ? found[next++] : Tensor());
  return gradients;
}

// The backward for some tangents: none where it cannot do without the others.
struct Compiled::Fewer {
  std::optional<WithoutAbsent> made;
  std::unique_ptr<Plan> plan;
};

// Parameters that no result's gradient hangs on have none.
size_t Compiled::edge_of(int param) const {
  return size_t(std::count(reaches_.begin(), reaches_.begin() + param, true));
}

struct Compiled::Apart {
  std::optional<Terms> terms;
  std::unique_ptr<Plan> plan;
};

std::vector<Tensor> Compiled::gradients_by(const ir::Graph& backward, const Plan* plan,
                                           const std::vector<Tensor>& params, const std::vector<char>& given,
                                           const std::vector<char>& apart) {
  const bool single = one_by_one(params);
  std::shared_ptr<Apart> terms;
  if (std::ranges::count(apart, true)) {
    std::vector<char> key = given;
    key.insert(key.end(), apart.begin(), apart.end());
    terms = made_once(lock_, apart_, key, [&] {
      auto made = std::make_shared<Apart>();
      made->terms = term_by_term(backward, apart);
      if (made->terms) made->plan = std::make_unique<Plan>(made->terms->graph, options_);
      return made;
    });
  }
  if (!terms || !terms->terms) return single ? ir::Interpreter(backward).run(params) : plan->run(params);
  std::vector<Tensor> found = single ? ir::Interpreter(terms->terms->graph).run(params) : terms->plan->run(params);
  std::vector<Tensor> last;
  size_t next = 0;
  for (size_t k = 0; k < terms->terms->count.size(); ++k) {
    for (size_t n = terms->terms->count[k]; n > 1; --n)
      give_gradient(edge_of(captured_.wanted[k]), std::move(found[next++]));
    last.push_back(terms->terms->count[k] ? std::move(found[next++]) : Tensor());
  }
  return last;
}

std::shared_ptr<Compiled::Fewer> Compiled::fewer_gradients(const std::vector<char>& given) {
  return made_once(lock_, fewer_, given, [&] {
    auto fewer = std::make_shared<Fewer>();
    fewer->made = without_absent(halves_->backward, halves_->saved_param.size(), given, own_);
    if (fewer->made) fewer->plan = std::make_unique<Plan>(fewer->made->graph, options_);
    return fewer;
  });
}

// A call that a backward may follow. Its context saves all parameters, then what the forward made for the backward.
struct Compiled::Node {
  struct Owner {
    std::shared_ptr<Compiled> compiled;
    DrawTape::Drawn drawn;
  };

  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) {
    const Owner& owner = *static_cast<Owner*>(ctx.owner.get());
    Compiled& c = *owner.compiled;
    const size_t count = c.forward_.body.params.size();
    const ir::Graph& backward = c.halves_->backward;
    // A gradient of other strides than the one at hand when the graph was made is laid out like that.
    auto laid_out = [&](size_t t, const Tensor& g) {
      const size_t place = c.halves_->saved_param.size() + t;
      const ir::Type& type = backward.values[size_t(backward.body.params[place])].type;
      if (ir::fits(g, type)) return g;
      const Tensor made =
          ops::empty_strided(ir::numbers(type.sizes), ir::numbers(type.strides), type.dtype, type.device);
      return ops::copy_(made, g);
    };
    std::vector<Tensor> made, params, tangents;
    tangents.reserve(c.captured_.tangent_of.size());
    bool all = true;
    for (size_t t = 0; t < c.captured_.tangent_of.size(); ++t) {
      const Tensor& g = grads[size_t(c.captured_.tangent_of[t])];
      all &= g.defined();
      tangents.push_back(g.defined() ? laid_out(t, g) : g);
    }
    std::vector<char> apart;
    for (size_t k = 0; k < c.captured_.wanted.size() && !grad_enabled(); ++k)
      apart.push_back(gradient_waits(c.edge_of(c.captured_.wanted[k])));
    std::vector<char> given;
    for (const Tensor& t : tangents) given.push_back(t.defined());
    const std::shared_ptr<Fewer> fewer = all || grad_enabled() ? nullptr : c.fewer_gradients(given);
    const std::vector<char>* reads = fewer && fewer->made ? &fewer->made->reads : nullptr;
    params.reserve(backward.body.params.size());
    if (grad_enabled()) {
      for (size_t i = 0; i < count; ++i) params.push_back(ctx.saved_tensor(i));
    } else {
      for (size_t i = 0, own = count; i < c.halves_->saved_param.size(); ++i) {
        const int p = c.halves_->saved_param[i];
        const size_t place = p < 0 ? own++ : size_t(p);
        if (!reads || (*reads)[i]) params.push_back(ctx.saved_tensor(place));
      }
    }
    if (reads) {
      made = c.gradients_by(fewer->made->graph, fewer->plan.get(), there(tangents, params).second, given, apart);
    } else if (grad_enabled()) {
      made = c.differentiable_gradients(params, tangents, owner.drawn);
    } else {
      // Zeros stand for what is not there.
      const size_t saved = params.size();
      for (size_t t = 0; t < tangents.size(); ++t)
        params.push_back(tangents[t].defined() ? tangents[t]
                                               : laid_out(t, ctx.zero_gradient(size_t(c.captured_.tangent_of[t]))));
      // Zeros have a term each, too, which eager's engine never adds.
      if (!all) apart.clear();
      made = c.gradients_by(backward, one_by_one(params) ? nullptr : c.backward(), params,
                            std::vector<char>(tangents.size(), true), apart);
      if (!all) {
        given.insert(given.begin(), saved, false);
        const std::vector<char> there = reached(backward, given);
        for (size_t k = 0; k < made.size(); ++k)
          if (!there[k]) made[k] = Tensor();
      }
    }
    std::vector<Tensor> out(count);
    for (size_t k = 0; k < made.size(); ++k) out[size_t(c.captured_.wanted[k])] = std::move(made[k]);
    return out;
  }
};

std::vector<Tensor> Compiled::call(std::vector<Tensor> params) {
  ir::check_inputs(forward_, params);
  params.insert(params.end(), forward_.captured.begin(), forward_.captured.end());
  STRATA_CHECK(default_dtype() == captured_.dtype, "graph: the default dtype was ", captured_.dtype,
               " when the graph was captured, and is ", default_dtype(), "; capture it again");
  const AutocastState now = autocast_state(0), then = captured_.autocast;
  STRATA_CHECK(now.enabled == then.enabled && (!now.enabled || now.dtype == then.dtype), "graph: autocast was ",
               then.enabled ? "on" : "off", " when the graph was captured, and is ",
               now.enabled ? str_cat("on, to ", now.dtype) : std::string("off"), "; capture it again");
  for (const Tensor& t : params) t.check_memory();
  return run(params);
}

std::vector<Tensor> Compiled::run(const std::vector<Tensor>& params) {
  const bool single = one_by_one(params);
  const bool grads = !captured_.step && grad_enabled() &&
                     std::any_of(params.begin(), params.end(), [](const Tensor& t) { return needs_grad(t); });
  auto plain = [&] {
    return with_views(single ? ir::Interpreter(forward_).run(params) : inference().run(params), params);
  };
  if (!grads) return plain();
  for (size_t i = 0; i < params.size(); ++i)
    STRATA_CHECK(!needs_grad(params[i]) ||
                     std::find(captured_.wanted.begin(), captured_.wanted.end(), int(i)) != captured_.wanted.end(),
                 "graph: input ", i,
                 " requires a gradient, and did not when the graph was captured; capture it again, or "
                 "call it under no_grad()");
  make_halves();
  if (!halves_) return plain();
  for (int w : halves_->written)
    STRATA_CHECK_NOT_IMPLEMENTED(!needs_grad(params[size_t(w)]), "graph: input ", w,
                                 " is written in place and requires a gradient: its history cannot be kept; write a "
                                 "copy of it");
  static const char* const name = function_node_name(typeid(Compiled));
  Ref<FunctionNode> node = make_node<FunctionNode>(name, &Node::backward);
  // What no result's gradient hangs on has no place in the graph of autograd, as in eager's.
  for (size_t i = 0; i < params.size(); ++i) node->take_argument(reaches_[i] ? &params[i] : nullptr);
  std::vector<Tensor> results;
  DrawTape::Drawn drawn;
  {
    GradModeGuard off(false);
    const DrawTape tape;  // operators of a program's own do not say whether they draw
    results = single ? ir::Interpreter(halves_->forward).run(params) : training()->run(params);
    drawn = tape.drawn();
  }
  std::vector<Tensor> saved;
  saved.reserve(params.size() + results.size());
  saved = params;
  const std::vector<int>& needed = halves_->saved_param;
  for (size_t i = 0; i < params.size(); ++i)
    if (STRATA_UNLIKELY(params[i].impl()->inference_) &&
        std::find(needed.begin(), needed.end(), int(i)) == needed.end()) {
      saved[i] = params[i].alias();  // what eager's operators would not save, and may be an inference tensor
      saved[i].impl()->inference_ = false;
    }
  for (size_t i = captured_.outputs; i < results.size(); ++i)
    if (halves_->saved_param[i - captured_.outputs] < 0) saved.push_back(results[i]);
  node->context.save_for_backward(std::move(saved));
  results.resize(captured_.outputs);
  std::vector<Tensor> fixed;
  for (size_t i = 0; i < results.size(); ++i)
    if (std::find(captured_.tangent_of.begin(), captured_.tangent_of.end(), int(i)) == captured_.tangent_of.end())
      fixed.push_back(results[i]);
  node->context.mark_non_differentiable(fixed);
  node->context.set_materialize_grads(false);
  node->context.owner = std::make_shared<Node::Owner>(Node::Owner{shared_from_this(), drawn});
  return with_views(node->finish(std::move(results)), params);
}

}  // namespace strata::jit
