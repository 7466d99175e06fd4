#include "jit/compile/texts.h"

#include <mutex>
#include <type_traits>
#include <unordered_map>

#include "jit/compile/bytes.h"

namespace strata::jit {

namespace {

// Bytes that are equal where kernels are. Each type is taken apart as a whole, so that a member more does not compile.
class Writer {
 public:
  template <class... T>
  void all(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return out_.take(); }

 private:
  template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T value) {
    out_.number(int64_t(value));
  }
  void put(const std::string& text) { out_.text(text); }
  template <class T, size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& v : values) put(v);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& v : values) put(v);
  }
  void put(const lower::Node& v) {
    const auto& [op, type, arg, imm, part, uniform, own, origin, name] = v;
    all(op, type, arg, imm, part, uniform, own, origin, name);
  }
  void put(const lower::Reduction& v) {
    const auto& [combine, accumulator, value, name, over, below, sequence, origin, guard, factor, chunk, of_chunks] = v;
    all(combine, accumulator, value, name, over, below, sequence, origin, guard, factor, chunk, of_chunks);
  }
  void put(const lower::Carry& v) {
    const auto& [kind, range, going, start, next, names] = v;
    all(kind, range, going, start, next, names);
  }
  void put(const lower::Operand& v) {
    const auto& [name, storage, per_row, held, broadcast] = v;
    all(name, storage, per_row, held, broadcast);
  }
  void put(const lower::Scalar& v) {
    const auto& [name, type] = v;
    all(name, type);
  }
  void put(const lower::Store& v) {
    const auto& [operand, value, part, scratch] = v;
    all(operand, value, part, scratch);
  }
  void put(const lower::Pass& v) {
    const auto& [nodes, stores, reductions, carries, elementwise] = v;
    all(nodes, stores, reductions, carries, elementwise);
  }
  void put(const lower::Kernel& v) {
    const auto& [name, source, text, kind, dtype, outputs, inputs, scalars, scratch, local_scratch, passes, lines,
                 rounds_inside, across, side_by_side, fused, borrowed, length, row_values] = v;
    all(name, source, text, kind, dtype, outputs, inputs, scalars, scratch, local_scratch, passes, lines, rounds_inside,
        across, side_by_side, fused, borrowed, length, row_values);
  }

  ByteWriter out_;
};

constexpr size_t kMost = 8 << 20;  // bytes that are remembered

}  // namespace

std::string text_of(const std::string& family, const lower::Kernel& kernel, lower::Isa isa) {
  static std::mutex lock;
  static std::unordered_map<std::string, std::string> known;
  static size_t bytes = 0;
  Writer writer;
  writer.all(family, kernel, isa);
  std::string key = writer.take();
  {
    std::lock_guard<std::mutex> hold(lock);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  std::string text = lower::print_file(family, {kernel}, isa);
  std::lock_guard<std::mutex> hold(lock);
  if (bytes > kMost) {
    known.clear();
    bytes = 0;
  }
  bytes += key.size() + text.size();
  known.emplace(std::move(key), text);
  return text;
}

}  // namespace strata::jit
