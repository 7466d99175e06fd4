// Optimisers and schedules of the learning rate. They step by the operators that Python's do.
#pragma once
#include "strata/optim/adagrad.h"
#include "strata/optim/adam.h"
#include "strata/optim/lr_scheduler.h"
#include "strata/optim/sgd.h"
