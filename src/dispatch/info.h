// What the table says of an operator, at run time: OpInfo, generated from ops/*.yaml. The record behind an operator is
// constant data, read where it is asked for; its first field is the source.
#pragma once
#include <optional>
#include <string>

#include "dispatch/operator.h"
#include "strata/generated/op_info.h"

namespace strata {

// None of operators that the table lacks.
std::optional<OpInfo> info(const Operator& op);

// The operator that computes the same and writes nothing: of an in-place or out= form its entry's, of an entry that
// writes what that names. Null where there is none.
Operator* functional_twin(const Operator& op);
// Whether the operator was made of one that writes, to be its twin (dispatch/boxed.h); and that one.
bool is_made_twin(const Operator& op);
Operator& twin_writes(const Operator& twin);

// The schema and all that info() gives, for people.
std::string describe(const Operator& op);

}  // namespace strata
