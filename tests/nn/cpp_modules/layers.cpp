// Activations, dropout, linear layers, norms, tables, distances, containers.
#include "harness.h"

void harness::layers() {
  const char* plain = "f:3,5";
  MODULE("nn.ReLU()", plain, nn::ReLU());
  MODULE("nn.ReLU6()", plain, nn::ReLU6());
  MODULE("nn.SELU()", plain, nn::SELU());
  MODULE("nn.SiLU()", plain, nn::SiLU());
  MODULE("nn.Mish()", plain, nn::Mish());
  MODULE("nn.Hardswish()", plain, nn::Hardswish());
  MODULE("nn.Hardsigmoid()", plain, nn::Hardsigmoid());
  MODULE("nn.Hardtanh()", plain, nn::Hardtanh());
  MODULE("nn.Hardtanh(-0.5, 0.25)", plain, nn::Hardtanh(-0.5, 0.25));
  MODULE("nn.Sigmoid()", plain, nn::Sigmoid());
  MODULE("nn.Tanh()", plain, nn::Tanh());
  MODULE("nn.LogSigmoid()", plain, nn::LogSigmoid());
  MODULE("nn.Softsign()", plain, nn::Softsign());
  MODULE("nn.Tanhshrink()", plain, nn::Tanhshrink());
  MODULE("nn.LeakyReLU()", plain, nn::LeakyReLU());
  MODULE("nn.LeakyReLU(0.2)", plain, nn::LeakyReLU(0.2));
  MODULE("nn.ELU()", plain, nn::ELU());
  MODULE("nn.ELU(0.5)", plain, nn::ELU(0.5));
  MODULE("nn.CELU()", plain, nn::CELU());
  MODULE("nn.CELU(0.5)", plain, nn::CELU(0.5));
  MODULE("nn.Softshrink()", plain, nn::Softshrink());
  MODULE("nn.Hardshrink(0.3)", plain, nn::Hardshrink(0.3));
  MODULE("nn.GELU()", plain, nn::GELU());
  MODULE("nn.GELU('tanh')", plain, nn::GELU("tanh"));
  MODULE("nn.GLU(0)", "f:4,3", nn::GLU(0));
  MODULE("nn.Softplus()", plain, nn::Softplus());
  MODULE("nn.Softplus(2, 1)", plain, nn::Softplus(2, 1));
  MODULE("nn.Threshold(0.1, 20)", plain, nn::Threshold(0.1, 20));
  MODULE("nn.RReLU()", plain, nn::RReLU());
  MODULE("nn.PReLU()", plain, nn::PReLU());
  MODULE("nn.PReLU(5, 0.5)", plain, nn::PReLU(5, 0.5));
  MODULE("nn.Softmax(1)", plain, nn::Softmax(1));
  MODULE("nn.LogSoftmax(0)", plain, nn::LogSoftmax(0));
  MODULE("nn.Softmin(1)", plain, nn::Softmin(1));
  MODULE("nn.Softmax2d()", "f:3,4,2", nn::Softmax2d());

  MODULE("nn.Dropout()", plain, nn::Dropout());
  MODULE("nn.Dropout1d(0.3)", "f:4,3,5", nn::Dropout1d(0.3));
  MODULE("nn.Dropout1d(0.3)", "f:8,5", nn::Dropout1d(0.3));
  MODULE("nn.Dropout2d(0.3)", "f:4,3,5,2", nn::Dropout2d(0.3));
  MODULE("nn.Dropout3d(0.3)", "f:4,3,5,2,2", nn::Dropout3d(0.3));
  MODULE("nn.Dropout3d(0.3)", "f:8,5,2,2", nn::Dropout3d(0.3));
  MODULE("nn.AlphaDropout(0.3)", plain, nn::AlphaDropout(0.3));
  MODULE("nn.FeatureAlphaDropout(0.3)", "f:4,3,5", nn::FeatureAlphaDropout(0.3));

  MODULE("nn.Identity()", plain, nn::Identity());
  MODULE("nn.Flatten()", "f:2,3,4", nn::Flatten());
  MODULE("nn.Flatten(0, 1)", "f:2,3,4", nn::Flatten(0, 1));
  MODULE("nn.Unflatten(1, (2, -1))", "f:3,6", nn::Unflatten(1, nn::Sizes{2, -1}));
  MODULE("nn.Linear(5, 4)", plain, nn::Linear(5, 4));
  MODULE("nn.Linear(5, 4, bias=False)", plain, nn::Linear(5, 4, false));
  MODULE("nn.Bilinear(3, 4, 5)", "f:2,3 f:2,4", nn::Bilinear(3, 4, 5));
  MODULE("nn.Bilinear(3, 4, 5, bias=False)", "f:2,3 f:2,4", nn::Bilinear(3, 4, 5, false));

  MODULE("nn.BatchNorm1d(5)", plain, nn::BatchNorm1d(5));
  MODULE("nn.BatchNorm1d(3, momentum=None)", "f:2,3,4",
         nn::BatchNorm1d(3, nn::BatchNormOptions{.momentum = std::nullopt}));
  MODULE("nn.BatchNorm2d(3, affine=False, eps=1e-3)", "f:2,3,4,5",
         nn::BatchNorm2d(3, nn::BatchNormOptions{.eps = 1e-3, .affine = false}));
  MODULE("nn.BatchNorm3d(3, track_running_stats=False, bias=False)", "f:2,3,4,5,2",
         nn::BatchNorm3d(3, nn::BatchNormOptions{.track_running_stats = false, .bias = false}));
  MODULE("nn.InstanceNorm1d(3)", "f:2,3,4", nn::InstanceNorm1d(3));
  MODULE("nn.InstanceNorm1d(3)", "f:3,4", nn::InstanceNorm1d(3));
  MODULE("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "f:2,3,4,5", [] {
    nn::InstanceNormOptions options;
    options.affine = options.track_running_stats = true;
    return nn::InstanceNorm2d(3, options);
  }());
  MODULE("nn.InstanceNorm3d(3)", "f:2,3,4,5,2", nn::InstanceNorm3d(3));
  MODULE("nn.LayerNorm(5)", plain, nn::LayerNorm(5));
  MODULE("nn.LayerNorm((3, 4), 1e-3, bias=False)", "f:2,3,4", nn::LayerNorm(nn::Sizes{3, 4}, 1e-3, true, false));
  MODULE("nn.LayerNorm(5, elementwise_affine=False)", plain, nn::LayerNorm(5, 1e-5, false));
  MODULE("nn.RMSNorm(5)", plain, nn::RMSNorm(5));
  MODULE("nn.RMSNorm((3, 4), 1e-3, False)", "f:2,3,4", nn::RMSNorm(nn::Sizes{3, 4}, 1e-3, false));
  MODULE("nn.GroupNorm(2, 6)", "f:2,6,3", nn::GroupNorm(2, 6));
  MODULE("nn.GroupNorm(3, 6, affine=False)", "f:2,6,3", nn::GroupNorm(3, 6, 1e-5, false));
  MODULE("nn.LocalResponseNorm(2)", "f:2,6,3", nn::LocalResponseNorm(2));
  MODULE("nn.LocalResponseNorm(3, 0.1, 0.5, 2)", "f:2,6,3,2", nn::LocalResponseNorm(3, 0.1, 0.5, 2));

  MODULE("nn.Embedding(7, 3)", "i7:2,4", nn::Embedding(7, 3));
  MODULE("nn.Embedding(7, 3, padding_idx=-2, max_norm=1.0)", "i7:2,4",
         nn::Embedding(7, 3, nn::EmbeddingOptions{.padding_idx = -2, .max_norm = 1.0}));
  MODULE("nn.Embedding(7, 3, scale_grad_by_freq=True)", "i7:5",
         nn::Embedding(7, 3, nn::EmbeddingOptions{.scale_grad_by_freq = true}));
  MODULE("nn.EmbeddingBag(7, 3)", "i7:2,4", nn::EmbeddingBag(7, 3));
  MODULE("nn.EmbeddingBag(7, 3, mode='sum', padding_idx=2)", "i7:5,4",
         nn::EmbeddingBag(7, 3, nn::EmbeddingBagOptions{.mode = "sum", .padding_idx = 2}));
  MODULE("nn.EmbeddingBag(7, 3, mode='max')", "i7:5,4", nn::EmbeddingBag(7, 3, nn::EmbeddingBagOptions{.mode = "max"}));
  MODULE_CALL("nn.EmbeddingBag(7, 3, mode='sum')", "m(x[0], x[1].cumsum(0) - x[1], x[2])", "i7:6 i3:4 f:6",
              m(x[0], strata::cumsum(x[1], 0) - x[1], x[2]),
              nn::EmbeddingBag(7, 3, nn::EmbeddingBagOptions{.mode = "sum"}));
  MODULE_CALL("nn.EmbeddingBag(7, 3, include_last_offset=True)", "m(x[0], x[1].cumsum(0) - x[1])", "i7:9 i3:4",
              m(x[0], strata::cumsum(x[1], 0) - x[1]),
              nn::EmbeddingBag(7, 3, nn::EmbeddingBagOptions{.include_last_offset = true}));

  MODULE("nn.PairwiseDistance()", "f:3,5 f:3,5", nn::PairwiseDistance());
  MODULE("nn.PairwiseDistance(1, keepdim=True)", "f:3,5 f:3,5", nn::PairwiseDistance(1, 1e-6, true));
  MODULE("nn.CosineSimilarity()", "f:3,5 f:3,5", nn::CosineSimilarity());
  MODULE("nn.CosineSimilarity(0, 1e-3)", "f:3,5 f:3,5", nn::CosineSimilarity(0, 1e-3));

  MODULE("nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))", plain,
         nn::Sequential{nn::Linear(5, 4), nn::ReLU(), nn::Linear(4, 2)});
  MODULE_CALL("nn.ModuleList([nn.Linear(5, 4), nn.Linear(4, 2)])", "m[1](m[0](*x))", plain,
              (*m)[1].forward((*m)[0].forward(x[0])), nn::ModuleList{nn::Linear(5, 4), nn::Linear(4, 2)});
  MODULE_CALL("nn.ModuleDict({'up': nn.Linear(5, 4), 'down': nn.Linear(4, 2)})", "m['down'](m['up'](*x))", plain,
              (*m)["down"].forward((*m)["up"].forward(x[0])), [] {
                nn::ModuleDict m;
                m->insert("up", nn::Linear(5, 4));
                m->insert("down", nn::Linear(4, 2));
                return m;
              }());
  MODULE_CALL("nn.ParameterList([strata.ones(5), strata.ones(3, 1)])", "m[0] * x[0] + m[1]", plain,
              (*m)[0] * x[0] + (*m)[1], nn::ParameterList(Tensors{strata::ones({5}), strata::ones({3, 1})}));
  MODULE_CALL("nn.ParameterDict({'a': strata.ones(5), 'b': strata.ones(3, 1)})", "m['a'] * x[0] + m['b']", plain,
              (*m)["a"] * x[0] + (*m)["b"], [] {
                nn::ParameterDict m;
                m->insert("a", strata::ones({5}));
                m->insert("b", strata::ones({3, 1}));
                return m;
              }());
}
