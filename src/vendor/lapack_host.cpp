#include "vendor/lapack_host.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "core/promote.h"
#include "dispatch/seen.h"
#include "run/copy.h"
#include "run/visit.h"
#include "strata/generated/by_hand/decompose.h"
#include "vendor/plugin.h"

namespace strata::eager {

namespace {

const OpenedTable<StrataLapack>& found() {
  static const auto f =
      open_table<StrataLapack>("lapack", "STRATA_LAPACK", STRATA_LAPACK_SYMBOL, STRATA_LAPACK_MAJOR,
                               "the OpenBLAS found is not the build with POSIX threads; install libopenblas0-pthread");
  return f;
}

template <class T>
bool finite_all(const T* p, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(p[i])) return false;
  return true;
}

}  // namespace

const StrataLapack& lapack(const char* op) {
  check_seen(op);
  const OpenedTable<StrataLapack>& f = found();
  STRATA_CHECK_NOT_IMPLEMENTED(
      f.table, op, ": needs LAPACK, which the plugin libstrata_lapack.so brings; it could not be opened: ", f.report,
      ". Install OpenBLAS (Debian: apt install libopenblas0-pthread) and build with STRATA_OPENBLAS=ON");
  return *f.table;
}

std::string lapack_report() { return found().report; }

void lapack_done(int status, const StrataLapack& library, const char* op) {
  if (status == STRATA_LIBRARY_OK) return;
  throw_error(status == STRATA_LIBRARY_MEMORY ? ErrorKind::OutOfMemory : ErrorKind::Runtime,
              str_cat(op, ": ", library.name, " failed: ", library.last_error()));
}

int lapack_type(DType t) {
  return t == DType::F32   ? STRATA_LAPACK_F32
         : t == DType::F64 ? STRATA_LAPACK_F64
         : t == DType::C64 ? STRATA_LAPACK_C64
                           : STRATA_LAPACK_C128;
}

Tensor new_columns(const Tensor& like, IntArrayRef sizes) {
  const auto made = shape::columns<int64_t>(sizes, like.dtype());
  return make_tensor_strided_as(like, made.sizes, made.strides, made.dtype);
}

Tensor columns_of(const Tensor& a, IntArrayRef sizes) {
  Tensor t = new_columns(a, sizes);
  copy_values(t, a);
  return t;
}

DimVec with_matrix(IntArrayRef sizes, int64_t rows, int64_t columns) {
  DimVec r(sizes);
  r[sizes.size() - 2] = rows;
  r[sizes.size() - 1] = columns;
  return r;
}

DimVec batch_sizes(IntArrayRef sizes) {
  DimVec r;
  for (size_t i = 0; i + 2 < sizes.size(); ++i) r.push_back(sizes[i]);
  return r;
}

DimVec with_vector(IntArrayRef sizes, int64_t length) {
  DimVec r = batch_sizes(sizes);
  r.push_back(length);
  return r;
}

int64_t batch_count(IntArrayRef sizes) { return checked_numel(batch_sizes(sizes)); }

int64_t matrices_of_thread(int64_t order, int64_t columns) {
  constexpr double products = 8192;
  return std::max<int64_t>(1, int64_t(products / (double(order) * double(order) * double(columns))));
}

bool all_finite(const void* p, int64_t count, DType t) {
  if (is_complex(t)) count *= 2;
  if (traits(t).component == DType::F32) return finite_all(static_cast<const float*>(p), count);
  return finite_all(static_cast<const double*>(p), count);
}

std::string no_convergence(int32_t info, const char* values) {
  if (info == not_finite)
    return "The algorithm failed to converge because the input matrix contained non-finite values.";
  return str_cat(
      "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated ", values,
      " (error code: ", info, ").");
}

bool may_need_grad(const Tensor& a) { return grad_enabled() && a.requires_grad(); }

void check_info(const Tensor& info, const char* name, const char* text) {
  check_info(info, name, [&](int32_t verdict) {
    std::string shown = text;
    for (size_t at; (at = shown.find("{}")) != std::string::npos;) shown.replace(at, 2, std::to_string(verdict));
    return shown;
  });
}

void check_verdicts(const Tensor& info, std::string_view name, std::string_view text) {
  check_info(as_contiguous(info), std::string(name).c_str(), std::string(text).c_str());
}

void raise_linalg(const char* name, const Tensor& info, int64_t element, const std::string& text) {
  std::string where = info.dim() == 0 ? "" : str_cat("(Batch element ", element, "): ");
  throw_error(ErrorKind::LinAlg, str_cat(name, ": ", where, text));
}

}  // namespace strata::eager
