// Random programs: each value's kernel is a map with computed indices, a reduction, a scatter, or one of the table's
// own.
#include <algorithm>
#include <map>

#include "lower/expr/types.h"
#include "lower/fuzz/expressions.h"
#include "lower/fuzz/program.h"
#include "lower/pass/space_nest.h"

namespace strata::lower::fuzz {
namespace {

const std::vector<DType> kFloats = {DType::F32,  DType::F32, DType::F32, DType::BF16,
                                    DType::BF16, DType::F16, DType::F64};
const std::vector<DType> kTypes = {DType::F32,  DType::F32,  DType::F32,  DType::F32, DType::F32, DType::F32,
                                   DType::BF16, DType::BF16, DType::BF16, DType::F16, DType::F16, DType::F64,
                                   DType::F64,  DType::I64,  DType::I32,  DType::U8,  DType::I8,  DType::Bool};

struct Letter {
  std::string name;
  int size;
};

// One kernel as it is written.
class Writer {
 public:
  Writer(Program& program, Random& rng)
      : program_(program), rng_(rng), id_("v" + std::to_string(program.values.size())) {}

  Value map() {
    choose_place();
    Expressions e(rng_);
    leaves(e, out_, 1 + int(rng_() % 3));
    const std::string text = e.any(1 + int(rng_() % 3));
    return space(text, pick(rng_, kTypes));
  }

  Value reduction() {
    const Tensor* of = some_value(1);
    std::vector<int> dims = of ? of->dims : std::vector<int>{any_size()};
    // Some dims of a value, the last ones mostly.
    const size_t reduced = 1 + (dims.size() > 1 && chance(rng_, 30));
    for (size_t k = 0; k < reduced; ++k) over_.push_back({k ? "m" : "k", dims[dims.size() - reduced + k]});
    dims.resize(dims.size() - reduced);
    if (chance(rng_, 15)) dims.push_back(any_size());
    if (dims.size() > 2) dims.resize(2);
    name_letters(dims);
    std::vector<Letter> inside = out_;
    inside.insert(inside.end(), over_.begin(), over_.end());
    sequence_ = chance(rng_, 25);
    std::string text;
    Expressions after(rng_);
    const int count = 1 + chance(rng_, 40);
    for (int k = 0; k < count; ++k) {
      Expressions e(rng_);
      if (k == 0 && of) e.leaf(read(*of, inside), of->dtype);
      leaves(e, inside, k == 0 ? 1 : 1 + int(rng_() % 2));
      if (k > 0) e.leaf("r0", DType::F32);
      const std::string how = pick<std::string>(rng_, {"sum", "sum", "sum", "sum", "sum", "sum", "sum_products",
                                                       "sum_products", "prod", "max", "min", "any", "argmax"});
      const std::string name = "r" + std::to_string(k);
      std::string value = how == "any"       ? e.condition(2)
                          : chance(rng_, 85) ? e.all_real(1 + int(rng_() % 2))
                                             : e.integer(2);
      if (how == "sum" && of && k == 0 && !is_complex(of->dtype) && chance(rng_, 30)) value = absent(*of, inside);
      if (how == "argmax") value += ", " + over_[0].name;
      if (how == "sum_products") value += ", " + e.real(1);
      const std::string line = how + "(" + value + ")";
      // What comes after takes every result as a number.
      text += name + " = " + (how == "any" || how == "argmax" ? "f32(" + line + ")" : line) + "\n";
      after.leaf("f32(" + name + ")", DType::F32);
    }
    if (chance(rng_, 30)) leaves(after, out_, 1);
    return space(text + after.all_real(chance(rng_, 50) ? 0 : 2), chance(rng_, 60) ? DType::F32 : pick(rng_, kFloats));
  }

  // Elements of a value with all dims in a group, or all but the last passed through: as the table's pads and flips.
  Value moved() {
    const Tensor* of = some_value(1);
    if (!of || of->dims.size() > 3) return map();
    const Tensor t = *of;
    const size_t count = t.dims.size();
    std::vector<int> sizes = t.dims;
    std::string in, out, text;
    if (count == 1 || chance(rng_, 50)) {
      form_.rank = int(count);
      const bool flips = chance(rng_, 30);
      for (size_t d = 0; d < count; ++d) {
        if (!flips && chance(rng_, 30)) sizes[d] = any_size();
        names_["f" + std::to_string(d)] = sizes[d];
        names_["g" + std::to_string(d)] = t.dims[d];
      }
      const std::string b = id_ + "_b";
      scalars_ = b + "[f] ";
      in = flips ? "f.." : "g..";
      out = "f..";
      text = flips ? t.name + "[extent(f) - 1 - f]"
                   : "inside(" + t.name + "[" +
                         pick<std::string>(rng_, {"f - " + b, "where(f < " + b + ", " + b + " - f, f - " + b + ")",
                                                  "2 * extent(g) - 2 - f + " + b, "f * 2 - " + b}) +
                         "], 1)";
    } else {
      form_.inner = count == 3;
      names_["outer"] = t.dims[0];
      if (form_.inner) names_["inner"] = t.dims[1];
      names_["n"] = t.dims.back();
      names_["i"] = sizes.back() = chance(rng_, 50) ? t.dims.back() : any_size();
      in = "p..,n";
      out = "p..,i";
      text =
          "inside(" + t.name + "[p, " + pick<std::string>(rng_, {"i - 2", "i * 3", "extent(n) - 1 - i", "i"}) + "], 2)";
    }
    inputs_ = t.name + "[" + in + "]:" + traits(t.dtype).name;
    const DType type = is_complex(t.dtype) ? DType::F32 : chance(rng_, 70) ? t.dtype : pick(rng_, kFloats);
    outputs_ = id_ + "[" + out + "]:" + traits(type).name;
    return made(is_complex(t.dtype) ? "abs(" + text + ")"
                : chance(rng_, 50)  ? text
                                    : text + " * 3",
                type, {{id_, type, sizes}});
  }

  // Values handed along the last dim.
  Value handed() {
    const Tensor* of = some_value(1);
    std::vector<int> dims = of ? of->dims : std::vector<int>{any_size()};
    if (dims.size() > 2) dims.resize(2);
    name_letters(dims);
    Expressions e(rng_);
    if (of) e.leaf(read(*of, out_), of->dtype);
    leaves(e, out_, of ? 1 : 2);
    const std::string along = out_.back().name, element = "f32(" + e.all_real(1 + int(rng_() % 2)) + ")";
    std::string text;
    if (chance(rng_, 40)) {
      Expressions next(rng_);
      next.leaf("s", DType::F32);
      leaves(next, out_, 1);
      text = "recurrence(" + along + ", s, " + element + ", f32(" + next.all_real(1) + "))";
    } else {
      text = "scan(" + along + ", x, y, " +
             pick<std::string>(rng_, {"x + y", "x + y", "x * y", "maximum(x, y)", "fmin(x, y)", "x + y + x * y"}) +
             ", " + element + ")";
    }
    if (chance(rng_, 40)) text = "h = " + text + "\nh * 0.5 - abs(h)";
    return space(text, chance(rng_, 60) ? DType::F32 : pick(rng_, kFloats));
  }

  // Contributions of a value's elements, at places that an index names or at their own.
  Value scatter() {
    const Tensor* of = some_value(1);
    name_letters(of ? of->dims : std::vector<int>{any_size()});
    if (out_.size() > 2) out_.resize(2);
    over_read_ = true;
    Expressions e(rng_);
    leaves(e, out_, 2);
    const int n = any_size();
    const Tensor at = index_tensor(n, {out_.back()});
    const std::string place = chance(rng_, 70) ? "checked(" : "wrapped(";
    const DType type = pick<DType>(rng_, {DType::F32, DType::I64, DType::F64, DType::BF16});
    const bool wide = type == DType::BF16;
    const std::string how =
        wide ? "put_into" : pick<std::string>(rng_, {"sum_into", "max_into", "min_into", "put_into"});
    const std::string text = how + "(" + id_ + "[" + place + read_at(at, {out_.back().name}) + ")], " +
                             pick<std::string>(rng_, {"f32(", "f64("}) + e.all_real(2) + "))";
    outputs_ = id_ + "[n]:" + traits(type).name;
    names_["n"] = n;
    sequence_ = true;
    Value v = made(text, type, {{id_, type, {n}}});
    v.begins = true;
    return v;
  }

  // One of the table's, with inputs as they come.
  Value of_the_table() {
    for (int tries = 0; tries < 200; ++tries) {
      const KernelDesc& d = table_kernels[rng_() % uint64_t(table_kernel_count)];
      const Tensor* like = some_value(1);
      const DType type =
          like && chance(rng_, 80) ? like->dtype : pick<DType>(rng_, {DType::F32, DType::BF16, DType::C64});
      const std::string text = d.text;
      // As in expressions.h: what a NaN's sign decides is not compared.
      const bool of_signs = text.find("signbit(self") != text.npos || text.find("copysign(self") != text.npos;
      if (d.kind == KernelKind::Space || !(d.dtypes >> int(type) & 1) || of_signs ||
          std::string(d.inputs).find(":word") != std::string::npos)
        continue;
      Value v;
      v.nest = build_nest(d, type);
      if (v.nest.nodes.size() > 120 || (like && like->dims.size() != v.nest.ranges.size() && chance(rng_, 95)))
        continue;
      for (size_t r = 0; r < v.nest.ranges.size(); ++r)
        v.sizes.push_back(like && like->dims.size() == v.nest.ranges.size() ? like->dims[r] : any_size());
      v.says = std::string(d.name) + " of the table: " + d.text;
      int output = 0;
      for (NestOperand& o : v.nest.operands) {
        std::vector<int> dims;
        for (int r : o.dims) dims.push_back(v.sizes[size_t(r)]);
        if (o.output) {
          o.name = id_ + (output++ ? "_" + std::to_string(output) : "");
          v.outputs.push_back({o.name, o.storage, dims});
          continue;
        }
        o.name = tensor_like(o.storage, dims).name;
        v.says += " " + o.name;
      }
      for (Scalar& s : v.nest.scalars) s.name = id_ + "_" + s.name;
      // Inputs that are one tensor are two operands here: as elsewhere, one name is one operand.
      std::set<std::string> names;
      bool twice = false;
      for (const NestOperand& o : v.nest.operands) twice |= !names.insert(o.name).second;
      if (!twice) return v;
    }
    return map();
  }

 private:
  int any_size() { return int(rng_() % uint64_t(program_.sizes)); }

  // ---- tensors

  std::vector<const Tensor*> made_before() const {
    std::vector<const Tensor*> all;
    for (const Value& v : program_.values)
      for (const Tensor& t : v.outputs) all.push_back(&t);
    return all;
  }

  // A value, the latest ones and those that nothing reads first; null where there is none with that many dims.
  const Tensor* some_value(int least_dims) {
    std::vector<const Tensor*> all;
    for (const Tensor* t : made_before())
      if (int(t->dims.size()) >= least_dims) all.push_back(t);
    if (all.empty()) return nullptr;
    std::vector<const Tensor*> unread;
    for (const Tensor* t : all)
      if (!program_.read_later(size_t(program_.maker(t->name))) && !declared_.count(t->name)) unread.push_back(t);
    if (!unread.empty() && chance(rng_, 80)) return pick(rng_, unread);
    return chance(rng_, 60) ? all.back() : pick(rng_, all);
  }

  const Tensor& new_input(DType type, std::vector<int> dims, int places_in = -1) {
    program_.inputs.push_back({"x" + std::to_string(program_.inputs.size()), type, std::move(dims), places_in});
    return program_.inputs.back();
  }

  Tensor tensor_like(DType type, const std::vector<int>& dims) {
    std::vector<const Tensor*> fit;
    for (const Tensor* t : made_before())
      if (t->dtype == type && t->dims == dims) fit.push_back(t);
    if (!fit.empty() && chance(rng_, 85)) return *fit.back();
    for (const Tensor& t : program_.inputs)
      if (t.dtype == type && t.dims == dims && t.places_in < 0 && chance(rng_, 50)) return t;
    return new_input(type, dims);
  }

  Tensor index_tensor(int size, const std::vector<Letter>& by) {
    std::vector<int> dims;
    for (const Letter& l : by) dims.push_back(l.size);
    for (const Tensor& t : program_.inputs)
      if (t.places_in == size && t.dims == dims && chance(rng_, 50)) return t;
    return new_input(DType::I64, dims, size);
  }

  // ---- dims

  void name_letters(const std::vector<int>& dims) {
    out_.clear();
    for (size_t d = 0; d < dims.size(); ++d) out_.push_back({std::string(1, char('a' + d)), dims[d]});
  }

  void choose_place() {
    const Tensor* like = some_value(0);
    std::vector<int> dims;
    if (like && chance(rng_, 65)) {
      dims = like->dims;
      if (dims.empty() || (dims.size() < 2 && chance(rng_, 25))) dims.push_back(any_size());
      if (dims.size() == 2 && chance(rng_, 10)) std::swap(dims[0], dims[1]);
    } else {
      const int count = chance(rng_, 3) ? 0 : chance(rng_, 60) ? 1 : chance(rng_, 85) ? 2 : 3;
      for (int d = 0; d < count; ++d) dims.push_back(any_size());
    }
    name_letters(dims);
  }

  // ---- reads

  void leaves(Expressions& e, const std::vector<Letter>& here, int count) {
    for (int k = 0; k < count; ++k) {
      const Tensor* t = chance(rng_, k == 0 ? 95 : 45) ? some_value(0) : nullptr;
      Tensor of;
      if (t) {
        of = *t;
      } else {
        std::vector<int> dims;
        for (const Letter& l : here)
          if (chance(rng_, 70)) dims.push_back(l.size);
        if (dims.empty() && chance(rng_, 50)) dims.push_back(any_size());
        of = new_input(pick(rng_, kTypes), dims);
      }
      e.leaf(read(of, here), of.dtype);
      if (chance(rng_, 25)) e.leaf(read(of, here), of.dtype);
    }
    for (const Letter& l : here) e.index(l.name);
    if (chance(rng_, 30)) e.leaf(scalar("float32"), DType::F32);
  }

  std::string scalar(const std::string& type) {
    const std::string name = id_ + "_c" + std::to_string(scalar_count_++);
    scalars_ += name + ":" + type + " ";
    return name;
  }

  // The names of a tensor's dims: those of the result's where the sizes are one, or of its own.
  const std::vector<std::string>& declare(const Tensor& t) {
    auto [at, is_new] = declared_.emplace(t.name, std::vector<std::string>());
    if (!is_new) return at->second;
    for (int size : t.dims) {
      std::string name;
      for (const std::vector<Letter>* run : {&out_, &over_})
        for (const Letter& l : *run)
          if (l.size == size && std::ranges::find(at->second, l.name) == at->second.end() && name.empty() &&
              (over_read_ || chance(rng_, 85)))
            name = l.name;
      if (name.empty()) name = "n" + std::to_string(names_.size());
      names_[name] = size;
      at->second.push_back(name);
    }
    inputs_ += t.name;
    std::string dims;
    for (const std::string& d : at->second) dims += (dims.empty() ? "" : ",") + d;
    inputs_ += (dims.empty() ? "" : "[" + dims + "]") + ":" + traits(t.dtype).name + " ";
    return at->second;
  }

  std::string read_at(const Tensor& t, const std::vector<std::string>& indices) {
    declare(t);
    std::string text;
    for (const std::string& i : indices) text += (text.empty() ? "" : ", ") + i;
    return text.empty() ? t.name : t.name + "[" + text + "]";
  }

  // A read whose indices may all be outside, without the value that stands for those.
  std::string absent(const Tensor& t, const std::vector<Letter>& here) {
    std::vector<std::string> indices;
    declare(t);
    for (int size : t.dims) {
      const Letter& l = same_size(here, size);
      indices.push_back(l.name + pick<std::string>(rng_, {"", " - 1", " + 2", " * 2 - 3"}));
    }
    return "inside(" + read_at(t, indices) + ")";
  }

  const Letter& same_size(const std::vector<Letter>& here, int size) {
    std::vector<const Letter*> same;
    for (const Letter& l : here)
      if (l.size == size) same.push_back(&l);
    return same.empty() ? pick(rng_, here) : *pick(rng_, same);
  }

  std::string read(const Tensor& t, const std::vector<Letter>& here) {
    const std::vector<std::string> names = declare(t);
    std::vector<std::string> indices;
    bool guarded = false;
    for (size_t d = 0; d < t.dims.size(); ++d) {
      const int size = t.dims[d];
      std::vector<std::string> same;
      for (const Letter& l : here)
        if (l.size == size) same.push_back(l.name);
      // The dim's own letter, where it is run over.
      const bool own = std::ranges::find(same, names[d]) != same.end();
      const int kind = int(rng_() % 100);
      if (over_read_ || (!same.empty() && kind < 62)) {
        indices.push_back(over_read_ || (own && chance(rng_, 85)) ? names[d] : pick(rng_, same));
      } else if (!same.empty() && kind < 70) {
        indices.push_back("extent(" + names[d] + ") - 1 - " + pick(rng_, same));
      } else if (!same.empty() && kind < 74) {
        indices.push_back("(" + pick(rng_, same) + " >> 1l)");
      } else if (!here.empty() && kind < 86) {
        const Letter& by = pick(rng_, here);
        const Tensor at = index_tensor(size, {by});
        indices.push_back((chance(rng_, 60) ? "checked(" : "wrapped(") + read_at(at, {by.name}) + ")");
      } else if (!here.empty()) {
        guarded = true;
        const std::string l = same_size(here, size).name;
        switch (rng_() % 5) {
          case 0:
            indices.push_back(l + " - " + scalar("int64"));
            break;
          case 1:
            indices.push_back(l + " * 2 - 5");
            break;
          case 2:
            indices.push_back("where(" + l + " < 3, 3 - " + l + ", " + l + " - 3)");
            break;
          case 3:
            indices.push_back("2 * extent(" + names[d] + ") - 2 - " + l);
            break;
          default:
            indices.push_back(l + " + " + pick<std::string>(rng_, {"1", "7", "1000"}));
        }
      } else {
        guarded = true;
        indices.push_back(pick<std::string>(rng_, {"0", "1", "5"}));
      }
    }
    const std::string text = read_at(t, indices);
    return guarded ? "inside(" + text + ", " + (is_integral(t.dtype, true) ? "1" : "2.5") + ")" : text;
  }

  // ---- the kernel

  Value space(const std::string& text, DType type) {
    std::string dims;
    std::vector<int> sizes;
    for (const Letter& l : out_) {
      dims += (dims.empty() ? "" : ",") + l.name;
      sizes.push_back(l.size);
      names_[l.name] = l.size;
    }
    outputs_ = id_ + (dims.empty() ? "" : "[" + dims + "]") + ":" + traits(type).name;
    return made(text, type, {{id_, type, sizes}});
  }

  Value made(const std::string& text, DType type, std::vector<Tensor> outputs) {
    std::string over;
    for (const Letter& l : over_) {
      over += (over.empty() ? "" : " ") + l.name;
      names_[l.name] = l.size;
    }
    const DType kernel = is_float(traits(type).compute) ? type : chance(rng_, 50) ? DType::F32 : type;
    KernelDesc d{id_.c_str(),  "fuzz", KernelKind::Space, inputs_.c_str(), scalars_.c_str(), outputs_.c_str(),
                 text.c_str(), ~0u,    id_.c_str(),       over.c_str(),    sequence_};
    Value v;
    d.rank = form_.rank;
    v.nest = build_space(d, kernel, form_);
    v.outputs = std::move(outputs);
    for (const NestRange& r : v.nest.ranges)
      v.sizes.push_back(r.name.starts_with(Nest::kTurns) ? 0 : names_.at(r.name));
    v.says = std::string(traits(kernel).name) + " inputs: " + inputs_ + " scalars: " + scalars_ +
             " outputs: " + outputs_ + (over.empty() ? "" : " over: " + over + (sequence_ ? " sequence" : " tree"));
    v.says += "\n      ";
    for (char c : text) v.says += c == '\n' ? std::string("\n      ") : std::string(1, c);
    return v;
  }

  Program& program_;
  Random& rng_;
  const std::string id_;
  std::vector<Letter> out_, over_;
  std::map<std::string, int> names_;  // of dims: their sizes
  std::map<std::string, std::vector<std::string>> declared_;
  std::string inputs_, scalars_, outputs_;
  SpaceForm form_;
  int scalar_count_ = 0;
  bool sequence_ = false;
  bool over_read_ = false;  // a scatter: all dims of its inputs are run over
};

}  // namespace

Program make_program(uint64_t seed, int number) {
  Random rng(seed * 1000003 + uint64_t(number));
  Program p;
  p.seed = seed;
  p.number = number;
  p.sizes = 1 + int(rng() % 3);
  const size_t count = 2 + std::min(rng() % 5, rng() % 5);
  while (p.values.size() < count) {
    const Program before = p;
    try {
      Writer w(p, rng);
      const int kind = int(rng() % 100);
      const bool last = p.values.size() + 1 == count;
      Value v = last && kind < 12 ? w.scatter()
                : kind < 45       ? w.map()
                : kind < 55       ? w.moved()
                : kind < 77       ? w.reduction()
                : kind < 85       ? w.handed()
                                  : w.of_the_table();
      v.nest.name = "p" + std::to_string(number) + "_" + v.outputs[0].name;
      p.values.push_back(std::move(v));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Value) throw;  // a text that makes no sense: another one
      p = before;
    }
  }
  return window(p, 0, p.values.size());
}

}  // namespace strata::lower::fuzz
