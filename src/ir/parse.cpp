#include "ir/parse.h"

#include "ir/sizes.h"
#include "ir/verify.h"
#include "ir/words.h"

namespace strata::ir {

namespace {

constexpr int kDeepest = 64;  // blocks within blocks

class Parser : Words {
 public:
  using Words::Words;

  Graph graph(TensorList captured) {
    expect("graph");
    expect("(");
    parameters();
    const size_t own = g_.body.params.size();
    if (accept("captures")) {
      expect("(");
      parameters();
    }
    const size_t wanted = g_.body.params.size() - own;
    if (captured.size() != wanted)
      fail(str_cat("expected the tensors of ", wanted, " captures, got ", captured.size()));
    g_.captured.assign(captured.begin(), captured.end());
    expect("{");
    body(g_.body, "return");
    skip();
    if (at_ != text_.size()) fail("expected the end");
    return std::move(g_);
  }

 private:
  // ---- types
  int64_t size() {
    const int64_t n = integer();
    if (n < 0) fail("expected 0 or more");
    return n;
  }
  DType dtype() {
    const size_t at = (skip(), at_);
    const std::string_view name = word("a dtype, as f32");
    for (int t = 0; t < kDTypeCount; ++t)
      if (name == traits(DType(t)).cname) return DType(t);
    fail_at(at, str_cat("unknown type '", name, "'; expected int, float, bool, number or a dtype, as f32"));
  }
  Device device() {
    const size_t at = (skip(), at_);
    const std::string_view name = span_of([](char c) { return is_word(c) || c == ':'; }, "a device");
    try {
      return parse_device(name);
    } catch (const Error& e) {
      fail_at(at, e.message());
    }
  }
  Type type() {
    Type t;
    for (auto [name, kind] : {std::pair{"int", Type::Int}, {"float", Type::Float}, {"bool", Type::Bool}})
      if (accept(name)) {
        t.kind = kind;
        return t;
      }
    t.number = accept("number");
    t.dtype = dtype();
    if (t.number) return t;
    expect("[");
    if (!accept("]")) {
      do {
        if (accept("?") && t.sizes.size() < 64) t.varies |= uint64_t(1) << t.sizes.size();
        t.sizes.push_back(size());
      } while (accept(","));
      if (accept(";")) {
        do {
          t.strides.push_back(size());
        } while (accept(","));
        if (t.strides.size() != t.sizes.size()) fail(str_cat("expected ", t.sizes.size(), " strides"));
      }
      expect("]");
    }
    check_count(t);
    if (peek() == '@') {
      ++at_;
      t.device = device();
    }
    return t;
  }
  // Fills in contiguous strides.
  void check_count(Type& t) {
    const bool given = !t.strides.empty();
    SmallVec<int64_t, 5> strides;
    int64_t step = 1, reach = 0;
    bool fit = true;
    for (size_t d = t.sizes.size(); d-- > 0;) {
      const int64_t n = t.sizes[d].hint();
      int64_t far = 0;
      strides.push_back(step);
      if (n != 0) fit &= !__builtin_mul_overflow(step, n, &step);
      if (given && n != 0)
        fit &= !__builtin_mul_overflow(n - 1, t.strides[d].hint(), &far) && !__builtin_add_overflow(reach, far, &reach);
    }
    constexpr int64_t most = int64_t(1) << 58;  // bytes of the widest dtype
    if (!fit || step > most || reach > most) fail("expected a tensor that fits in memory");
    for (size_t d = t.sizes.size(); !given && d-- > 0;) t.strides.push_back(strides[d]);
  }

  // ---- values
  Id id() {
    expect("%");
    const size_t at = at_;
    const std::string_view digits =
        span_of([](char c) { return std::isdigit(static_cast<unsigned char>(c)); }, "a number");
    const int64_t v = number<int64_t>(digits, "a number");
    // Values are numbered as they come, and each takes some letters.
    if (v >= int64_t(text_.size())) fail_at(at, "expected a smaller number: values are counted from 0");
    return Id(v);
  }
  enum State : uint8_t { Free, Defined, Past };
  Id definition() {
    const size_t at = (skip(), at_);
    const Id v = id();
    if (size_t(v) >= g_.values.size()) {
      g_.values.resize(size_t(v) + 1);
      states_.resize(size_t(v) + 1);
    }
    if (states_[size_t(v)] != Free) fail_at(at, str_cat("%", v, " is defined twice"));
    states_[size_t(v)] = Past;  // until define()
    expect(":");
    g_.values[size_t(v)].type = type();
    fresh_.push_back(v);
    return v;
  }
  // What a node or a block defines is known after it.
  void define(const std::vector<Id>& ids) {
    for (Id v : ids)
      if (v != kNone) states_[size_t(v)] = Defined;
  }
  Id use() {
    const size_t at = (skip(), at_);
    const Id v = id();
    if (size_t(v) >= states_.size() || states_[size_t(v)] != Defined)
      fail_at(at, str_cat("%", v, " is not defined before, in this block or one around it"));
    return v;
  }
  Id use_or_none() { return accept("None") ? kNone : use(); }

  void parameters() {
    std::vector<Id>& params = g_.body.params;
    if (accept(")")) return;
    do {
      params.push_back(definition());
      skip();
      if (peek() == '\'') g_.values[size_t(params.back())].name = quoted();
    } while (accept(","));
    expect(")");
    define(params);
  }

  // ---- arguments
  Scalar scalar() {
    skip();
    if (accept("True")) return true;
    if (accept("False")) return false;
    if (accept("complex")) {
      expect("(");
      const double re = real();
      expect(",");
      const double im = real();
      expect(")");
      return std::complex<double>(re, im);
    }
    const std::string_view s = numeral("a number, True, False or complex(...)");
    if (s.find_first_not_of("0123456789-") != s.npos) return number<double>(s, "a number");
    if (s[0] == '-' || s.size() < 19) return long(number<int64_t>(s, "an integer of 64 bits"));
    return Scalar::from_u64(number<uint64_t>(s, "an integer of 64 bits"));
  }
  template <class F>
  auto list(F&& item) {
    std::vector<decltype(item())> values;
    expect("[");
    if (accept("]")) return values;
    do {
      values.push_back(item());
    } while (accept(","));
    expect("]");
    return values;
  }
  MemoryFormat memory_format() {
    for (int f = 0; f < 4; ++f)
      if (accept(print(IValue(MemoryFormat(f))))) return MemoryFormat(f);
    fail("expected contiguous_format, preserve_format, channels_last or channels_last_3d");
  }
  DType dtype_argument() {
    const size_t at = (skip(), at_);
    const std::string_view name = word("a dtype, as float32");
    if (const std::optional<DType> t = dtype_from_name(name)) return *t;
    fail_at(at, str_cat("unknown dtype '", name, "'; expected one as float32"));
  }
  IValue constant(const TypeSpec& t) {
    if (accept("None")) return {};
    if (accept("...") || accept("generator"))
      fail("expected a value: one that has no text was printed here, which its graph alone holds");
    switch (t.base) {
      case ArgType::Int:
      case ArgType::SymInt:
        return t.list ? IValue(list([&] { return integer(); })) : IValue(integer());
      case ArgType::Float:
        return t.list ? IValue(list([&] { return real(); })) : IValue(real());
      case ArgType::Bool:
        return t.list ? IValue(list([&] { return truth(); })) : IValue(truth());
      default:
        break;
    }
    if (!t.list) switch (t.base) {
        case ArgType::Scalar:
          return IValue(scalar());
        case ArgType::Str:
          return IValue(quoted());
        case ArgType::DType:
          return IValue(dtype_argument());
        case ArgType::Device:
          return IValue(device());
        case ArgType::MemoryFormat:
          return IValue(memory_format());
        default:
          break;
      }
    fail(str_cat("expected ", t.is_tensor() ? "a value, as %0," : "None", " for a ", strata::to_string(t)));
  }
  // An expression of sizes, which a list of ints or an int may be, or its text where it is more than a number.
  int64_t expression(std::string& text, std::vector<Id>& named) {
    skip();
    const size_t begin = at_;
    bool sized = false;
    const SizeOf size = [&](Id v, int64_t dim) {
      sized = true;
      if (size_t(v) >= states_.size() || states_[size_t(v)] != Defined)
        fail_at(begin, str_cat("%", v, " is not defined before, in this block or one around it"));
      const Type& type = g_.values[size_t(v)].type;
      if (type.kind != Type::Tensor || dim < 0 || size_t(dim) >= type.sizes.size())
        fail_at(begin, str_cat("%", v, " has no dim ", dim));
      named.push_back(v);
      return type.sizes[size_t(dim)].hint();
    };
    size_t used = 0;
    const int64_t v = evaluate_sizes(text_.substr(at_, text_.find('\n', at_) - at_), size, &used);
    at_ += used;
    if (sized) text = text_.substr(begin, used);
    return v;
  }
  bool sized_here() const {
    const size_t end = text_.find('\n', at_);
    return text_.substr(at_, end - at_).find(".size(") != std::string_view::npos;
  }
  Arg sized_argument(const TypeSpec& t) {
    Arg a;
    auto item = [&] {
      a.sizes.emplace_back();
      return expression(a.sizes.back(), a.values);
    };
    if (t.list)
      a.constant = IValue(list(item));
    else if (const int64_t v = item(); t.base == ArgType::Scalar)
      a.constant = IValue(Scalar(long(v)));
    else
      a.constant = IValue(v);
    if (a.values.empty()) a.sizes.clear();
    return a;
  }
  bool is_value() const {
    size_t at = at_ + 1;
    while (at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at]))) ++at;
    return peek() == '%' && text_.substr(at, 6) != ".size(";
  }
  Arg argument(const TypeSpec& t) {
    skip();
    if (is_value()) return Arg::one(use());
    const bool ints = t.base == ArgType::Int || t.base == ArgType::SymInt;
    if (ints && sized_here() && (t.list ? peek() == '[' : peek() != 'N')) return sized_argument(t);
    if (t.base == ArgType::Scalar && !t.list && (peek() == '%' || peek() == '(')) return sized_argument(t);
    if (t.is_tensor() && t.list && peek() == '[') return Arg::list(list([&] { return use_or_none(); }));
    return {Arg::Constant, constant(t), {}, {}};
  }
  // Of a loop, which has no schema.
  Arg plain_argument() {
    skip();
    if (peek() == '%') return Arg::one(use());
    const Scalar v = scalar();
    if (v.is_bool()) return {Arg::Constant, v.to_bool(), {}};
    if (v.is_integral(false) && !v.is_unsigned64()) return {Arg::Constant, v.to_int(), {}};
    if (v.is_float()) return {Arg::Constant, v.to_double(), {}};
    fail("expected a value, an integer, a float, True or False");
  }

  // ---- nodes
  void number_node(Node& n) {
    const size_t at = (skip(), at_);
    n.kind = Node::Constant;
    const Scalar v = scalar();
    const Type* t = n.results.size() == 1 && n.results[0] != kNone ? &g_.values[size_t(n.results[0])].type : nullptr;
    if (!t) fail_at(at, "expected one result of a constant");
    IValue made{v};
    if (t->kind == Type::Tensor) {
      n.constant = wrapped_number(v);
      if (!t->number || n.constant.dtype() != t->dtype || v.is_unsigned64())
        fail_at(at, str_cat("expected a constant of type ", to_string(*t)));
    } else {
      const Scalar::Kind kinds[] = {Scalar::Kind::Int, Scalar::Kind::Int, Scalar::Kind::Float, Scalar::Kind::Bool};
      if (v.kind() != kinds[t->kind] || v.is_unsigned64())
        fail_at(at, str_cat("expected a constant of type ", to_string(*t)));
      made = t->kind == Type::Int     ? IValue(v.to_int())
             : t->kind == Type::Float ? IValue(v.to_double())
                                      : IValue(v.to_bool());
    }
    n.args.push_back({Arg::Constant, made, {}});
  }
  Block block() {
    Block b;
    if (accept("(")) {
      if (!accept(")")) {
        do {
          b.params.push_back(definition());
        } while (accept(","));
        expect(")");
      }
    }
    expect("{");
    if (++depth_ > kDeepest) fail(str_cat("expected at most ", kDeepest, " blocks in one another"));
    const size_t outer = fresh_.size() - b.params.size();
    define(b.params);
    body(b, "yield");
    for (size_t i = outer; i < fresh_.size(); ++i) states_[size_t(fresh_[i])] = Past;
    fresh_.resize(outer);
    --depth_;
    return b;
  }
  void call(Node& n) {
    const size_t at = (skip(), at_);
    const std::string_view name =
        span_of([](char c) { return is_word(c) || c == ':' || c == '.'; }, "an operator, as aten::add.Tensor");
    n.op = OperatorTable::instance().find(name);
    if (!n.op) {
      std::string near;
      for (const std::string& s : OperatorTable::instance().near_names(name))
        near += (near.empty() ? "; is it " : ", ") + s;
      fail_at(at, str_cat("unknown operator '", name, "'", near));
    }
    const Schema& schema = n.op->schema();
    expect("(");
    for (size_t i = 0; i < schema.args.size(); ++i) {
      const Argument& a = schema.args[i];
      skip();
      if (peek() == ')')
        fail(str_cat("expected ", schema.args.size(), " arguments, got ", i, "; the schema is ", n.op->schema_text));
      if (i) expect(",");
      if (a.keyword_only) {
        expect(a.name);
        expect("=");
      }
      n.args.push_back(argument(a.type));
    }
    expect(")");
  }
  void node(Block& b) {
    Node n;
    while (true) {
      skip();
      if (peek() == '%')
        n.results.push_back(definition());
      else if (accept("None"))
        n.results.push_back(kNone);
      else
        break;
      if (!accept(",")) break;
    }
    if (!n.results.empty()) expect("=");
    if (accept("check")) {
      n.kind = Node::Check;
      Arg a;
      a.sizes.emplace_back();
      a.constant = IValue(expression(a.sizes.back(), a.values));
      if (a.values.empty()) fail("expected an expression of sizes");
      n.args.push_back(std::move(a));
    } else if (accept("constant")) {
      number_node(n);
    } else if (accept("if")) {
      n.kind = Node::If;
      n.args.push_back(Arg::one(use()));
      n.blocks.push_back(block());
      expect("else");
      n.blocks.push_back(block());
    } else if (accept("loop")) {
      n.kind = Node::Loop;
      do {
        n.args.push_back(plain_argument());
      } while (accept(","));
      n.blocks.push_back(block());
    } else {
      if (accept("no_grad"))
        n.gradient = Node::Off;
      else if (accept("own_grad"))
        n.gradient = Node::Own;
      else if (accept("saved"))
        n.gradient = Node::Saved;
      else if (accept("sum"))
        n.gradient = Node::Sum;
      else if (accept("total"))
        n.gradient = Node::Total;
      call(n);
    }
    define(n.results);
    while (peek() == ' ') ++at_;
    if (peek() == '#') {
      at_ += at_ + 1 < text_.size() && text_[at_ + 1] == ' ' ? 2 : 1;
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      n.span = text_.substr(at_, end - at_);
      at_ = end;
    }
    b.nodes.push_back(std::move(n));
  }
  void body(Block& b, std::string_view last) {
    while (!accept(last)) {
      skip();
      if (at_ == text_.size() || peek() == '}') fail(str_cat("expected a node or '", last, "'"));
      node(b);
    }
    skip();
    if (peek() != '}') do {
        b.results.push_back(use_or_none());
      } while (accept(","));
    expect("}");
  }

  int depth_ = 0;
  Graph g_;
  std::vector<State> states_;  // of each value
  std::vector<Id> fresh_;      // what the open blocks define
};

}  // namespace

Graph parse(std::string_view text, TensorList captured) {
  Graph g = Parser(text).graph(captured);
  verify(g);
  verify_types(g);
  return g;
}

}  // namespace strata::ir
