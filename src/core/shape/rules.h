// All shape rules that the table names (`shape:`).
#pragma once
#include "core/shape/copy.h"
#include "core/shape/create.h"
#include "core/shape/gather.h"
#include "core/shape/move.h"
#include "core/shape/pad.h"
#include "core/shape/pool.h"
#include "core/shape/product.h"
#include "core/shape/scan.h"
#include "core/shape/scatter.h"
#include "core/shape/scatter_view.h"
#include "core/shape/search.h"
