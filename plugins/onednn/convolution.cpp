// Convolutions: forward, gradient of the input, gradient of the weight and bias.
// Activations in channels-last order stay as they are, and a pointwise convolution over them is a matrix product (which
// spares the reordering of the weight, up to three times the work itself). Plain activations are reordered into blocks
// of channels and back: that reordering is twice as fast as the one to channels-last which oneDNN would pick. Without
// AVX-512 the forward kernels over blocks are so much faster that channels-last ones are reordered, too.
#include <algorithm>
#include <cstring>

#include "cache.h"
#include "common.h"

namespace strata::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

enum class Pass { forward, data, weights };

struct Geometry {
  const StrataConvolution& s;
  int spatial = static_cast<int>(s.spatial);

  Dims activation(int64_t channels, const int64_t* sizes) const {
    Dims dims = {s.batch, channels};
    dims.insert(dims.end(), sizes, sizes + spatial);
    return dims;
  }
  Dims input() const { return activation(s.in_channels, s.input); }
  Dims output() const { return activation(s.out_channels, s.output); }
  // oneDNN has a leading group dimension when there is more than one group.
  Dims weight() const {
    Dims dims = {s.out_channels / s.groups, s.in_channels / s.groups};
    if (s.groups > 1) dims.insert(dims.begin(), s.groups);
    dims.insert(dims.end(), s.kernel, s.kernel + spatial);
    return dims;
  }
  Dims weight_strides() const {
    Dims strides(s.weight_strides, s.weight_strides + 2 + spatial);
    if (s.groups > 1) strides.insert(strides.begin(), strides[0] * (s.out_channels / s.groups));
    return strides;
  }
  Dims list(const int64_t* values, int64_t add = 0) const {
    Dims dims(values, values + spatial);
    for (auto& d : dims) d += add;
    return dims;
  }
  bool pointwise() const {
    return std::all_of(s.kernel, s.kernel + spatial, [](int64_t n) { return n == 1; });
  }
  // What has to follow the last input element so that the division in the size rule comes out even.
  Dims trailing_padding() const {
    Dims dims;
    for (int d = 0; d < spatial; ++d) {
      int64_t reach = (s.output[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) + 1;
      dims.push_back(reach - s.input[d] - s.padding[d]);
    }
    return dims;
  }
};

// Strides of a dense tensor whose dimensions lie in the given order, outermost first.
Dims dense_strides(const Dims& sizes, const std::vector<int>& order) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= sizes[order[i]];
  }
  return strides;
}

bool same_strides(const Dims& sizes, const Dims& strides, const int64_t* given) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && strides[i] != given[i]) return false;
  }
  return true;
}

struct Order {
  Dims strides;
  bool channels_last;
};

// The dense order that the given strides describe. Where sizes of 1 leave both open, plain is as good.
Order dense_order(const char* what, const Dims& sizes, const int64_t* given, int channel_dim = 1) {
  int rank = static_cast<int>(sizes.size());
  std::vector<int> plain, last;
  for (int i = 0; i < rank; ++i) plain.push_back(i);
  for (int i = 0; i < rank; ++i) {
    if (i != channel_dim) last.push_back(i);
  }
  last.push_back(channel_dim);
  Dims strides = dense_strides(sizes, plain);
  if (same_strides(sizes, strides, given)) return {strides, false};
  strides = dense_strides(sizes, last);
  if (same_strides(sizes, strides, given)) return {strides, true};
  throw Unsupported{std::string(what) + " is neither plain nor channels-last and dense"};
}

memory::format_tag channels_last_tag(int spatial) {
  using Tag = memory::format_tag;
  return spatial == 1 ? Tag::nwc : spatial == 2 ? Tag::nhwc : Tag::ndhwc;
}

memory::format_tag plain_tag(int spatial) {
  using Tag = memory::format_tag;
  return spatial == 1 ? Tag::ncw : spatial == 2 ? Tag::nchw : Tag::ncdhw;
}

memory::format_tag blocked_tag(int spatial) {
  using Tag = memory::format_tag;
  if (wide_vectors()) return spatial == 1 ? Tag::nCw16c : spatial == 2 ? Tag::nChw16c : Tag::nCdhw16c;
  return spatial == 1 ? Tag::nCw8c : spatial == 2 ? Tag::nChw8c : Tag::nCdhw8c;
}

// Everything a plan is made from.
struct Problem {
  Geometry g;
  memory::data_type type;
  memory::desc input, weight, output, bias;        // as the caller holds them
  memory::desc any_input, any_weight, any_output;  // as oneDNN may choose
  memory::desc gradient, any_gradient;             // of the input
  bool channels_last;
  Dims stride, dilation, left, right;

  explicit Problem(const StrataConvolution& s) : g{s}, type(data_type(s.dtype)) {
    Order in = dense_order("input", g.input(), s.input_strides);
    Order out = dense_order("output", g.output(), s.output_strides);
    Dims plain_weight = {s.out_channels, s.in_channels / s.groups};
    plain_weight.insert(plain_weight.end(), s.kernel, s.kernel + g.spatial);
    Order w = dense_order("weight", plain_weight, s.weight_strides);
    Dims w_strides = w.strides;
    if (s.groups > 1) w_strides.insert(w_strides.begin(), w_strides[0] * (s.out_channels / s.groups));

    input = memory::desc(g.input(), type, in.strides);
    output = memory::desc(g.output(), type, out.strides);
    weight = memory::desc(g.weight(), type, w_strides);
    bias = memory::desc({s.out_channels}, type, memory::format_tag::a);
    channels_last = in.channels_last || out.channels_last;
    auto tag = channels_last ? channels_last_tag(g.spatial) : memory::format_tag::any;
    any_input = memory::desc(g.input(), type, tag);
    gradient = memory::desc(g.input(), output_type(s.dtype), in.strides);
    any_gradient = memory::desc(g.input(), output_type(s.dtype), tag);
    any_output = memory::desc(g.output(), type, tag);
    any_weight = memory::desc(g.weight(), type, memory::format_tag::any);
    stride = g.list(s.stride);
    dilation = g.list(s.dilation, -1);  // oneDNN counts the skipped elements
    left = g.list(s.padding);
    right = g.trailing_padding();
  }

  using Forward = dnnl::convolution_forward;

  Forward::primitive_desc forward(bool with_bias, dnnl::prop_kind kind, const memory::desc& in,
                                  const memory::desc& out) const {
    const auto direct = dnnl::algorithm::convolution_direct;
    auto operation = with_bias ? Forward::desc(kind, direct, in, any_weight, bias, out, stride, dilation, left, right)
                               : Forward::desc(kind, direct, in, any_weight, out, stride, dilation, left, right);
    return Forward::primitive_desc(operation, scratch_attr(), engine());
  }

  Forward::primitive_desc forward(bool with_bias, dnnl::prop_kind kind) const {
    return forward(with_bias, kind, any_input, any_output);
  }

  // The forward kernel over blocked activations if there is a real one, else what oneDNN prefers.
  Forward::primitive_desc blocked_forward(bool with_bias) const {
    const auto kind = dnnl::prop_kind::forward_inference;
    if (channels_last && (wide_vectors() || g.s.groups > 1 || g.pointwise())) return forward(with_bias, kind);
    // A first layer has too few channels to fill a block: its kernels read plain input.
    bool few = g.s.groups == 1 && g.s.in_channels < 8;
    auto block = blocked_tag(g.spatial);
    try {
      auto how = forward(with_bias, kind, memory::desc(g.input(), type, few ? plain_tag(g.spatial) : block),
                         memory::desc(g.output(), type, block));
      const char* name = how.impl_info_str();
      if (std::strncmp(name, "jit", 3) == 0 || std::strncmp(name, "brg", 3) == 0) return how;
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) throw;
    }
    return forward(with_bias, kind);
  }
};

template <class PrimitiveDesc>
void refuse_reference(const PrimitiveDesc& how) {
  if (std::strncmp(how.impl_info_str(), "ref", 3) == 0) throw Unsupported{"oneDNN has only its reference kernel"};
}

std::shared_ptr<const Plan> plan_forward(const StrataConvolution& s, bool with_bias) {
  Problem p(s);
  auto how = p.blocked_forward(with_bias);
  refuse_reference(how);
  auto plan = std::make_shared<Plan>();
  int input = plan->user(p.input), weight = plan->user(p.weight);
  int output = plan->user(p.output);
  int bias = with_bias ? plan->user(p.bias) : -1;
  int source = plan->reordered(input, how.src_desc());
  int filter = plan->reordered(weight, how.weights_desc());
  int target = how.dst_desc() == p.output ? output : plan->temporary(how.dst_desc());
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DST, target}};
  if (with_bias) args.emplace_back(DNNL_ARG_BIAS, bias);
  plan->step(dnnl::convolution_forward(how), std::move(args), how.scratchpad_desc());
  plan->copied(target, output);
  return plan;
}

std::shared_ptr<const Plan> plan_data(const StrataConvolution& s) {
  Problem p(s);
  dnnl::convolution_backward_data::desc operation(dnnl::algorithm::convolution_direct, p.any_gradient, p.any_weight,
                                                  p.any_output, p.stride, p.dilation, p.left, p.right);
  dnnl::convolution_backward_data::primitive_desc how(operation, scratch_attr(), engine(),
                                                      p.forward(false, dnnl::prop_kind::forward_training));
  refuse_reference(how);
  auto plan = std::make_shared<Plan>();
  int grad = plan->user(p.output), weight = plan->user(p.weight), result = plan->user(p.gradient);
  int source = plan->reordered(grad, how.diff_dst_desc());
  int filter = plan->reordered(weight, how.weights_desc());
  int target = how.diff_src_desc() == p.gradient ? result : plan->temporary(how.diff_src_desc());
  plan->step(dnnl::convolution_backward_data(how),
             {{DNNL_ARG_DIFF_DST, source}, {DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DIFF_SRC, target}},
             how.scratchpad_desc());
  plan->copied(target, result);
  return plan;
}

std::shared_ptr<const Plan> plan_weights(const StrataConvolution& s, bool with_bias) {
  Problem p(s);
  const auto direct = dnnl::algorithm::convolution_direct;
  using Desc = dnnl::convolution_backward_weights::desc;
  auto operation =
      with_bias ? Desc(direct, p.any_input, p.any_weight, p.bias, p.any_output, p.stride, p.dilation, p.left, p.right)
                : Desc(direct, p.any_input, p.any_weight, p.any_output, p.stride, p.dilation, p.left, p.right);
  dnnl::convolution_backward_weights::primitive_desc how(operation, scratch_attr(), engine(),
                                                         p.forward(with_bias, dnnl::prop_kind::forward_training));
  refuse_reference(how);
  auto plan = std::make_shared<Plan>();
  int input = plan->user(p.input), grad = plan->user(p.output), result = plan->user(p.weight);
  int bias = with_bias ? plan->user(p.bias) : -1;
  int source = plan->reordered(input, how.src_desc());
  int incoming = plan->reordered(grad, how.diff_dst_desc());
  int target = how.diff_weights_desc() == p.weight ? result : plan->temporary(how.diff_weights_desc());
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, incoming}, {DNNL_ARG_DIFF_WEIGHTS, target}};
  if (with_bias) args.emplace_back(DNNL_ARG_DIFF_BIAS, bias);
  plan->step(dnnl::convolution_backward_weights(how), std::move(args), how.scratchpad_desc());
  plan->copied(target, result);
  return plan;
}

Key key_of(const StrataConvolution& s, Pass pass, bool with_bias) {
  int64_t head = 1 << 16 | s.dtype | static_cast<int>(pass) << 4 | with_bias << 8 | s.spatial << 10;
  Key key;
  key.add(head | int64_t{worker_count()} << 32);
  for (int64_t word : {s.batch, s.groups, s.in_channels, s.out_channels}) key.add(word);
  int n = static_cast<int>(s.spatial);
  for (const int64_t* list : {s.input, s.output, s.kernel, s.stride, s.padding, s.dilation}) key.add(list, n);
  for (const int64_t* list : {s.input_strides, s.output_strides, s.weight_strides}) key.add(list, n + 2);
  return key;
}

// The reason why the geometry is not one, or null.
const char* wrong(const StrataConvolution& s) {
  if (s.spatial < 1 || s.spatial > 3) return "spatial is not 1, 2 or 3";
  if (s.batch < 0 || s.groups < 1 || s.in_channels < 1 || s.out_channels < 1) return "a size is not positive";
  if (s.in_channels % s.groups || s.out_channels % s.groups) return "channels are not divisible by groups";
  for (int d = 0; d < s.spatial; ++d) {
    if (s.input[d] < 1 || s.output[d] < 1 || s.kernel[d] < 1) return "a spatial size is not positive";
    if (s.stride[d] < 1 || s.dilation[d] < 1 || s.padding[d] < 0) return "stride, dilation or padding out of range";
    int64_t span = s.input[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    if (span < 0 || span / s.stride[d] + 1 != s.output[d]) return "output size does not follow from the input size";
  }
  return nullptr;
}

// A pointwise convolution over channels-last activations: rows are positions, columns are channels.
bool is_matrix_product(const StrataConvolution& s) {
  if (s.groups != 1) return false;
  int64_t positions = s.batch;
  for (int d = 0; d < s.spatial; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0) return false;
    positions *= s.input[d];
  }
  auto rows_of_channels = [&](const int64_t* strides, int64_t channels) {
    int64_t step = channels;
    for (int d = static_cast<int>(s.spatial) - 1; d >= 0; --d) {
      if (s.input[d] != 1 && strides[d + 2] != step) return false;
      step *= s.input[d];
    }
    return (strides[1] == 1 || channels == 1) && (s.batch == 1 || strides[0] == step);
  };
  return positions > 0 && rows_of_channels(s.input_strides, s.in_channels) &&
         rows_of_channels(s.output_strides, s.out_channels) && (s.in_channels == 1 || s.weight_strides[1] == 1) &&
         (s.out_channels == 1 || s.weight_strides[0] == s.in_channels);
}

StrataMatmul matrix_product(const StrataConvolution& s) {
  StrataMatmul p{};
  p.size = sizeof p;
  p.dtype = s.dtype;
  p.batch = 1;
  p.alpha = 1.0f;
  p.m = s.batch;
  for (int d = 0; d < s.spatial; ++d) p.m *= s.input[d];
  return p;
}

using Pointers = std::array<void*, 4>;

int run_matrix_product(const StrataConvolution& s, Pass pass, const Pointers& pointers) {
  StrataMatmul p = matrix_product(s);
  int64_t in = s.in_channels, out = s.out_channels;
  p.a = pointers[0], p.b = pointers[1], p.c = pointers[2];
  switch (pass) {
    case Pass::forward:  // input @ weight^T
      p.n = out, p.k = in;
      p.a_row = in, p.a_col = 1, p.b_row = 1, p.b_col = in, p.c_row = out;
      p.bias = pointers[3];
      break;
    case Pass::data:  // grad_output @ weight
      p.n = in, p.k = out;
      p.a_row = out, p.a_col = 1, p.b_row = in, p.b_col = 1, p.c_row = in;
      break;
    case Pass::weights:  // grad_output^T @ input
      p.a = pointers[1], p.b = pointers[0];
      p.k = p.m, p.m = out, p.n = in;
      p.a_row = 1, p.a_col = out, p.b_row = in, p.b_col = 1, p.c_row = in;
      break;
  }
  return product(p);
}

template <class Make>
int run(const char* where, const StrataConvolution* shape, Pass pass, bool with_bias, Pointers pointers,
        Make make) noexcept {
  return guarded(where, [&] {
    if (!shape || shape->size < sizeof(StrataConvolution)) throw Invalid{"the shape struct is null or too small"};
    if (!known_type(shape->dtype) && (pass != Pass::data || shape->dtype != STRATA_LIBRARY_BF16_F32)) {
      throw Unsupported{"dtype is neither float32 nor bfloat16"};
    }
    if (const char* reason = wrong(*shape)) throw Invalid{reason};
    if (shape->batch == 0) throw Unsupported{"an empty batch"};
    for (int i = 0; i < 3 + with_bias; ++i) {
      if (!pointers[i]) throw Invalid{"a pointer is null"};
    }
    if (is_matrix_product(*shape) && !(pass == Pass::weights && with_bias)) {
      return run_matrix_product(*shape, pass, pointers);
    }
    auto plan = PlanCache::instance().get(key_of(*shape, pass, with_bias), make);
    return plan->run(pointers.data());
  });
}

void* writable(const void* pointer) { return const_cast<void*>(pointer); }

}  // namespace

int conv_forward(const StrataConvolution* shape, const void* input, const void* weight, const void* bias,
                 void* output) {
  bool with_bias = bias != nullptr;
  return run("conv_forward", shape, Pass::forward, with_bias,
             {writable(input), writable(weight), output, writable(bias)},
             [=] { return plan_forward(*shape, with_bias); });
}

int conv_backward_data(const StrataConvolution* shape, const void* grad_output, const void* weight, void* grad_input) {
  return run("conv_backward_data", shape, Pass::data, false,
             {writable(grad_output), writable(weight), grad_input, nullptr}, [=] { return plan_data(*shape); });
}

int conv_backward_weights(const StrataConvolution* shape, const void* input, const void* grad_output, void* grad_weight,
                          void* grad_bias) {
  bool with_bias = grad_bias != nullptr;
  return run("conv_backward_weights", shape, Pass::weights, with_bias,
             {writable(input), writable(grad_output), grad_weight, grad_bias},
             [=] { return plan_weights(*shape, with_bias); });
}

}  // namespace strata::onednn
