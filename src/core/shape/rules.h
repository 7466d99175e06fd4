// All shape rules that the table names (`shape:`).
#pragma once
#include "core/shape/gather.h"
#include "core/shape/pool.h"
