#include "strata/graph.h"

#include <charconv>

#include "io/checksum.h"
#include "io/file.h"
#include "io/json.h"
#include "ir/parse.h"
#include "jit/compiled.h"
#include "jit/joint/restore.h"
#include "nn/graph_modes.h"
#include "strata/files.h"

namespace strata {

namespace {

constexpr const char* kFirst = "strata graph 1";

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw_error(ErrorKind::Runtime, str_cat("Graph::load: '", path, "' is damaged: ", what));
}

// What a graph's text says of its function; of nests only which tensors they hold, in order.
struct Held {
  int64_t forward_nodes = 0, outputs = 0;
  std::vector<int> tangent_of, wanted;
  std::vector<int64_t> arguments, results;
  bool step = false;
  std::string dtype, autocast;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& path)
      : json_(text, 64, [path](const std::string& what) { damaged(path, what); }) {}

  Held read() {
    Held held;
    std::string key;
    json_.begin_object();
    while (json_.key(key)) {
      if (key == "forward_nodes")
        held.forward_nodes = json_.signed_int();
      else if (key == "outputs")
        held.outputs = json_.signed_int();
      else if (key == "tangent_of")
        held.tangent_of = numbers();
      else if (key == "wanted")
        held.wanted = numbers();
      else if (key == "step")
        held.step = json_.boolean();
      else if (key == "arguments")
        tensors(held.arguments);
      else if (key == "results")
        tensors(held.results);
      else if (key == "default_dtype")
        held.dtype = json_.string();
      else if (key == "autocast" && json_.peek() == io::JsonReader::Kind::String)
        held.autocast = json_.string();
      else
        json_.skip();
    }
    json_.end();
    return held;
  }

 private:
  using Kind = io::JsonReader::Kind;
  std::vector<int> numbers() {
    std::vector<int> all;
    json_.begin_array();
    while (json_.more()) all.push_back(int(json_.signed_int()));
    return all;
  }
  // {"tensor": n} and {"input": n} wherever they stand.
  void tensors(std::vector<int64_t>& found) {
    std::string key;
    switch (json_.peek()) {
      case Kind::Null:
        return json_.null();
      case Kind::Bool:
        json_.boolean();
        return;
      case Kind::Number:
        json_.number();
        return;
      case Kind::String:
        json_.string();
        return;
      case Kind::Array:
        json_.begin_array();
        while (json_.more()) tensors(found);
        return;
      default:
        json_.begin_object();
        while (json_.key(key)) {
          const bool number = json_.peek() == Kind::Number;
          if (number && key == "tensor")
            found.push_back(json_.signed_int());
          else if (number && key == "input")
            found.push_back(-2 - json_.signed_int());
          else
            tensors(found);
        }
    }
  }
  io::JsonReader json_;
};

}  // namespace

Graph Graph::load(const std::string& path) {
  const auto source = io::Source::file(path);
  if (source->size() > 4 && source->text(0, 4) == "PK\x03\x04") return load_program(path);
  const std::string all = source->text(0, source->size());
  const size_t line = all.find('\n');
  const std::string first = all.substr(0, line), rest = line == std::string::npos ? "" : all.substr(line + 1);
  const std::string_view known = kFirst;
  if (first.rfind("strata graph ", 0) == 0 && first.rfind(known, 0) != 0)
    throw_error(ErrorKind::Runtime,
                str_cat("Graph::load: '", path, "' was written by another version: '", first, "'; save it again"));
  if (first != known) {
    char check[16];
    std::snprintf(check, sizeof check, " %08x", io::checksum(0, rest.data(), rest.size()));
    if (first != std::string(known) + check) damaged(path, "its check is not that of its text");
  }
  const size_t end = rest.find("\n}\n");
  if (end == std::string::npos) damaged(path, "expected what it says of its function");
  const Held held = Reader(std::string_view(rest).substr(0, end + 2), path).read();
  STRATA_CHECK_NOT_IMPLEMENTED(
      !held.step, "Graph::load: '", path,
      "' is a whole training step, which writes gradients and state; it runs from Python alone");
  Graph made;
  made.text_ = rest.substr(end + 3);
  NamedTensors weights = strata::load(path + ".weights");
  for (auto& [name, t] : weights) made.captured_.push_back(t);
  const std::optional<DType> autocast =
      held.autocast.empty() ? std::nullopt : std::optional<DType>(dtype_named(held.autocast, path));
  const Modes modes(dtype_named(held.dtype, path), autocast);
  made.compiled_ = std::make_shared<jit::Compiled>(jit::restore(
      ir::parse(made.text_, made.captured_), held.forward_nodes, held.outputs, held.tangent_of, held.wanted, false));
  made.inputs_ = made.compiled_->inputs();
  made.results_ = held.results;
  const int64_t count = int64_t(made.inputs_ + made.captured_.size());
  for (int64_t r : made.results_)
    if (r >= held.outputs || r == -1 || -2 - r >= count) damaged(path, "a result that is not there");
  int64_t tensors = 0;
  for (int64_t a : held.arguments) tensors = std::max(tensors, a + 1);
  if (size_t(tensors) != made.inputs_) damaged(path, "its arguments are not the graph's inputs");
  return made;
}

std::vector<Tensor> Graph::operator()(const std::vector<Tensor>& inputs) const {
  STRATA_CHECK_VALUE(inputs.size() == inputs_, "graph: expected ", inputs_, " tensors, got ", inputs.size());
  const std::vector<Tensor> outputs = call(inputs);
  std::vector<Tensor> results;
  for (int64_t r : results_) {
    const size_t known = size_t(-2 - r);
    results.push_back(r >= 0 ? outputs[size_t(r)] : known < inputs_ ? inputs[known] : captured_[known - inputs_]);
  }
  return results;
}

}  // namespace strata
