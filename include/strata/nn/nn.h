// Modules: layers, containers, losses.
#pragma once
#include "strata/nn/activation.h"
#include "strata/nn/container.h"
#include "strata/nn/conv.h"
#include "strata/nn/init.h"
#include "strata/nn/linear.h"
#include "strata/nn/loss.h"
#include "strata/nn/norm.h"
#include "strata/nn/pooling.h"
