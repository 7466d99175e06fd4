// What C++ needs of the kernels' text as C functions of one value, from the same graphs that kernels inline:
// conversions of half floats, and mathematics. See Note [No libm].
#include "lower/expr/build.h"
#include "lower/print/print_c.h"

namespace strata::lower {
namespace {

struct HostFunction {
  const char* name;
  DType type;
  const char* inputs = "x";
  const char* output = "result";
};

// src/core/math.h declares them for C++.
constexpr HostFunction host_functions[] = {
    {"exp", DType::F64},
    {"log", DType::F64},
    {"log1p", DType::F64},
    {"pow", DType::F64, "x y"},
    {"sin", DType::F64},
    {"cos", DType::F64},
    {"acos", DType::F64},
    {"log", DType::F32},
    {"log", DType::C128},
    {"abs", DType::C64, "x", "result:real"},
    {"abs", DType::C128, "x", "result:real"},
};

// strata_<name>_<type>: numbers by value; a complex operand and a complex result by pointer, real part first.
std::string host_function(const HostFunction& f, Needs& needs) {
  const std::string name = std::string(f.name) + "_" + traits(f.type).cname,
                    text = std::string(f.name) + "(" + (f.inputs[1] ? "x, y" : "x") + ")";
  const Kernel k =
      build_kernel({name.c_str(), "host", KernelKind::Pointwise, f.inputs, "", f.output, text.c_str(), 0, ""}, f.type);
  const Pass& pass = k.passes[0];
  BodyPrinter body(k, pass, false, needs);
  const std::string element = traits(traits(f.type).component).cname;
  const bool pairs = is_complex(k.outputs[0].storage);
  std::string parameters, before, after;
  for (const Operand& o : k.inputs) {
    if (!parameters.empty()) parameters += ", ";
    if (is_complex(o.storage)) {
      parameters += "const " + element + "* p_" + o.name;
    } else {
      parameters += element + " of_" + o.name;
      before += "  const char* p_" + o.name + " = (const char*)&of_" + o.name + ";\n";
    }
  }
  before += "  const int l = 0;\n" + body.uniform_part() + body.element_part(2);
  for (const Store& s : pass.stores) {
    const std::string value = body.ref(s.value, false) + ";\n";
    after += pairs ? "  to_result[" + std::to_string(s.part) + "] = " + value : "  return " + value;
  }
  if (pairs) parameters += ", " + element + "* to_result";
  return (pairs ? "void" : element) + " strata_" + name + "(" + parameters + ") {\n" + before + after + "}\n\n";
}

// strata_philox(seed, counter, out): the four words of a counter; strata_philox_run: of `count` counters from there on,
// and the same for AVX2.
std::string philox_functions(Needs& needs) {
  const Kernel k = build_kernel({"philox", "host", KernelKind::Pointwise, "seed:uint64 counter:uint64", "",
                                 "w0:uint32 w1:uint32 w2:uint32 w3:uint32",
                                 "w0 = philox_word(seed, counter, 0)\nw1 = philox_word(seed, counter, 1)\n"
                                 "w2 = philox_word(seed, counter, 2)\nw3 = philox_word(seed, counter, 3)",
                                 0, ""},
                                DType::I64);
  BodyPrinter body(k, k.passes[0], false, needs);
  std::string text =
      "INLINE void philox(u64 of_seed, u64 of_counter, u32* out) {\n"
      "  const char *p_seed = (const char*)&of_seed, *p_counter = (const char*)&of_counter;\n  const int l = 0;\n" +
      body.uniform_part() + body.element_part(2);
  for (const Store& s : k.passes[0].stores)
    text += "  out[" + std::to_string(s.operand) + "] = " + body.ref(s.value, false) + ";\n";
  text +=
      "}\nvoid strata_philox(u64 seed, u64 counter, u32* out) { philox(seed, counter, out); }\n"
      "INLINE void philox_run(u64 seed, u64 counter, i64 count, u32* restrict out) {\n"
      "#ifdef __clang__\n#pragma clang loop vectorize(assume_safety) interleave(disable)\n#endif\n"
      "  for (i64 i = 0; i < count; i++) philox(seed, counter + (u64)i, out + 4 * i);\n}\n";
  for (const char* set : {"", "_v3"})
    text += std::string(*set ? "__attribute__((target(\"avx2\"))) " : "") + "void strata_philox_run" + set +
            "(u64 seed, u64 counter, i64 count, u32* out) { philox_run(seed, counter, count, out); }\n";
  return text + "\n";
}

}  // namespace

std::string half_function(const std::string& name) {
  const bool widen = name.ends_with("_to_f32");
  const DType half = name.find("bf16") != std::string::npos ? DType::BF16 : DType::F16;
  const DType from = widen ? half : DType::F32, to = widen ? DType::F32 : half;
  Kernel k;
  k.name = name;
  k.inputs = {{"x", from}};
  k.outputs = {{"result", to}};
  Graph g;
  int v = g.add({Op::Load, storage_node_type(from)});
  if (half == DType::BF16)
    v = widen ? from_storage(g, v, half) : to_storage(g, v, half);
  else
    v = widen ? widen_half(g, v) : narrow_half(g, v);
  split_passes(g, {{v, -1}}, k);
  Needs needs;
  BodyPrinter body(k, k.passes[0], false, needs);
  auto type = [](DType t) { return std::string(traits(storage_node_type(t)).cname); };
  std::string text = body.element_part(2);
  return "static inline " + type(to) + " " + name + "(" + type(from) +
         " of) {\n  const char* p_x = (const char*)&of;\n" + "  const int l = 0;\n" + text + "  return " +
         body.ref(k.passes[0].stores[0].value, false) + ";\n}\n";
}

std::string host_file() {
  std::string text;
  for (const char* name : {"f16_to_f32", "f32_to_f16", "bf16_to_f32", "f32_to_bf16"}) {
    const bool widen = std::string(name).ends_with("_to_f32");
    text += half_function(name) + (widen ? "f32" : "u16") + " strata_" + name + "(" + (widen ? "u16" : "f32") +
            " x) { return " + name + "(x); }\n\n";
  }
  Needs needs;
  for (const HostFunction& f : host_functions) text += host_function(f, needs);
  text += philox_functions(needs);
  return "// What C++ needs of the kernels' text. Printed by lower/, do not edit.\n" + prelude(needs) + text;
}

}  // namespace strata::lower
