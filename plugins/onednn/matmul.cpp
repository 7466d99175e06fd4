// Matrix products. float32 and bfloat16 go to oneDNN's matmul primitive (any leading dimension; what lies badly is
// copied first, see `meets`); a float32 product with a single row or column goes to its sgemm, which streams the matrix
// once instead of packing it (measured 2 to 5 times faster there).
#include <omp.h>

#include <cstring>

#include "cache.h"
#include "common.h"

namespace strata::onednn {
namespace {

using dnnl::memory;

// How one operand lies in memory, after what does not matter has been brought to one form.
struct Layout {
  int64_t row, col, batch;
};

// A stride over a dimension of size 1 says nothing: give it the value that makes the other order natural, so that
// equal problems share a plan. Returns false if no unit stride is left.
bool normalise(Layout& l, int64_t rows, int64_t cols, int64_t batch) {
  if (rows == 1 && cols == 1) {
    l.row = l.col = 1;
  } else if (rows == 1) {
    if (l.col == 1)
      l.row = cols;
    else
      l.row = 1;
  } else if (cols == 1) {
    if (l.row == 1)
      l.col = rows;
    else
      l.col = 1;
  }
  if (batch == 1) l.batch = 0;
  if (l.col == 1) return rows == 1 || l.row >= cols;
  return l.row == 1 && (cols == 1 || l.col >= rows);
}

size_t bytes(int32_t dtype) { return dtype == STRATA_LIBRARY_BF16 ? 2 : 4; }  // of an element of c

void fill_empty(const StrataMatmul& p) {
  size_t width = bytes(p.dtype);
  for (int64_t i = 0; i < p.batch; ++i) {
    for (int64_t r = 0; r < p.m; ++r) {
      char* row = static_cast<char*>(p.c) + (i * p.c_batch + r * p.c_row) * width;
      if (p.bias)
        std::memcpy(row, p.bias, p.n * width);
      else
        std::memset(row, 0, p.n * width);
    }
  }
}

int vector_product(const StrataMatmul& p, const Layout& a, const Layout& b) {
  char ta = a.col == 1 ? 'N' : 'T', tb = b.col == 1 ? 'N' : 'T';
  int64_t lda = a.col == 1 ? a.row : a.col, ldb = b.col == 1 ? b.row : b.col;
  lda = std::max(lda, ta == 'N' ? p.k : p.m);
  ldb = std::max(ldb, tb == 'N' ? p.n : p.k);
  auto* c = static_cast<float*>(p.c);
  dnnl::error::wrap_c_api(
      dnnl_sgemm(ta, tb, p.m, p.n, p.k, p.alpha, static_cast<const float*>(p.a), lda, static_cast<const float*>(p.b),
                 ldb, p.accumulate ? 1.0f : 0.0f, c, std::max(p.c_row, p.n)),
      "sgemm failed");
  if (const auto* bias = static_cast<const float*>(p.bias)) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) c[i * p.c_row + j] += bias[j];
    }
  }
  return STRATA_LIBRARY_OK;
}

// Of AVX2, oneDNN 2.6 packs only a part of the operands. Lines of the others that lie a multiple of 2 KiB apart (of `b`
// 512 bytes) meet in few sets of the cache, and the product takes up to three times as long; a copy whose lines lie
// otherwise takes less where it is read often enough. 256 x 256 x 1024: 35 -> 70 GFLOP/s a thread, 4096 x 256 x 256
// with `a` transposed 34 -> 61.
bool meets(int64_t step, int64_t multiple, int64_t length, int64_t lines, int64_t reads) {
  constexpr int64_t kOften = 32, kLargest = 4 << 20;
  return !wide_vectors() && step % multiple == 0 && reads >= kOften && lines > 1 && lines * length <= kLargest;
}
int64_t spread(int64_t length) { return ((length + 15) / 16 | 1) * 16; }

std::shared_ptr<const Plan> make_plan(const StrataMatmul& p, const Layout& a, const Layout& b) {
  auto type = data_type(p.dtype);
  bool batched = p.batch > 1;
  auto desc = [&](memory::data_type type, int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t batch,
                  bool repeated) {
    if (!batched) return memory::desc({rows, cols}, type, memory::dims{row, col});
    // oneDNN broadcasts a batch of size 1; its stride only has to be consistent.
    return repeated ? memory::desc({1, rows, cols}, type, memory::dims{std::max(rows * row, cols * col), row, col})
                    : memory::desc({p.batch, rows, cols}, type, memory::dims{batch, row, col});
  };
  auto a_desc = desc(type, p.m, p.k, a.row, a.col, a.batch, a.batch == 0);
  auto b_desc = desc(type, p.k, p.n, b.row, b.col, b.batch, b.batch == 0);
  const memory::desc a_given = a_desc, b_given = b_desc;
  if (!batched && a.row == 1 && meets(a.col, 512, p.m, p.k, p.n))
    a_desc = memory::desc({p.m, p.k}, type, memory::dims{1, spread(p.m)});
  if (!batched && b.col == 1 && meets(b.row, 128, p.n, p.k, p.m))
    b_desc = memory::desc({p.k, p.n}, type, memory::dims{spread(p.n), 1});
  auto c_desc = desc(output_type(p.dtype), p.m, p.n, p.c_row, 1, p.c_batch, false);

  dnnl::primitive_attr attr = scratch_attr();
  if (p.accumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  if (p.alpha != 1.0f) attr.set_output_scales(0, {p.alpha});

  memory::desc bias_desc;
  if (p.bias) {
    bias_desc = batched ? memory::desc({1, 1, p.n}, type, memory::format_tag::abc)
                        : memory::desc({1, p.n}, type, memory::format_tag::ab);
  }
  auto operation =
      p.bias ? dnnl::matmul::desc(a_desc, b_desc, bias_desc, c_desc) : dnnl::matmul::desc(a_desc, b_desc, c_desc);
  dnnl::matmul::primitive_desc how(operation, attr, engine());
  if (std::strncmp(how.impl_info_str(), "ref", 3) == 0) throw Unsupported{"oneDNN has only its reference kernel"};

  auto plan = std::make_shared<Plan>();
  const int a_user = plan->user(a_given), b_user = plan->user(b_given), c_user = plan->user(c_desc);
  const int bias_user = p.bias ? plan->user(bias_desc) : -1;
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, plan->reordered(a_user, a_desc)},
                                           {DNNL_ARG_WEIGHTS, plan->reordered(b_user, b_desc)},
                                           {DNNL_ARG_DST, c_user}};
  if (p.bias) args.emplace_back(DNNL_ARG_BIAS, bias_user);
  plan->step(dnnl::matmul(how), std::move(args), how.scratchpad_desc());
  return plan;
}

}  // namespace

int product(StrataMatmul p) {
  const int workers = worker_count();  // first: it may tell OpenMP
  Layout a{p.a_row, p.a_col, p.a_batch}, b{p.b_row, p.b_col, p.b_batch};
  if (p.batch > 1 && b.batch == 0 && a.col == 1 && a.batch == p.m * a.row && p.c_batch == p.m * p.c_row) {
    p.m *= p.batch;  // one weight for all: the batch is just more rows
    p.batch = 1;
  }
  if (p.batch > 1 && a.batch == 0 && b.batch == 0) {  // oneDNN repeats one of the two
    StrataMatmul one = p;
    one.batch = 1;
    for (int64_t i = 0; i < p.batch; ++i) {
      one.c = static_cast<char*>(p.c) + i * p.c_batch * int64_t(bytes(p.dtype));
      if (int status = product(one)) return status;
    }
    return STRATA_LIBRARY_OK;
  }
  if (!normalise(a, p.m, p.k, p.batch)) throw Unsupported{"a has neither unit row nor unit column stride"};
  if (!normalise(b, p.k, p.n, p.batch)) throw Unsupported{"b has neither unit row nor unit column stride"};
  if (p.m == 1) p.c_row = p.n;
  if (p.batch == 1) p.c_batch = 0;

  if (p.dtype == STRATA_LIBRARY_F32 && p.batch == 1 && (p.m == 1 || p.n == 1)) return vector_product(p, a, b);

  uint32_t alpha_bits;
  std::memcpy(&alpha_bits, &p.alpha, 4);
  Key key;
  key.add(p.dtype | (p.bias != nullptr) << 4 | (p.accumulate != 0) << 5 | int64_t{workers} << 8);
  key.add(int64_t{alpha_bits});
  for (int64_t word : {p.batch, p.m, p.n, p.k, a.row, a.col, a.batch, b.row, b.col, b.batch, p.c_row, p.c_batch}) {
    key.add(word);
  }
  auto plan = PlanCache::instance().get(key, [&] { return make_plan(p, a, b); });
  void* pointers[] = {const_cast<void*>(p.a), const_cast<void*>(p.b), p.c, const_cast<void*>(p.bias)};
  return plan->run(pointers);
}

int matmul(const StrataMatmul* call) {
  return guarded("matmul", [&] {
    if (!call || call->size < sizeof(StrataMatmul)) throw Invalid{"the call struct is null or too small"};
    const StrataMatmul& p = *call;
    if (!known_type(p.dtype) && p.dtype != STRATA_LIBRARY_BF16_F32) {
      throw Unsupported{"dtype is neither float32 nor bfloat16"};
    }
    if (p.batch < 0 || p.m < 0 || p.n < 0 || p.k < 0) throw Invalid{"a size is negative"};
    if (p.bias && (p.dtype == STRATA_LIBRARY_BF16_F32 || p.alpha != 1.0f || p.accumulate)) {
      throw Unsupported{"a fused bias needs one dtype, alpha 1 and no accumulation"};
    }
    if (p.batch == 0 || p.m == 0 || p.n == 0) return int{STRATA_LIBRARY_OK};
    if (!p.c) throw Invalid{"c is null"};
    if (p.m > 1 && p.c_row < p.n) throw Invalid{"rows of c overlap"};
    if (p.k == 0) {
      if (!p.accumulate) fill_empty(p);
      return int{STRATA_LIBRARY_OK};
    }
    if (!p.a || !p.b) throw Invalid{"a or b is null"};
    for (int64_t stride : {p.a_row, p.a_col, p.a_batch, p.b_row, p.b_col, p.b_batch}) {
      if (stride < 0) throw Unsupported{"a stride is negative"};
    }
    return product(p);
  });
}

// By the primitive that products go to. Where that is not built over sgemm, sgemm's own code, 40 ms of a core, is left
// to who multiplies by a vector.
int prepare() {
  return guarded("prepare", [] {
    constexpr int n = 16;
    float a[n * n] = {}, b[n * n] = {}, c[n * n];
    StrataMatmul p{};
    p.dtype = STRATA_LIBRARY_F32;
    p.batch = 1;
    p.m = p.n = p.k = p.c_row = n;
    p.alpha = 1.0f;
    void* pointers[] = {a, b, c, nullptr};
    struct Alone {
      ~Alone() { omp_set_num_threads(threads); }
      int threads = omp_get_max_threads();
    } alone;
    omp_set_num_threads(1);
    return make_plan(p, {n, 1, 0}, {n, 1, 0})->run(pointers);
  });
}

}  // namespace strata::onednn
