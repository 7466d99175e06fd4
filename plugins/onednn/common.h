// What every file of this plugin shares: the engine, errors as status codes, and plans.
// A plan is a short list of prepared oneDNN primitives over numbered operands; some operands are the caller's
// pointers, others live in a scratch arena of the calling thread. Plans are immutable and shared between threads;
// what changes per call (memory handles) sits in a Binding, which one call at a time borrows.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "vendor/library.h"

namespace strata::onednn {

const dnnl::engine& engine();
dnnl_stream_t stream();
int worker_count();  // threads that a call made here and now will use; part of every plan's key
const char* openmp_runtime();
bool wide_vectors();  // AVX-512: oneDNN's blocks hold 16 channels, otherwise 8

// Stores "where: reason" for this thread, cut to a fixed buffer (so it cannot throw), and returns the status.
int fail(StrataLibraryStatus status, const char* where, const char* reason) noexcept;
const char* last_error();

// Thrown inside the plugin when another kernel should do the work, and when the caller broke the contract.
struct Unsupported {
  std::string reason;
};
struct Invalid {
  const char* reason;
};

// Runs body, which returns a status, and turns whatever it throws into one.
template <class Body>
int guarded(const char* where, Body&& body) noexcept {
  try {
    return body();
  } catch (const Unsupported& e) {
    return fail(STRATA_LIBRARY_UNSUPPORTED, where, e.reason.c_str());
  } catch (const Invalid& e) {
    return fail(STRATA_LIBRARY_INVALID, where, e.reason);
  } catch (const dnnl::error& e) {
    auto status = e.status == dnnl_out_of_memory   ? STRATA_LIBRARY_MEMORY
                  : e.status == dnnl_unimplemented ? STRATA_LIBRARY_UNSUPPORTED
                                                   : STRATA_LIBRARY_FAILED;
    return fail(status, where, e.what());
  } catch (const std::bad_alloc&) {
    return fail(STRATA_LIBRARY_MEMORY, where, "out of memory");
  } catch (const std::exception& e) {
    return fail(STRATA_LIBRARY_FAILED, where, e.what());
  } catch (...) {
    return fail(STRATA_LIBRARY_FAILED, where, "unknown exception");
  }
}

inline dnnl::memory::data_type data_type(int32_t dtype) {
  return dtype == STRATA_LIBRARY_F32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}
// Of what is written.
inline dnnl::memory::data_type output_type(int32_t dtype) {
  return dtype == STRATA_LIBRARY_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}
inline bool known_type(int32_t dtype) { return dtype == STRATA_LIBRARY_F32 || dtype == STRATA_LIBRARY_BF16; }

struct Binding {
  std::vector<dnnl::memory> memories;              // one per operand
  std::vector<void*> handles;                      // what each memory points at now
  std::vector<std::vector<dnnl_exec_arg_t>> args;  // one list per step
};

class Plan {
 public:
  // An operand that the caller passes to run(), in order of these calls.
  int user(const dnnl::memory::desc& desc);
  // An operand in the scratch arena.
  int temporary(const dnnl::memory::desc& desc);
  // A further primitive; its scratchpad, if any, becomes a temporary.
  void step(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> argument_operands,
            const dnnl::memory::desc& scratchpad);
  // A step that changes the layout, or nothing: returns an operand of layout `wanted` that holds `from`'s values.
  int reordered(int from, const dnnl::memory::desc& wanted);
  // A step that writes `from`'s values into the operand `to`; nothing when they are the same operand.
  void copied(int from, int to);

  const dnnl::memory::desc& desc(int operand) const { return operands_[operand].desc; }

  // Executes the steps; pointers[i] belongs to the i-th user operand.
  int run(void* const* pointers) const;

 private:
  struct Operand {
    dnnl::memory::desc desc;
    int user;       // index into run()'s pointers, or -1
    size_t offset;  // in the arena when user < 0
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<std::pair<int, int>> args;  // (DNNL_ARG_..., operand)
  };

  std::unique_ptr<Binding> borrow() const;

  std::vector<Operand> operands_;
  std::vector<Step> steps_;
  int users_ = 0;
  size_t arena_ = 0;

  mutable std::mutex free_mutex_;
  mutable std::vector<std::unique_ptr<Binding>> free_;
};

dnnl::primitive_attr scratch_attr();  // attributes that ask for a caller-provided scratchpad

// A checked, non-empty product. Unlike matmul() it takes a bfloat16 bias, rounding once.
int product(StrataMatmul p);

int matmul(const StrataMatmul* call);
int prepare();
int conv_forward(const StrataConvolution* shape, const void* input, const void* weight, const void* bias, void* output);
int conv_backward_data(const StrataConvolution* shape, const void* grad_output, const void* weight, void* grad_input);
int conv_backward_weights(const StrataConvolution* shape, const void* input, const void* grad_output, void* grad_weight,
                          void* grad_bias);

}  // namespace strata::onednn
