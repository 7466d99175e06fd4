#include "strata/data/loader.h"

#include "strata/autograd.h"

namespace strata::data {

DataLoader::DataLoader(std::vector<Tensor> tensors, DataLoaderOptions options)
    : tensors_(std::move(tensors)), options_(options) {
  STRATA_CHECK_VALUE(!tensors_.empty(), "DataLoader: expected at least one tensor");
  for (const Tensor& t : tensors_)
    STRATA_CHECK_VALUE(t.dim() > 0 && t.sizes()[0] == tensors_[0].sizes()[0],
                       "DataLoader: expected tensors of one size of the first dim");
  STRATA_CHECK_VALUE(options.batch_size > 0, "DataLoader: expected a batch size of at least 1, got ",
                     options.batch_size);
}

int64_t DataLoader::size() const {
  const int64_t rows = tensors_[0].sizes()[0], b = options_.batch_size;
  return options_.drop_last ? rows / b : (rows + b - 1) / b;
}

namespace {
int64_t drawn_seed() { return item<int64_t>(ops::random_(ops::empty({}, DType::I64))); }
}  // namespace

DataLoader::Pass::Pass(const DataLoader& loader) : loader_(&loader) {
  drawn_seed();  // of workers, which this loader does without
  if (!loader.options_.shuffle) return;
  order_ = ops::randperm(loader.tensors_[0].sizes()[0], Generator::make({}, uint64_t(drawn_seed())));
}

std::vector<Tensor> DataLoader::Pass::operator*() const {
  const NoGradGuard off;
  const int64_t rows = loader_->tensors_[0].sizes()[0], b = loader_->options_.batch_size;
  const int64_t first = at_ * b, past = std::min(first + b, rows);
  std::vector<Tensor> out;
  for (const Tensor& t : loader_->tensors_)
    out.push_back(order_.defined() ? ops::index_select(t, 0, ops::slice(order_, 0, first, past))
                                   : ops::slice(t, 0, first, past));
  return out;
}

}  // namespace strata::data
