// PyTorch's names for programs in C++: namespace torch.
#pragma once
#include <torch/extension.h>

#include "strata/strata.h"
