// Runs a graph that Python saved, without Python:
//
//   strata_run GRAPH [IN.npy ...] [--out PREFIX] [--times N]
//
// Each input is a file of NumPy's format, in the order of the tensors among the function's arguments; result k goes to
// PREFIX<k>.npy ("out" unless given). --times runs it N times more and prints the median in microseconds.
#include <strata/graph.h>
#include <strata/tensors.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

using strata::DType;
using strata::Tensor;

struct Format {
  const char* text;  // NumPy's
  DType dtype;
};
constexpr Format kFormats[] = {{"<f4", DType::F32}, {"<f8", DType::F64},  {"<f2", DType::F16}, {"<i8", DType::I64},
                               {"<i4", DType::I32}, {"<i2", DType::I16},  {"|i1", DType::I8},  {"|u1", DType::U8},
                               {"<u2", DType::U16}, {"<u4", DType::U32},  {"<u8", DType::U64}, {"|b1", DType::Bool},
                               {"<c8", DType::C64}, {"<c16", DType::C128}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw strata::Error(strata::ErrorKind::Value, path + ": " + what);
}

// What stands behind a key of the header's dict.
std::string field(const std::string& header, const std::string& key, const std::string& path) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) refuse(path, "expected a file of NumPy's format, got one without '" + key + "'");
  return header.substr(header.find_first_not_of(' ', at + key.size() + 3));
}

Tensor read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "can't be opened");
  char magic[8] = {};
  file.read(magic, 8);
  if (!file || std::string(magic, 6) != "\x93NUMPY") refuse(path, "expected a file of NumPy's format (.npy)");
  uint32_t length = 0;
  file.read(reinterpret_cast<char*>(&length), magic[6] == 1 ? 2 : 4);
  if (!file || length > 1 << 20) refuse(path, "its header is damaged");
  std::string header(length, ' ');
  file.read(header.data(), length);
  const std::string kind = field(header, "descr", path), order = field(header, "fortran_order", path);
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [&](const Format& f) { return kind.rfind("'" + std::string(f.text) + "'", 0) == 0; });
  if (found == std::end(kFormats)) refuse(path, "has elements of a kind that is not known: " + kind.substr(0, 12));
  std::vector<int64_t> sizes;
  std::istringstream shape(field(header, "shape", path).substr(1));
  for (int64_t n; shape >> n; shape.ignore(1)) sizes.push_back(n);
  const bool transposed = order.rfind("True", 0) == 0;
  if (transposed) std::reverse(sizes.begin(), sizes.end());
  Tensor t = strata::empty(sizes, found->dtype);
  file.read(static_cast<char*>(t.data_ptr()), t.nbytes());
  if (file.gcount() != t.nbytes()) refuse(path, "ends before its last element");
  if (!transposed) return t;
  std::vector<int64_t> dims;
  for (int64_t d = t.dim(); d-- > 0;) dims.push_back(d);
  return t.permute(dims);
}

void write_npy(const Tensor& given, const std::string& path) {
  Tensor t = given.detach().contiguous();
  if (t.dtype() == DType::BF16) t = t.to(DType::F32);  // NumPy has none
  const auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.dtype == t.dtype(); });
  if (found == std::end(kFormats)) refuse(path, "NumPy has no elements of that dtype");
  std::string header = std::string("{'descr': '") + found->text + "', 'fortran_order': False, 'shape': (";
  for (int64_t n : t.sizes()) header += std::to_string(n) + ",";
  header += "), }";
  header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
  const uint16_t length = uint16_t(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(static_cast<const char*>(t.data_ptr()), t.nbytes());
  if (!file.flush()) refuse(path, "can't be written");
}

int run(int argc, char** argv) {
  std::string graph, prefix = "out";
  std::vector<Tensor> inputs;
  int times = 0;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--out" && k + 1 < argc)
      prefix = argv[++k];
    else if (word == "--times" && k + 1 < argc)
      times = std::atoi(argv[++k]);
    else if (graph.empty())
      graph = word;
    else
      inputs.push_back(read_npy(word));
  }
  if (graph.empty()) {
    std::cerr << "usage: strata_run GRAPH [IN.npy ...] [--out PREFIX] [--times N]\n";
    return 2;
  }
  const strata::Graph loaded = strata::Graph::load(graph);
  const std::vector<Tensor> results = loaded(inputs);
  for (size_t k = 0; k < results.size(); ++k) write_npy(results[k], prefix + std::to_string(k) + ".npy");
  std::vector<double> took;
  for (int k = 0; k < times; ++k) {
    const auto start = std::chrono::steady_clock::now();
    loaded(inputs);
    took.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(took.begin(), took.end());
  if (times) std::printf("%.1f us, the median of %d\n", took[took.size() / 2], times);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& error) {
  std::cerr << "strata_run: " << error.what() << "\n";
  return 1;
}
