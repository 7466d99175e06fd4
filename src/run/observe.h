// What launches would do. An operator that runs over shapes alone makes its results and checks, and launches nothing;
// while an observer is set on the thread it tells that instead: kernels, operands, numbers. So the launches of an
// operator are known without a second description of it. An operator whose launches are not all told (C++ by hand, a
// library, values that the host reads) says so by other().
#pragma once
#include <optional>

#include "core/tensor.h"

namespace strata {
class Generator;
}

namespace strata::eager {

struct PointwiseOp;
struct RowsOp;
struct SpaceCall;
struct DrawOp;
struct DrawNumber;

class LaunchObserver {
 public:
  // Kernels and operands as launches take them (run/pointwise.h, rows.h, launch.h); `dtype` is what they compute in.
  virtual void pointwise(const PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> in,
                         ArrayRef<Scalar> scalars) = 0;
  virtual void rows(const RowsOp& op, DType dtype, ArrayRef<Tensor> outs, ArrayRef<const Tensor*> in,
                    ArrayRef<Scalar> scalars, const DimVec& dims) = 0;
  virtual void space(const SpaceCall& call) = 0;
  // As draw_at() takes it (run/random.h); of the default generator where that is undefined.
  virtual void draw(const DrawOp& op, DType dtype, const Tensor& out, TensorList operands, ArrayRef<DrawNumber> numbers,
                    const Generator& generator) = 0;
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  virtual void fill(const Tensor& to, const Scalar& value) = 0;
  virtual void other() = 0;
  // Whether it can do what it was told so far, so that values are there; and the value of one bool, or none after all.
  virtual bool has_values() const { return false; }
  virtual std::optional<bool> truth(const Tensor&) { return {}; }

  // This thread's, or null.
  static LaunchObserver* current();

  // Sets one for a scope.
  class Scope {
   public:
    explicit Scope(LaunchObserver& observer);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LaunchObserver* before_;
  };
};

// The observer of a launch that has nothing to fill: none where there are no elements.
inline LaunchObserver* observer_of(const Tensor& out) { return out.numel() ? LaunchObserver::current() : nullptr; }
// Whether a launch into `out` would fill nothing and tell nobody.
inline bool shapes_alone(const Tensor& out) { return out.is_meta() && !LaunchObserver::current(); }
// Of computations that no launch describes.
[[gnu::cold]] void tell_other();

}  // namespace strata::eager
