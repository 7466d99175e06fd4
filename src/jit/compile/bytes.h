// Numbers and texts as bytes, small numbers as few of them; read back in the order in which they were written.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::jit {

class ByteWriter {
 public:
  void number(int64_t value);
  void real(double value);
  void text(std::string_view value);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Bytes that end too soon give zeros and empty texts, and good() is false from there on.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}
  int64_t number();
  double real();
  std::string text();
  size_t count();  // of what follows: at most as many as there are bytes left
  bool good() const { return good_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace strata::jit
