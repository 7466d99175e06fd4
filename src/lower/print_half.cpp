// Conversions of half floats, one value at a time, from the same graphs that kernels inline.
#include "lower/print_c.h"

namespace strata::lower {

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

std::string half_file() {
  std::string text = "// Conversions of half floats. Printed by lower/, do not edit.\n" + prelude({});
  for (const char* name : {"f16_to_f32", "f32_to_f16", "bf16_to_f32", "f32_to_bf16"}) {
    const bool widen = std::string(name).ends_with("_to_f32");
    text += half_function(name) + (widen ? "f32" : "u16") + " strata_" + name + "(" + (widen ? "u16" : "f32") +
            " x) { return " + name + "(x); }\n\n";
  }
  return text;
}

}  // namespace strata::lower
