#include "lower/math/library.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace strata::lower {

namespace {

// A function in its text. Found without parsing: a definition begins a line, "f32 sin(f32 x)", and nothing else begins
// one with a letter.
struct Definition {
  const char* family;
  std::string_view text;
};

// Functions are parsed one by one, when they are asked for: a kernel needs a few of hundreds.
class Library {
 public:
  Library() {
    for (const MathText* m = math_texts(); m->name; ++m) add(m->name, m->text);
    add("complex functions", complex_text);
  }

  const std::vector<Function>& find(const std::string& name) {
    static const std::vector<Function> none;
    std::lock_guard<std::mutex> hold(lock_);
    if (auto known = found_.find(name); known != found_.end()) return known->second;
    const auto where = definitions_.find(name);
    if (where == definitions_.end()) return none;
    std::vector<Function>& all = found_[name];
    for (const Definition& d : where->second)
      for (Function& f : parse_functions(d.text, d.family)) all.push_back(std::move(f));
    return all;
  }

 private:
  void add(const char* family, std::string_view text) {
    Definition* last = nullptr;
    size_t began = 0;
    for (size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
      if (!std::isalpha(static_cast<unsigned char>(text[at]))) continue;
      if (last) last->text = text.substr(began, at - began);
      const size_t end = text.find('(', at), begin = text.rfind(' ', end) + 1;
      std::vector<Definition>& list = definitions_[text.substr(begin, end - begin)];
      list.push_back({family, text.substr(at)});
      last = &list.back();
      began = at;
    }
  }

  std::mutex lock_;
  std::unordered_map<std::string_view, std::vector<Definition>> definitions_;
  std::unordered_map<std::string, std::vector<Function>> found_;
};

}  // namespace

const std::vector<Function>& math_functions(const std::string& name) {
  static Library* library = new Library;  // texts may be read while the process ends
  return library->find(name);
}

}  // namespace strata::lower
