// Convolutions, padding, pooling, images.
#include "harness.h"

#define PADS(KIND)                                                                              \
  MODULE("nn." #KIND "1d(2)", "f:2,3,5", nn::KIND##1d(2));                                      \
  MODULE("nn." #KIND "2d((1, 0, 2, 1))", "f:2,3,5,4", nn::KIND##2d(nn::PerDim<4>{1, 0, 2, 1})); \
  MODULE("nn." #KIND "3d(1)", "f:2,3,5,4,3", nn::KIND##3d(1))

void harness::images() {
  MODULE("nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)", "f:2,4,9",
         nn::Conv1d(4, 6, 3, nn::Conv1dOptions{.stride = 2, .padding = 1, .groups = 2}));
  MODULE("nn.Conv2d(3, 4, (3, 2), padding=(1, 0), dilation=2, bias=False)", "f:2,3,7,6",
         nn::Conv2d(3, 4, nn::PerDim<2>{3, 2}, nn::Conv2dOptions{.padding = {1, 0}, .dilation = 2, .bias = false}));
  MODULE("nn.Conv2d(3, 4, (3, 2), padding='same')", "f:2,3,7,6",
         nn::Conv2d(3, 4, nn::PerDim<2>{3, 2}, nn::Conv2dOptions{.padding = "same"}));
  MODULE("nn.Conv2d(3, 4, 3, padding='valid')", "f:3,7,6", nn::Conv2d(3, 4, 3, nn::Conv2dOptions{.padding = "valid"}));
  MODULE("nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode='reflect')", "f:2,3,7,6",
         nn::Conv2d(3, 4, 3, nn::Conv2dOptions{.padding = {1, 2}, .padding_mode = "reflect"}));
  MODULE("nn.Conv3d(2, 3, 2, padding='same', padding_mode='circular')", "f:2,2,4,5,3",
         nn::Conv3d(2, 3, 2, nn::Conv3dOptions{.padding = "same", .padding_mode = "circular"}));
  MODULE("nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2)", "f:2,4,5",
         nn::ConvTranspose1d(4, 6, 3, nn::ConvTranspose1dOptions{.stride = 2, .groups = 2}));
  MODULE("nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1, bias=False)", "f:2,3,5,4",
         nn::ConvTranspose2d(
             3, 4, 3, nn::ConvTranspose2dOptions{.stride = 2, .padding = 1, .output_padding = 1, .bias = false}));
  MODULE_CALL("nn.ConvTranspose2d(3, 4, 3, stride=3)", "m(*x, [14, 12])", "f:2,3,4,4",
              m(x[0], std::vector<int64_t>{14, 12}),
              nn::ConvTranspose2d(3, 4, 3, nn::ConvTranspose2dOptions{.stride = 3}));
  MODULE("nn.ConvTranspose3d(2, 3, 2, dilation=2)", "f:2,2,4,3,3",
         nn::ConvTranspose3d(2, 3, 2, nn::ConvTranspose3dOptions{.dilation = 2}));

  MODULE("nn.ConstantPad1d(2, 0.5)", "f:2,3,5", nn::ConstantPad1d(2, 0.5));
  MODULE("nn.ConstantPad2d((1, 0, -2, 1), 0.5)", "f:2,3,5,4", nn::ConstantPad2d(nn::PerDim<4>{1, 0, -2, 1}, 0.5));
  MODULE("nn.ConstantPad3d(1, 0.5)", "f:2,3,5,4,3", nn::ConstantPad3d(1, 0.5));
  PADS(ZeroPad);
  PADS(ReflectionPad);
  PADS(ReplicationPad);
  PADS(CircularPad);

  MODULE("nn.MaxPool1d(3)", "f:2,3,10", nn::MaxPool1d(3));
  MODULE("nn.MaxPool2d(3, 2, padding=1, dilation=2, ceil_mode=True)", "f:2,3,10,9",
         nn::MaxPool2d(3, nn::MaxPool2dOptions{.stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true}));
  MODULE("nn.MaxPool3d(2)", "f:2,3,5,4,6", nn::MaxPool3d(2));
  MODULE_CALL("nn.MaxPool1d(3, 2, return_indices=True)", "m(*x)", "f:2,3,10", m->forward_with_indices(x[0]),
              nn::MaxPool1d(3, nn::MaxPool1dOptions{.stride = 2}));
  MODULE_CALL("nn.MaxPool2d(2, return_indices=True)", "m(*x)", "f:2,3,6,4", m->forward_with_indices(x[0]),
              nn::MaxPool2d(2));
  MODULE_CALL("nn.MaxPool3d(2, return_indices=True)", "m(*x)", "f:2,3,4,4,4", m->forward_with_indices(x[0]),
              nn::MaxPool3d(2));
  MODULE_CALL("nn.MaxUnpool1d(2)", "m(x[0], strata.arange(6).reshape(1, 2, 3))", "f:1,2,3",
              m(x[0], strata::arange(strata::Scalar(6)).reshape({1, 2, 3})), nn::MaxUnpool1d(2));
  MODULE_CALL("nn.MaxUnpool2d(2)", "m(x[0], strata.arange(8).reshape(1, 2, 2, 2), [5, 4])", "f:1,2,2,2",
              m(x[0], strata::arange(strata::Scalar(8)).reshape({1, 2, 2, 2}), std::vector<int64_t>{5, 4}),
              nn::MaxUnpool2d(2));
  MODULE_CALL("nn.MaxUnpool3d(2)", "m(x[0], strata.arange(8).reshape(1, 1, 2, 2, 2))", "f:1,1,2,2,2",
              m(x[0], strata::arange(strata::Scalar(8)).reshape({1, 1, 2, 2, 2})), nn::MaxUnpool3d(2));
  MODULE("nn.AvgPool1d(3, 2, 1)", "f:2,3,10", nn::AvgPool1d(3, nn::AvgPool1dOptions{.stride = 2, .padding = 1}));
  MODULE("nn.AvgPool2d(3, padding=1, ceil_mode=True, count_include_pad=False)", "f:2,3,10,9",
         nn::AvgPool2d(3, nn::AvgPool2dOptions{.padding = 1, .ceil_mode = true, .count_include_pad = false}));
  MODULE("nn.AvgPool3d(2, divisor_override=5)", "f:2,3,5,4,6",
         nn::AvgPool3d(2, nn::AvgPool3dOptions{.divisor_override = 5}));
  MODULE("nn.LPPool1d(2, 3)", "r:2,3,10", nn::LPPool1d(2, 3));
  MODULE("nn.LPPool2d(3, (2, 3), 2, True)", "r:2,3,7,8", nn::LPPool2d(3, nn::PerDim<2>{2, 3}, nn::PerDim<2>(2), true));
  MODULE("nn.LPPool3d(float('inf'), 2)", "f:2,3,4,4,4", nn::LPPool3d(INFINITY, 2));
  MODULE("nn.AdaptiveAvgPool1d(3)", "f:2,3,10", nn::AdaptiveAvgPool1d(3));
  MODULE("nn.AdaptiveAvgPool2d((3, None))", "f:2,3,7,5", nn::AdaptiveAvgPool2d(nn::PerDim<2>{3, -1}));
  MODULE("nn.AdaptiveAvgPool3d(2)", "f:2,3,7,5,3", nn::AdaptiveAvgPool3d(2));
  MODULE("nn.AdaptiveMaxPool1d(3)", "f:2,3,10", nn::AdaptiveMaxPool1d(3));
  MODULE("nn.AdaptiveMaxPool2d((3, None))", "f:2,3,7,5", nn::AdaptiveMaxPool2d(nn::PerDim<2>{3, -1}));
  MODULE_CALL("nn.AdaptiveMaxPool3d(2, True)", "m(*x)", "f:2,3,7,5,3", m->forward_with_indices(x[0]),
              nn::AdaptiveMaxPool3d(2));
  MODULE("nn.FractionalMaxPool2d(2, output_size=(3, 2))", "f:2,3,8,7",
         nn::FractionalMaxPool2d(2, nn::FractionalMaxPool2dOptions{.output_size = nn::PerDim<2>{3, 2}}));
  MODULE("nn.FractionalMaxPool3d(2, output_ratio=0.5)", "f:2,3,8,7,6",
         nn::FractionalMaxPool3d(2, nn::FractionalMaxPool3dOptions{.output_ratio = 0.5}));

  MODULE("nn.PixelShuffle(2)", "f:2,8,3,4", nn::PixelShuffle(2));
  MODULE("nn.PixelUnshuffle(2)", "f:2,3,4,6", nn::PixelUnshuffle(2));
  MODULE("nn.ChannelShuffle(2)", "f:2,6,3", nn::ChannelShuffle(2));
  MODULE("nn.Unfold(3, padding=1, stride=2)", "f:2,3,6,5", nn::Unfold(3, nn::FoldOptions{.padding = 1, .stride = 2}));
  MODULE("nn.Fold((6, 5), 3, padding=1, stride=2)", "f:2,18,9",
         nn::Fold(nn::PerDim<2>{6, 5}, 3, nn::FoldOptions{.padding = 1, .stride = 2}));
  MODULE("nn.Upsample(scale_factor=2.5)", "f:2,3,4", nn::Upsample(nn::UpsampleOptions{.scale_factor = {2.5}}));
  MODULE("nn.Upsample(size=(5, 7), mode='bicubic')", "f:2,3,4,3",
         nn::Upsample(nn::UpsampleOptions{.size = {5, 7}, .mode = "bicubic"}));
  MODULE("nn.Upsample(scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)", "f:2,3,4,3",
         nn::Upsample(nn::UpsampleOptions{.scale_factor = {1.7}, .mode = "bilinear", .recompute_scale_factor = true}));
  MODULE("nn.Upsample(scale_factor=2, mode='trilinear', align_corners=True)", "f:2,3,4,3,2",
         nn::Upsample(nn::UpsampleOptions{.scale_factor = {2}, .mode = "trilinear", .align_corners = true}));
  MODULE("nn.Upsample(size=7, mode='linear')", "f:2,3,4",
         nn::Upsample(nn::UpsampleOptions{.size = {7}, .mode = "linear"}));
  MODULE("nn.Upsample(size=7, mode='nearest-exact')", "f:2,3,4,5",
         nn::Upsample(nn::UpsampleOptions{.size = {7}, .mode = "nearest-exact"}));
  MODULE("nn.Upsample(size=3, mode='area')", "f:2,3,4,5",
         nn::Upsample(nn::UpsampleOptions{.size = {3}, .mode = "area"}));
  MODULE("nn.UpsamplingNearest2d(scale_factor=2)", "f:2,3,4,5",
         nn::UpsamplingNearest2d(nn::UpsampleOptions{.scale_factor = {2}}));
  MODULE("nn.UpsamplingBilinear2d(size=(6, 7))", "f:2,3,4,5",
         nn::UpsamplingBilinear2d(nn::UpsampleOptions{.size = {6, 7}}));
}
