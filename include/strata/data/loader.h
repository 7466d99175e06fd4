// Data: tensors that are cut into batches of their first dim.
#pragma once
#include "strata/tensors.h"

namespace strata::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false, drop_last = false;
};

// `for (const auto& batch : loader)` goes once over all rows: batch[k] has rows of tensor k. Each pass draws a new
// order where it shuffles; its draws are those of Python's DataLoader, so that the same seed gives the same batches.
class DataLoader {
 public:
  // Raises Value for no tensors, tensors of different sizes of the first dim, and a batch size below 1.
  explicit DataLoader(std::vector<Tensor> tensors, DataLoaderOptions options = {});

  class Pass {
   public:
    bool operator!=(std::nullptr_t) const { return at_ < loader_->size(); }
    Pass& operator++() {
      ++at_;
      return *this;
    }
    std::vector<Tensor> operator*() const;

   private:
    friend class DataLoader;
    explicit Pass(const DataLoader& loader);
    const DataLoader* loader_;
    Tensor order_;  // undefined: as they come
    int64_t at_ = 0;
  };
  Pass begin() const { return Pass(*this); }
  std::nullptr_t end() const { return nullptr; }
  int64_t size() const;  // batches of a pass

 private:
  std::vector<Tensor> tensors_;
  DataLoaderOptions options_;
};

}  // namespace strata::data
