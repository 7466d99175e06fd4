#include "core/shape/matrix.h"

#include "core/promote.h"
#include "core/shape/strides.h"

namespace strata::shape {
namespace {

template <class S>
const S& from_end(const Geometry<S>& t, size_t d) {
  return t.sizes[t.sizes.size() - d];
}

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }

template <class S>
void check_floating(const Geometry<S>& a, const char* op) {
  STRATA_CHECK(is_differentiable(a.dtype), op, ": Expected a floating point or complex tensor as input. Got ",
               scalar_type_name(a.dtype));
}

// A batch of matrices like those of `matrices`.
template <class S>
Sizes<S> joined(Sizes<S> batch, ArrayRef<S> matrices) {
  batch.push_back(matrices[matrices.size() - 2]);
  batch.push_back(matrices[matrices.size() - 1]);
  return batch;
}

template <class S>
Strided<S> verdict(const Geometry<S>& a) {
  return {batch_of(a.sizes), DType::I32};
}

template <class S>
Strided<S> nothing(DType dtype) {
  return {Sizes<S>(1, S(0)), dtype};
}

template <class S>
Strided<S> plain(Sizes<S> sizes, DType dtype) {
  return {std::move(sizes), dtype};
}

// P A = L U in one tensor, and the pivots.
template <class S>
void add_factors(Prepared<S>& r, const Geometry<S>& a) {
  r.add(columns<S>(a.sizes, a.dtype));
  r.add(plain(with_vector(a.sizes, smaller(from_end(a, 2), from_end(a, 1))), DType::I32));
}

DType component_of(DType t) { return traits(t).component; }

}  // namespace

template <class S>
void check_matrices(const Geometry<S>& a, const char* op) {
  STRATA_CHECK(a.dim() >= 2, op, ": The input tensor A must have at least 2 dimensions, got shape ", a.sizes);
}

template <class S>
void check_square(const Geometry<S>& a, const char* op) {
  check_matrices(a, op);
  STRATA_CHECK(from_end(a, 1) == from_end(a, 2), op, ": A must be batches of square matrices, but they are ",
               from_end(a, 2), " by ", from_end(a, 1), " matrices");
}

template <class S>
void check_lapack_dtype(const Geometry<S>& a, const char* op) {
  check_floating(a, op);
  STRATA_CHECK_NOT_IMPLEMENTED(!is_half(a.dtype), op, ": not implemented for '", scalar_type_name(a.dtype),
                               "'; convert A to float32 or float64 with .to() first");
}

// In the words of a kernel that lacks a dtype, as PyTorch has it where it asks no sooner.
void check_kernel_dtype(DType t, const char* op) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(t) && !is_half(t), "\"", op, "\" not implemented for '",
                               scalar_type_name(t), "'; convert A to float32 or float64 with .to() first");
}

template <class S>
void check_dtype_unless_empty(const Geometry<S>& a, const char* op) {
  check_floating(a, op);
  if (is_half(a.dtype) && !(a.numel() == S(0))) check_lapack_dtype(a, op);
}

template <class S>
void check_precise_dtype(const Geometry<S>& a, const char* op) {
  check_floating(a, op);
  STRATA_CHECK(!is_half(a.dtype), op, ": Low precision dtypes not supported. Got ", scalar_type_name(a.dtype),
               "; convert A to float32 or float64 with .to() first");
}

template <class S>
Strided<S> columns(Sizes<S> sizes, DType dtype) {
  const size_t d = sizes.size();
  Sizes<S> strides(sizes);
  strides[d - 2] = S(1);
  strides[d - 1] = larger(sizes[d - 2], S(1));
  S step = times(strides[d - 1], larger(sizes[d - 1], S(1)));
  for (size_t i = d - 2; i-- > 0;) {
    strides[i] = step;
    step = times(step, larger(sizes[i], S(1)));
  }
  return {std::move(sizes), dtype, std::move(strides)};
}

template <class S>
Sizes<S> batch_of(ArrayRef<S> sizes) {
  return Sizes<S>(sizes.slice(0, sizes.size() - 2));
}

template <class S>
Sizes<S> with_matrix(ArrayRef<S> sizes, const S& rows, const S& columns) {
  Sizes<S> r(sizes);
  r[sizes.size() - 2] = rows;
  r[sizes.size() - 1] = columns;
  return r;
}

template <class S>
Sizes<S> with_vector(ArrayRef<S> sizes, const S& length) {
  Sizes<S> r = batch_of(sizes);
  r.push_back(length);
  return r;
}

template <class S>
void check_same_dtype(const Geometry<S>& a, const Geometry<S>& b, const char* op) {
  STRATA_CHECK(a.dtype == b.dtype, op, ": Expected A and B to have the same dtype, but found A of type ",
               scalar_type_name(a.dtype), " and B of type ", scalar_type_name(b.dtype), " instead");
}

template <class S>
void check_fit(const Geometry<S>& a, ArrayRef<S> b, bool left, const char* op) {
  const size_t d = b.size();
  STRATA_CHECK(from_end(a, 1) == b[left ? d - 2 : d - 1], op, ": Incompatible shapes of A and B for the equation ",
               left ? "AX = B" : "XA = B", " (", from_end(a, 2), "x", from_end(a, 1), " and ", b[d - 2], "x", b[d - 1],
               ")");
}

template <class S>
bool is_vector_case(const Geometry<S>& a, const Geometry<S>& b) {
  return b.dim() == 1 || (a.dim() - 1 == b.dim() && b.sizes == a.sizes.slice(0, a.sizes.size() - 1));
}

template <class S>
Prepared<S> verdicts(const Geometry<S>& info) {
  STRATA_CHECK_TYPE(info.dtype == DType::I32, "_check_info: expected an int32 tensor, got ", info.dtype);
  return {};
}

template <class S>
Prepared<S> qr(const Geometry<S>& a, std::string_view mode) {
  constexpr const char* op = "linalg.qr";
  check_matrices(a, op);
  STRATA_CHECK(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
               "' but expected one of 'reduced' (default), 'r', or 'complete'");
  check_lapack_dtype(a, op);
  const S m = from_end(a, 2), n = from_end(a, 1), k = mode == "complete" ? m : smaller(m, n);
  Prepared<S> r;
  r.add(mode == "r" ? nothing<S>(a.dtype) : columns(with_matrix(a.sizes, m, k), a.dtype));
  r.add(columns(with_matrix(a.sizes, k, n), a.dtype));
  return r;
}

template <class S>
Prepared<S> svd(const Geometry<S>& a, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver) {
  constexpr const char* op = "linalg.svd";
  check_matrices(a, op);
  check_dtype_unless_empty(a, op);
  STRATA_CHECK(!driver, op, ": keyword argument driver chooses between the libraries of other devices; leave it out");
  const S m = from_end(a, 2), n = from_end(a, 1), k = smaller(m, n);
  const S left = full_matrices ? m : k, right = full_matrices ? n : k;
  Prepared<S> r;
  r.add(compute_uv ? columns(with_matrix(a.sizes, m, left), a.dtype) : nothing<S>(a.dtype));
  r.add(plain(with_vector(a.sizes, k), component_of(a.dtype)));
  r.add(compute_uv ? columns(with_matrix(a.sizes, right, n), a.dtype) : nothing<S>(a.dtype));
  return r;
}

template <class S>
Prepared<S> eigh(const Geometry<S>& a, std::string_view uplo, bool compute_v) {
  constexpr const char* op = "linalg.eigh";
  check_square(a, op);
  STRATA_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
               "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  if (!(a.numel() == S(0))) check_kernel_dtype(a.dtype, "linalg_eigh_cpu");  // empty ones are of any dtype
  Prepared<S> r;
  r.add(plain(with_vector(a.sizes, from_end(a, 1)), component_of(a.dtype)));
  r.add(compute_v ? columns<S>(a.sizes, a.dtype) : nothing<S>(a.dtype));
  return r;
}

template <class S>
Prepared<S> eig(const char* op, const Geometry<S>& a, bool vectors) {
  check_square(a, op);
  check_lapack_dtype(a, op);
  const DType t = to_complex(a.dtype);
  Prepared<S> r(with_vector(a.sizes, from_end(a, 1)), t);
  if (vectors) r.add(columns<S>(a.sizes, t));
  return r;
}

template <class S>
Prepared<S> cholesky(const Geometry<S>& a) {
  check_square(a, "linalg.cholesky");
  check_dtype_unless_empty(a, "linalg.cholesky");
  Prepared<S> r;
  r.add(columns<S>(a.sizes, a.dtype));
  r.add(verdict(a));
  return r;
}

template <class S>
Prepared<S> inverse(const Geometry<S>& a) {
  check_square(a, "linalg.inv");
  check_precise_dtype(a, "linalg.inv");
  Prepared<S> r;
  r.add(columns<S>(a.sizes, a.dtype));
  r.add(verdict(a));
  return r;
}

template <class S>
Prepared<S> determinant(const Geometry<S>& a) {
  check_square(a, "linalg.det");
  check_dtype_unless_empty(a, "linalg.det");
  Prepared<S> r(batch_of(a.sizes), a.dtype);
  add_factors(r, a);
  return r;
}

template <class S>
Prepared<S> log_determinant(const Geometry<S>& a) {
  check_square(a, "linalg.slogdet");
  check_precise_dtype(a, "linalg.slogdet");
  Prepared<S> r(batch_of(a.sizes), a.dtype);
  r.add(plain(batch_of(a.sizes), component_of(a.dtype)));
  add_factors(r, a);
  return r;
}

template <class S>
Prepared<S> solve(const Geometry<S>& a, const Geometry<S>& b, bool left) {
  constexpr const char* op = "linalg.solve";
  check_square(a, op);
  check_floating(a, op);
  check_same_dtype(a, b, op);
  const bool vectors = is_vector_case(a, b);
  STRATA_CHECK(left || !vectors, op,
               ": Vector broadcasting of the left hand side is not supported for left=False. In this case "
               "linalg.solve is equivalent to B / A.squeeze(-1)");
  STRATA_CHECK(b.dim() >= 1, op, ": The input tensor B must have at least 1 dimension, got shape ", b.sizes);
  Sizes<S> shape(b.sizes);
  if (vectors) shape.push_back(S(1));
  STRATA_CHECK(shape.size() >= 2, op, ": The input tensor B must have at least 2 dimensions, got shape ", b.sizes);
  check_fit<S>(a, shape, left, op);
  Sizes<S> sizes = joined<S>(broadcast<S>(batch_of(a.sizes), batch_of<S>(shape)), shape);
  check_dtype_unless_empty(a, op);
  if (vectors) sizes.pop_back();
  Prepared<S> r;
  // A batch of vectors lies as a matrix of its last two dims, too.
  r.add(left && sizes.size() >= 2 ? columns(std::move(sizes), a.dtype) : plain(std::move(sizes), a.dtype));
  r.add(verdict(a));
  return r;
}

template <class S>
Prepared<S> solve_triangular(const Geometry<S>& a, const Geometry<S>& b, bool left) {
  constexpr const char* op = "linalg.solve_triangular";
  check_square(a, op);
  STRATA_CHECK(b.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions, got shape ", b.sizes);
  check_same_dtype(a, b, op);
  check_fit(a, b.sizes, left, op);
  Prepared<S> r;
  r.add(columns(joined(broadcast<S>(batch_of(a.sizes), batch_of(b.sizes)), b.sizes), b.dtype));
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(a.dtype), op, ": not implemented for '", scalar_type_name(a.dtype),
                               "'; convert A and B to float32 or float64 with .to() first");
  check_lapack_dtype(a, op);
  return r;
}

template <class S>
Prepared<S> lu_factor(const Geometry<S>& a, bool pivot) {
  check_matrices(a, "linalg.lu_factor");
  STRATA_CHECK(pivot || a.numel() == S(0), "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  if (!(a.numel() == S(0))) check_kernel_dtype(a.dtype, "lu_cpu");  // empty ones are of any dtype
  Prepared<S> r;
  add_factors(r, a);
  r.add(verdict(a));
  return r;
}

template <class S>
void check_pivots(const Geometry<S>& lu, const Geometry<S>& pivots, const char* op) {
  STRATA_CHECK(pivots.dtype == DType::I32, op, ": pivots should be a Tensor of scalar type strata.int32, got ",
               pivots.dtype);
  check_matrices(lu, op);
  const Sizes<S> wanted = with_vector(lu.sizes, smaller(from_end(lu, 1), from_end(lu, 2)));
  STRATA_CHECK(pivots.sizes == ArrayRef<S>(wanted), op, ": expected pivots of shape ", ArrayRef<S>(wanted),
               ", one vector for each matrix of LU, got ", pivots.sizes);
}

template <class S>
Prepared<S> lu_solve(const Geometry<S>& lu, const Geometry<S>& pivots, const Geometry<S>& b, bool left) {
  constexpr const char* op = "linalg.lu_solve";
  check_square(lu, op);
  check_same_dtype(lu, b, op);
  check_floating(lu, op);
  STRATA_CHECK(b.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions, got shape ", b.sizes);
  check_fit(lu, b.sizes, left, op);
  check_pivots(lu, pivots, op);
  check_dtype_unless_empty(lu, op);
  Sizes<S> sizes = joined(broadcast<S>(batch_of(lu.sizes), batch_of(b.sizes)), b.sizes);
  Prepared<S> r;
  r.add(left ? columns(std::move(sizes), b.dtype) : plain(std::move(sizes), b.dtype));
  return r;
}

template <class S>
Prepared<S> ldl_factor(const Geometry<S>& a) {
  check_square(a, "linalg.ldl_factor_ex");
  check_dtype_unless_empty(a, "linalg.ldl_factor_ex");
  Prepared<S> r;
  add_factors(r, a);
  r.add(verdict(a));
  return r;
}

template <class S>
Prepared<S> ldl_solve(const Geometry<S>& ld, const Geometry<S>& pivots, const Geometry<S>& b) {
  constexpr const char* op = "linalg.ldl_solve";
  check_square(ld, op);
  STRATA_CHECK_INDEX(b.dim() >= 2, op, ": The input tensor B must have at least 2 dimensions, got shape ", b.sizes);
  check_same_dtype(ld, b, op);
  check_lapack_dtype(ld, op);
  check_fit(ld, b.sizes, true, op);
  STRATA_CHECK(is_integral(pivots.dtype), op, ": Expected pivots to be integers. Got ", scalar_type_name(pivots.dtype));
  STRATA_CHECK(pivots.sizes == ld.sizes.slice(0, ld.sizes.size() - 1), op,
               ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape ", pivots.sizes,
               " instead");
  Prepared<S> r;
  r.add(columns(joined(broadcast<S>(batch_of(ld.sizes), batch_of(b.sizes)), b.sizes), b.dtype));
  return r;
}

template <class S>
Prepared<S> lstsq(const Geometry<S>& a, const Geometry<S>& b, std::optional<std::string_view> driver) {
  constexpr const char* op = "linalg.lstsq";
  STRATA_CHECK(a.dim() >= 2, op, ": input must have at least 2 dimensions, got shape ", a.sizes);
  STRATA_CHECK(b.dim() >= 1, op, ": other must have at least 1 dimension, got shape ", b.sizes);
  STRATA_CHECK(a.dtype == b.dtype, op, ": Expected input and other to have the same dtype, but got input's dtype ",
               scalar_type_name(a.dtype), " and other's dtype ", scalar_type_name(b.dtype));
  STRATA_CHECK(
      a.dim() - b.dim() == 0 || a.dim() - b.dim() == 1, op,
      ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, got shapes ",
      a.sizes, " and ", b.sizes);
  check_precise_dtype(a, op);
  const std::string_view way = driver.value_or("gelsy");
  STRATA_CHECK(way == "gels" || way == "gelsy" || way == "gelsd" || way == "gelss",
               "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ", way);
  const bool vectors = is_vector_case(a, b);
  Sizes<S> sides(b.sizes);
  if (vectors) sides.push_back(S(1));
  const S m = from_end(a, 2), n = from_end(a, 1), count = sides.back(), more = larger(m, n);
  STRATA_CHECK(sides[sides.size() - 2] == m, op, ": input.size(-2) should match other.size(-2), got shapes ", a.sizes,
               " and ", b.sizes);
  const Sizes<S> batch = broadcast<S>(batch_of(a.sizes), batch_of<S>(sides));
  auto in_batch = [&](std::initializer_list<S> last) {
    Sizes<S> r = batch;
    for (const S& s : last) r.push_back(s);
    return r;
  };
  const DType real = component_of(a.dtype);
  Prepared<S> r;
  // The first rows of what LAPACK writes, which has those of the residuals, too.
  Strided<S> x = columns(in_batch({more, count}), a.dtype);
  x.sizes[x.sizes.size() - 2] = n;
  if (vectors) x.sizes.pop_back(), x.strides.pop_back();
  r.add(std::move(x));
  bool some = m > n && !(count == S(0)) && !(n == S(0));
  for (const S& s : batch) some = some && !(s == S(0));
  r.add(some && way != "gelsy" ? plain(in_batch({count}), real) : nothing<S>(real));
  r.add(way == "gels" ? nothing<S>(DType::I64) : plain(batch, DType::I64));
  r.add(way == "gelsd" || way == "gelss" ? plain(in_batch({smaller(m, n)}), real) : nothing<S>(real));
  return r;
}

template <class S>
void check_taus(const Geometry<S>& input, const Geometry<S>& tau, const char* op) {
  STRATA_CHECK(input.dim() >= 2, op, ": input must have at least 2 dimensions, got shape ", input.sizes);
  STRATA_CHECK(tau.dim() == input.dim() - 1, op,
               ": Expected tau to have one dimension less than input, but got tau.ndim ", "equal to ", tau.dim(),
               " and input.ndim is equal to ", input.dim());
  STRATA_CHECK(batch_of(input.sizes) == Sizes<S>(tau.sizes.slice(0, tau.sizes.size() - 1)), op,
               ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau.sizes, " and ",
               input.sizes);
  STRATA_CHECK(tau.dtype == input.dtype, op, ": tau dtype ", scalar_type_name(tau.dtype),
               " does not match input dtype ", scalar_type_name(input.dtype));
}

template <class S>
Prepared<S> householder_product(const Geometry<S>& input, const Geometry<S>& tau) {
  constexpr const char* op = "linalg.householder_product";
  STRATA_CHECK(input.dim() >= 2, op, ": input must have at least 2 dimensions, got shape ", input.sizes);
  STRATA_CHECK(from_end(input, 2) >= from_end(input, 1), op,
               ": input.shape[-2] must be greater than or equal to input.shape[-1], got shape ", input.sizes);
  STRATA_CHECK_INDEX(tau.dim() > 0, op, ": Dimension specified as -1 but tensor has no dimensions: tau is a number");
  STRATA_CHECK(from_end(input, 1) >= from_end(tau, 1), op,
               ": input.shape[-1] must be greater than or equal to tau.shape[-1], got shapes ", input.sizes, " and ",
               tau.sizes);
  check_taus(input, tau, op);
  check_kernel_dtype(input.dtype, "orgqr_cpu");
  Prepared<S> r;
  r.add(columns<S>(input.sizes, input.dtype));
  return r;
}

template <class S>
Prepared<S> geqrf(const Geometry<S>& a) {
  STRATA_CHECK(a.dim() >= 2, "geqrf: input must have at least 2 dimensions, got shape ", a.sizes);
  check_kernel_dtype(a.dtype, "geqrf_cpu");
  Prepared<S> r;
  r.add(columns<S>(a.sizes, a.dtype));
  r.add(plain(with_vector(a.sizes, smaller(from_end(a, 2), from_end(a, 1))), a.dtype));
  return r;
}

#define STRATA_RULES(S)                                                                                \
  template void check_matrices(const Geometry<S>&, const char*);                                       \
  template void check_square(const Geometry<S>&, const char*);                                         \
  template void check_lapack_dtype(const Geometry<S>&, const char*);                                   \
  template void check_precise_dtype(const Geometry<S>&, const char*);                                  \
  template Prepared<S> verdicts(const Geometry<S>&);                                                   \
  template Prepared<S> qr(const Geometry<S>&, std::string_view);                                       \
  template Prepared<S> svd(const Geometry<S>&, bool, bool, std::optional<std::string_view>);           \
  template Prepared<S> eigh(const Geometry<S>&, std::string_view, bool);                               \
  template Prepared<S> eig(const char*, const Geometry<S>&, bool);                                     \
  template Prepared<S> cholesky(const Geometry<S>&);                                                   \
  template Prepared<S> inverse(const Geometry<S>&);                                                    \
  template Prepared<S> determinant(const Geometry<S>&);                                                \
  template Prepared<S> log_determinant(const Geometry<S>&);                                            \
  template Prepared<S> solve(const Geometry<S>&, const Geometry<S>&, bool);                            \
  template Prepared<S> solve_triangular(const Geometry<S>&, const Geometry<S>&, bool);                 \
  template Prepared<S> lu_factor(const Geometry<S>&, bool);                                            \
  template void check_pivots(const Geometry<S>&, const Geometry<S>&, const char*);                     \
  template Prepared<S> lu_solve(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, bool);     \
  template Prepared<S> ldl_factor(const Geometry<S>&);                                                 \
  template Prepared<S> ldl_solve(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);          \
  template Prepared<S> lstsq(const Geometry<S>&, const Geometry<S>&, std::optional<std::string_view>); \
  template void check_taus(const Geometry<S>&, const Geometry<S>&, const char*);                       \
  template bool is_vector_case(const Geometry<S>&, const Geometry<S>&);                                \
  template Prepared<S> householder_product(const Geometry<S>&, const Geometry<S>&);                    \
  template Prepared<S> geqrf(const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
