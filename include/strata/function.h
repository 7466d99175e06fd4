// Functions with a derivative of their own: strata::Function.
#pragma once
#include "grad/engine/function.h"
#include "strata/autograd.h"
