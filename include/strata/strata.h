// Strata for programs in C++: tensors, operators, gradients, modules, optimisers, data, files, graphs. Everything here
// works without Python in the process.
//
//   #include <strata/strata.h>
//   auto x = strata::randn({2, 3}).requires_grad_();
//   (x.sin() * x).sum().backward();
//
// Operators are functions of the namespace strata and methods of Tensor, named as in Python; errors are strata::Error.
#pragma once
#include "strata/autograd.h"
#include "strata/data/loader.h"
#include "strata/files.h"
#include "strata/graph.h"
#include "strata/nn/nn.h"
#include "strata/optim/optim.h"
#include "strata/tensors.h"
