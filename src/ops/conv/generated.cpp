// Images are gathered in lines (conv_lines.h). A panel of positions has a line per k; a panel of (channel, tap) pairs
// has a line per row or column.
#include "ops/conv/generated.h"

#include <vector>

#include "ops/conv/lines.h"

namespace strata::eager {
namespace {

thread_local ConvLines lines;

// The geometry with three spatial dimensions, absent ones leading with size 1.
struct Space {
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t in_step[3], out_step[3], weight_step[3];  // strides
  int64_t taps = 1, in_size = 1, out_size = 1;

  explicit Space(const StrataConvolution& s) {
    int lead = 3 - static_cast<int>(s.spatial);
    for (int d = 0; d < 3; ++d) {
      int from = d - lead;
      bool real = from >= 0;
      input[d] = real ? s.input[from] : 1;
      output[d] = real ? s.output[from] : 1;
      kernel[d] = real ? s.kernel[from] : 1;
      stride[d] = real ? s.stride[from] : 1;
      padding[d] = real ? s.padding[from] : 0;
      dilation[d] = real ? s.dilation[from] : 1;
      in_step[d] = real ? s.input_strides[from + 2] : 0;
      out_step[d] = real ? s.output_strides[from + 2] : 0;
      weight_step[d] = real ? s.weight_strides[from + 2] : 0;
      taps *= kernel[d];
      in_size *= input[d];
      out_size *= output[d];
    }
  }
};

int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

struct Side {
  const GemmKernel* kernel;
  bool b;  // packs for b, else for a

  int64_t panel_size(int64_t count) const {
    return b ? (count + kernel->lanes - 1) / kernel->lanes * kernel->lanes : power_of_two(count);
  }
  void pack(int64_t kc, int64_t count, const void* from, int64_t count_step, int64_t k_step, char* to) const {
    (b ? kernel->pack_b : kernel->pack_a)(kc, count, from, count_step, k_step, to);
  }
};

// Panel entries are positions, k is (channel, tap).
struct PositionSource : PanelSource {
  Side side;
  const Walk* walk;

  static void gather(const PanelSource& self, int64_t segment, int64_t first, int64_t count, int64_t k0, int64_t kc,
                     void* to) {
    const auto& s = static_cast<const PositionSource&>(self);
    const Walk& walk = *s.walk;
    lines.prepare(walk, segment * walk.positions + first, count);
    if (s.side.kernel->plain) return lines.write_all(k0, kc, s.side.panel_size(count), static_cast<char*>(to));
    char* gathered = gather_buffer(kc * count * walk.bytes);
    lines.write_all(k0, kc, count, gathered);
    s.side.pack(kc, count, gathered, 1, count, static_cast<char*>(to));
  }
};

// Panel entries are (channel, tap) pairs in the order that `pair` gives, k is a position of the whole batch.
struct PairSource : PanelSource {
  Side side;
  const Walk* walk;
  bool channels_fastest;  // entries run over channels within a tap, else over taps within a channel
  int64_t channels;

  static void gather(const PanelSource& self, int64_t, int64_t first, int64_t count, int64_t k0, int64_t kc, void* to) {
    const auto& s = static_cast<const PairSource&>(self);
    const Walk& walk = *s.walk;
    const int64_t taps = walk.taps();
    char* gathered = gather_buffer(count * kc * walk.bytes);
    lines.prepare(walk, k0, kc);
    for (int64_t j = 0; j < count; ++j) {
      int64_t entry = first + j;
      int64_t channel = s.channels_fastest ? entry % s.channels : entry / taps;
      int64_t tap = s.channels_fastest ? entry / s.channels : entry % taps;
      lines.write(channel, tap, gathered + j * kc * walk.bytes);
    }
    s.side.pack(kc, count, gathered, kc, 1, static_cast<char*>(to));
  }
};

// The weight: entries are channels of one of its sides, k is (channel of the other side, tap).
struct WeightSource : PanelSource {
  Side side;
  const char* data;
  int64_t bytes, entry_step;
  const int64_t* k_offset;  // elements, for each k
  bool even;                // k_offset[k] == k

  static void gather(const PanelSource& self, int64_t, int64_t first, int64_t count, int64_t k0, int64_t kc, void* to) {
    const auto& s = static_cast<const WeightSource&>(self);
    const char* from = s.data + first * s.entry_step * s.bytes;
    char* out = static_cast<char*>(to);
    if (s.even) return s.side.pack(kc, count, from + k0 * s.bytes, s.entry_step, 1, out);
    const int64_t size = s.side.panel_size(count) * s.side.kernel->compute_bytes;
    const int64_t* offset = s.k_offset + k0;
    for (int64_t k = 0, end; k < kc; k = end) {  // runs of neighbours
      for (end = k + 1; end < kc && offset[end] == offset[end - 1] + 1;) ++end;
      s.side.pack(end - k, count, from + offset[k] * s.bytes, s.entry_step, 1, out + k * size);
    }
  }
};

// A row or column of equal or given elements, for the chain that adds a bias: entry i is data[i * step].
struct ListSource : PanelSource {
  Side side;
  const char* data;
  int64_t bytes, step;

  static void gather(const PanelSource& self, int64_t, int64_t first, int64_t count, int64_t, int64_t, void* to) {
    const auto& s = static_cast<const ListSource&>(self);
    s.side.pack(1, count, s.data + first * s.step * s.bytes, s.step, 0, static_cast<char*>(to));
  }
};

// From one position of a grid to the next.
int64_t position_step(const int64_t* size, const int64_t* step, int64_t batch_step) {
  return size[2] != 1 ? step[2] : size[1] != 1 ? step[1] : size[0] != 1 ? step[0] : batch_step;
}

// How a written image is laid out.
enum class Form { plain, channels_last, neither };

// Complex products have an order (ar * bi, then ai * br): the weight stays on their left, whatever the layout.
bool ordered(const GemmKernel& kernel) { return !kernel.plain && kernel.compute_bytes == kernel.element_bytes; }

Form form_of(bool ordered, int64_t batch, int64_t channels, const int64_t* size, const int64_t* step,
             int64_t batch_step, int64_t channel_step) {
  auto dense = [&](int64_t unit) {
    int64_t expected = unit;
    for (int d = 2; d >= 0; --d) {
      if (size[d] != 1 && step[d] != expected) return false;
      expected *= size[d];
    }
    return true;
  };
  // One row of c per position of the batch: positions have to follow each other evenly.
  int64_t positions = size[0] * size[1] * size[2], unit = position_step(size, step, batch_step);
  bool even = dense(unit) && (batch == 1 || batch_step == unit * positions);
  bool last = even && (channel_step == 1 || channels == 1);
  if (dense(1) && (ordered || positions > 1 || !last)) return Form::plain;
  return last && !ordered ? Form::channels_last : Form::neither;
}

// A gradient or a result over a grid: out[entry][position] = sum over k of weight[entry][k] * walked[k][position].
struct GridProduct {
  const GemmKernel& kernel;
  Walk walk{};
  int64_t batch = 0, entries = 0, inner = 0;  // channels written and summed over, in a group
  const char* weight = nullptr;
  int64_t weight_entry = 0, weight_inner = 0, weight_group = 0;  // strides
  const char* bias = nullptr;
  char* out = nullptr;
  int64_t out_batch = 0, out_channel = 0, out_position = 0, out_group = 0, image_group = 0;
  Form form = Form::neither;
  std::vector<int64_t> k_offset;
  bool even = true;

  explicit GridProduct(const GemmKernel& with) : kernel(with) {}

  void prepare(const Space& space) {
    k_offset.resize(inner * space.taps);
    for (int64_t k = 0; k < static_cast<int64_t>(k_offset.size()); ++k) {
      int64_t tap = k % space.taps, t2 = tap % space.kernel[2], t1 = tap / space.kernel[2] % space.kernel[1];
      int64_t t0 = tap / (space.kernel[2] * space.kernel[1]);
      k_offset[k] = k / space.taps * weight_inner + t0 * space.weight_step[0] + t1 * space.weight_step[1] +
                    t2 * space.weight_step[2];
      even = even && k_offset[k] == k;
    }
  }

  void run(int64_t group, const GemmThreads& threads) const {
    const int64_t bytes = kernel.element_bytes;
    const bool rows_are_channels = form == Form::plain;
    Walk own = walk;
    own.image += group * image_group * bytes;
    PositionSource positions;
    positions.pack = PositionSource::gather;
    positions.side = {&kernel, rows_are_channels};
    positions.walk = &own;
    WeightSource weights;
    weights.pack = WeightSource::gather;
    weights.side = {&kernel, !rows_are_channels};
    weights.data = weight + group * weight_group * bytes;
    weights.bytes = bytes, weights.entry_step = weight_entry;
    weights.k_offset = k_offset.data(), weights.even = even;
    ListSource ones, biases;
    ones.pack = biases.pack = ListSource::gather;
    ones.side = positions.side, biases.side = weights.side;
    ones.data = static_cast<const char*>(kernel.one), ones.bytes = bytes, ones.step = 0;
    biases.data = bias ? bias + group * entries * bytes : nullptr, biases.bytes = bytes, biases.step = 1;

    PanelProduct p{};
    p.k = static_cast<int64_t>(k_offset.size());
    p.c = out + group * out_group * bytes;
    if (rows_are_channels) {
      p.m = entries, p.segments = batch, p.columns = walk.positions;
      p.a = &weights, p.b = &positions;
      p.c_row = out_channel, p.c_segment = out_batch;
      if (bias) p.last_a = &biases, p.last_b = &ones;
    } else {
      p.m = batch * walk.positions, p.segments = 1, p.columns = entries;
      p.a = &positions, p.b = &weights;
      p.c_row = out_position, p.c_segment = 0;
      if (bias) p.last_a = &ones, p.last_b = &biases;
    }
    panel_product(kernel, p, threads);
  }
};

// Many groups: each on one thread. Few: all threads on one after the other.
template <class Run>
void over_groups(int64_t groups, const GemmThreads& threads, const Run& run) {
  if (groups < 2 * threads.count || threads.count == 1 || !threads.parallel_for) {
    for (int64_t g = 0; g < groups; ++g) run(g, threads);
    return;
  }
  auto body = [](void* ctx, int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) (*static_cast<const Run*>(ctx))(g, GemmThreads{});
  };
  threads.parallel_for(0, groups, 1, body, const_cast<Run*>(&run));
}

Walk make_walk(const Space& space, bool inverse, const void* image, const StrataConvolution& s, int64_t bytes) {
  Walk w{};
  w.inverse = inverse;
  w.image = static_cast<const char*>(image);
  w.bytes = bytes;
  for (int d = 0; d < 3; ++d) {
    w.size[d] = inverse ? space.input[d] : space.output[d];
    w.extent[d] = inverse ? space.output[d] : space.input[d];
    w.step[d] = inverse ? space.out_step[d] : space.in_step[d];
    w.kernel[d] = space.kernel[d], w.stride[d] = space.stride[d];
    w.padding[d] = space.padding[d], w.dilation[d] = space.dilation[d];
  }
  w.positions = inverse ? space.in_size : space.out_size;
  const int64_t* strides = inverse ? s.output_strides : s.input_strides;
  w.batch_step = strides[0], w.channel_step = strides[1];
  return w;
}

}  // namespace

bool conv_forward_generated(const GemmKernel& kernel, const StrataConvolution& s, const void* input, const void* weight,
                            const void* bias, void* output, const GemmThreads& threads) {
  Space space(s);
  const int64_t out_group = s.out_channels / s.groups, in_group = s.in_channels / s.groups;
  const int64_t* y = s.output_strides;
  GridProduct p(kernel);
  p.walk = make_walk(space, false, input, s, kernel.element_bytes);
  p.batch = s.batch, p.entries = out_group, p.inner = in_group;
  p.form = form_of(ordered(kernel), s.batch, s.out_channels, space.output, space.out_step, y[0], y[1]);
  if (p.form == Form::neither) return false;
  p.weight = static_cast<const char*>(weight);
  p.weight_entry = s.weight_strides[0], p.weight_inner = s.weight_strides[1];
  p.weight_group = out_group * s.weight_strides[0];
  p.bias = static_cast<const char*>(bias);
  p.out = static_cast<char*>(output);
  p.out_batch = y[0], p.out_channel = y[1], p.out_position = position_step(space.output, space.out_step, y[0]);
  p.out_group = out_group * y[1], p.image_group = in_group * s.input_strides[1];
  p.prepare(space);
  over_groups(s.groups, threads, [&](int64_t g, const GemmThreads& team) { p.run(g, team); });
  return true;
}

bool conv_backward_data_generated(const GemmKernel& kernel, const StrataConvolution& s, const void* grad_output,
                                  const void* weight, void* grad_input, const GemmThreads& threads) {
  Space space(s);
  const int64_t out_group = s.out_channels / s.groups, in_group = s.in_channels / s.groups;
  const int64_t* x = s.input_strides;
  GridProduct p(kernel);
  p.walk = make_walk(space, true, grad_output, s, kernel.element_bytes);
  p.batch = s.batch, p.entries = in_group, p.inner = out_group;
  p.form = form_of(ordered(kernel), s.batch, s.in_channels, space.input, space.in_step, x[0], x[1]);
  if (p.form == Form::neither) return false;
  p.weight = static_cast<const char*>(weight);
  p.weight_entry = s.weight_strides[1], p.weight_inner = s.weight_strides[0];
  p.weight_group = out_group * s.weight_strides[0];
  p.out = static_cast<char*>(grad_input);
  p.out_batch = x[0], p.out_channel = x[1], p.out_position = position_step(space.input, space.in_step, x[0]);
  p.out_group = in_group * x[1], p.image_group = out_group * s.output_strides[1];
  p.prepare(space);
  over_groups(s.groups, threads, [&](int64_t g, const GemmThreads& team) { p.run(g, team); });
  return true;
}

bool conv_backward_weights_generated(const GemmKernel& kernel, const StrataConvolution& s, const void* input,
                                     const void* grad_output, void* grad_weight, const GemmThreads& threads) {
  Space space(s);
  const int64_t out_group = s.out_channels / s.groups, in_group = s.in_channels / s.groups;
  const int64_t* w = s.weight_strides;
  Form form = form_of(false, 1, in_group, space.kernel, space.weight_step, in_group, w[1]);
  // Columns are (channel, tap) pairs and have to lie densely in one order or the other.
  if (form == Form::plain && in_group != 1 && w[1] != space.taps) form = Form::neither;
  if (form == Form::channels_last && space.taps != 1 &&
      position_step(space.kernel, space.weight_step, in_group) != in_group) {
    form = Form::neither;
  }
  if (form == Form::neither) return false;
  const int64_t bytes = kernel.element_bytes;
  over_groups(s.groups, threads, [&](int64_t g, const GemmThreads& team) {
    Walk images = make_walk(space, false, input, s, bytes);
    images.image += g * in_group * s.input_strides[1] * bytes;
    // The incoming gradient is walked by its own positions: one tap, stride one.
    Walk grads = images;
    grads.image = static_cast<const char*>(grad_output) + g * out_group * s.output_strides[1] * bytes;
    grads.batch_step = s.output_strides[0], grads.channel_step = s.output_strides[1];
    for (int d = 0; d < 3; ++d) {
      grads.extent[d] = space.output[d], grads.step[d] = space.out_step[d];
      grads.kernel[d] = grads.stride[d] = grads.dilation[d] = 1, grads.padding[d] = 0;
    }
    PairSource rows, columns;
    rows.pack = columns.pack = PairSource::gather;
    rows.side = {&kernel, false}, columns.side = {&kernel, true};
    rows.walk = &grads, columns.walk = &images;
    rows.channels_fastest = false, rows.channels = out_group;
    columns.channels_fastest = form == Form::channels_last, columns.channels = in_group;
    PanelProduct p{};
    p.m = out_group, p.segments = 1, p.columns = in_group * space.taps;
    p.k = s.batch * space.out_size;
    p.a = &rows, p.b = &columns;
    p.c = static_cast<char*>(grad_weight) + g * out_group * w[0] * bytes;
    p.c_row = w[0];
    panel_product(kernel, p, team);
  });
  return true;
}

}  // namespace strata::eager
