// Graphs that Python captured: strata.graph(f, *inputs).save(path) or strata.export.save(program, path) writes one,
// this runs it, compiled, with the same bits.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace strata {

namespace jit {
class Compiled;
}

class Graph {
 public:
  // Reads the text at `path` and the tensors that the graph captured, at path.weights, or an exported program. Raises
  // Runtime for a file that is damaged, of another version or without its weights, NotImplemented for a whole training
  // step.
  static Graph load(const std::string& path);

  // The tensors among the function's arguments, in order, to those among its results; a result that is an argument is
  // that tensor. Raises Value for tensors whose shapes, strides or dtypes are not those of the capture. Kernels are
  // compiled at the first call.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  size_t inputs() const { return inputs_; }
  const std::string& text() const { return text_; }  // its operators

 private:
  struct Program;  // of an exported program whose sizes vary: what it was for which sizes
  static Graph load_program(const std::string& path);
  std::vector<Tensor> call(const std::vector<Tensor>& inputs) const;
  std::shared_ptr<Program> program_;
  std::shared_ptr<jit::Compiled> compiled_;
  std::vector<int64_t> results_;  // an output, or -2 - n for known tensor n: inputs, then captured ones
  std::vector<Tensor> captured_;
  size_t inputs_ = 0;
  std::string text_;
};

}  // namespace strata
