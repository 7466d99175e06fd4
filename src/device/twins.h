// Stand-ins of a device's tensors for one call of an operator: tensors of the same geometry, over storages that stand
// for the device's. Shapes have no memory; copies have the device's bytes on the CPU. What the call gives or changes is
// carried over to the device's tensors afterwards.
#pragma once
#include <unordered_map>
#include <vector>

#include "device/unit.h"
#include "dispatch/ivalue.h"
#include "dispatch/schema.h"

namespace strata::device {

class Twins {
 public:
  enum Kind { Shapes, Copies };
  Twins(Unit& unit, Kind kind) : unit_(unit), kind_(kind) {}

  // The arguments with stand-ins in the place of the device's tensors. Of copies the device's number is the CPU's.
  Stack of(const Stack& args);
  // The device's tensor for one that the call made or was given; memory that is new is made there. Other tensors are
  // given back as they are.
  Tensor back(const Tensor& t);
  Stack back(const Stack& results);
  // Sizes and memory that the call changed; of copies also the bytes of what the schema says is written.
  void carry_over(const Schema& schema, const Stack& args);
  int64_t bytes() const { return bytes_; }  // that were copied

 private:
  struct Pair {
    Tensor real, twin;
    Ref<Storage> storage;  // the twin's at first
    int64_t room;          // its bytes at first
  };
  Tensor twin_of(const Tensor& t);
  IValue twin_of(const IValue& v);
  Ref<Storage> storage_back(const Ref<Storage>& twin);

  Unit& unit_;
  const Kind kind_;
  std::vector<Pair> pairs_;
  std::unordered_map<const Storage*, Ref<Storage>> twins_, reals_;  // by real storage; by twin
  std::vector<Ref<Storage>> kept_;                                  // an address stays one storage's
  int64_t bytes_ = 0;
};

}  // namespace strata::device
