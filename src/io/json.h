// JSON as files need it: a reader that hands out one value after the other and keeps nothing, strict about grammar,
// UTF-8 and nesting; and the few functions that write it. Grammar: RFC 8259.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::io {

bool is_utf8(std::string_view text);  // well-formed: no surrogates, no overlong forms

class JsonReader {
 public:
  enum class Kind { Null, Bool, Number, String, Array, Object };
  struct Number {
    bool whole;       // an integer within 64 bits, signed or unsigned
    bool negative;    // of whole ones
    int64_t integer;  // the bits of an unsigned one above 2^63
    double real;
  };
  // `refuse` must throw; it gets what is wrong.
  JsonReader(std::string_view text, int max_depth, std::function<void(const std::string&)> refuse);

  Kind peek();
  void null();
  bool boolean();
  Number number();
  uint64_t unsigned_int();  // raises for anything else
  int64_t signed_int();
  std::string string();
  // An array: begin_array(), then for each element `while (more())` one read.
  void begin_array();
  void skip();  // any value
  bool more();
  // An object: begin_object(), then `while (key(k))` and one read. Keys may repeat; the caller decides.
  void begin_object();
  bool key(std::string& name);
  void end();  // raises where something else than space follows
  [[noreturn]] void fail(const std::string& what);

 private:
  void space();
  void expect(std::string_view word);
  void open(char bracket);
  bool next_item(char close);
  unsigned hex4();

  std::string_view text_;
  size_t at_ = 0;
  int max_depth_;
  std::vector<bool> first_;  // of each open array or object: nothing was read yet
  std::function<void(const std::string&)> refuse_;
};

void write_json_string(std::string& out, std::string_view text);  // text must be UTF-8
void write_json_real(std::string& out, double value);             // finite; reads back to the same bits

}  // namespace strata::io
