// Programs of strata.export.save: strata/export/_archive.py says what is in the archive.
#include <map>
#include <mutex>

#include "io/json.h"
#include "io/load.h"
#include "io/zip.h"
#include "ir/parse.h"
#include "jit/compiled.h"
#include "jit/trace/instantiate.h"
#include "nn/graph_modes.h"
#include "strata/graph.h"

namespace strata {

namespace {

constexpr const char* kFormat = "strata pt2";
constexpr const char* kVersion = "1";

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw_error(ErrorKind::Runtime, str_cat("Graph::load: '", path, "' is damaged: ", what));
}

// What the model says of a program, as far as C++ needs it.
struct Model {
  std::vector<std::string> captures;
  std::vector<int64_t> results;  // which of the graph's results each tensor of the output is
  std::string dtype, autocast;
};

class ModelReader {
 public:
  ModelReader(std::string_view text, const std::string& path)
      : json_(text, 128, [path](const std::string& what) { damaged(path, what); }) {}

  Model read() {
    Model m;
    std::string key;
    json_.begin_object();
    while (json_.key(key)) {
      if (key == "captures") {
        json_.begin_array();
        while (json_.more()) m.captures.push_back(json_.string());
      } else if (key == "results") {
        json_.begin_array();
        while (json_.more()) result(m);
      } else if (key == "default_dtype") {
        m.dtype = json_.string();
      } else if (key == "autocast" && json_.peek() == Kind::String) {
        m.autocast = json_.string();
      } else {
        json_.skip();
      }
    }
    json_.end();
    return m;
  }

 private:
  using Kind = io::JsonReader::Kind;
  // ["tensor", 0], ["constant", value] or ["size", expression]
  void result(Model& m) {
    json_.begin_array();
    if (!json_.more()) json_.fail("expected a kind of result");
    const bool tensor = json_.string() == "tensor";
    if (!json_.more()) json_.fail("expected a result");
    if (tensor)
      m.results.push_back(json_.signed_int());
    else
      json_.skip();
    if (json_.more()) json_.fail("expected the end of a result");
  }
  io::JsonReader json_;
};

std::shared_ptr<jit::Compiled> compiled_for(const ir::Graph& whole, const std::vector<Tensor>& inputs) {
  jit::Captured captured;
  captured.graph = instantiate(whole, inputs);
  captured.autocast = {};  // casts are in the graph
  captured.forward_nodes = captured.graph.body.nodes.size();
  captured.outputs = captured.graph.body.results.size();
  return std::make_shared<jit::Compiled>(std::move(captured));
}

constexpr size_t kMostSizes = 64;  // for which plans are kept

}  // namespace

struct Graph::Program {
  ir::Graph whole;
  DType dtype;
  std::optional<DType> autocast;
  std::mutex lock;
  std::map<std::vector<int64_t>, std::shared_ptr<jit::Compiled>> known;  // by sizes and strides of the inputs
};

std::vector<Tensor> Graph::call(const std::vector<Tensor>& inputs) const {
  if (!program_) return compiled_->call(inputs);
  std::vector<int64_t> key;
  for (const Tensor& t : inputs) {
    STRATA_CHECK_VALUE(t.defined(), "graph: expected tensors, got None");
    key.insert(key.end(), t.sizes().begin(), t.sizes().end());
    key.insert(key.end(), t.strides().begin(), t.strides().end());
    key.push_back(int64_t(t.dtype()));
  }
  std::shared_ptr<jit::Compiled> found;
  {
    std::lock_guard<std::mutex> hold(program_->lock);
    std::shared_ptr<jit::Compiled>& known = program_->known[key];
    if (!known) {
      try {
        const Modes modes(program_->dtype, program_->autocast);
        std::vector<Tensor> like;
        for (const Tensor& t : inputs)
          like.push_back(make_tensor_strided(t.sizes(), t.strides(), t.dtype(), t.device(), true));
        known = compiled_for(program_->whole, like);
      } catch (...) {
        program_->known.erase(key);
        throw;
      }
    }
    found = known;
    if (program_->known.size() > kMostSizes) {
      program_->known.clear();
      program_->known[key] = found;
    }
  }
  return found->call(inputs);
}

Graph Graph::load_program(const std::string& path) {
  const auto source = io::Source::file(path);
  const io::ZipReader zip(*source);
  auto entry = [&](const char* name) {
    const io::ZipEntry* e = zip.find(name);
    if (!e) damaged(path, str_cat("it has no entry '", name, "'"));
    return zip.text(*e);
  };
  const io::ZipEntry* format = zip.find("archive_format");
  STRATA_CHECK(format && zip.text(*format) == kFormat, "Graph::load: '", path,
               "': expected a program of strata.export.save, got another archive");
  const std::string version = entry("archive_version");
  STRATA_CHECK(version == kVersion, "Graph::load: '", path, "' was written by another version: '", version,
               "'; export it again");
  const Model model = ModelReader(entry("models/model.json"), path).read();
  Graph made;
  made.text_ = entry("models/model.graph");
  const std::string packed = entry("data/weights");
  const io::Value root = io::load(*io::Source::memory(packed, path + ":data/weights"));
  if (!root.dict()) damaged(path, "expected named tensors in data/weights");
  for (const std::string& name : model.captures) {
    Tensor found;
    for (const auto& [key, value] : root.dict()->items)
      if (key.str() && *key.str() == name && value.tensor()) found = value.tensor()->tensor;
    if (!found.defined()) damaged(path, str_cat("there is no tensor '", name, "' in data/weights"));
    made.captured_.push_back(found);
  }
  const std::optional<DType> autocast =
      model.autocast.empty() ? std::nullopt : std::optional<DType>(dtype_named(model.autocast, path));
  const Modes modes(dtype_named(model.dtype, path), autocast);
  const ir::Graph whole = ir::parse(made.text_, made.captured_);
  for (ir::Id v : whole.body.results)
    if (v == ir::kNone) damaged(path, "a result is None");
  made.inputs_ = whole.inputs();
  if (varies(whole)) {
    made.program_ = std::make_shared<Program>();
    made.program_->whole = whole;
    made.program_->dtype = default_dtype();
    made.program_->autocast = autocast;
  } else {
    made.compiled_ = compiled_for(whole, inputs_like(whole));
  }
  made.results_ = model.results;
  for (int64_t r : made.results_)
    if (r < 0 || size_t(r) >= whole.body.results.size()) damaged(path, "a result that is not there");
  return made;
}

}  // namespace strata
