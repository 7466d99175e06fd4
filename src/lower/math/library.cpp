#include "lower/math/library.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace strata::lower {

namespace {

struct Family {
  const char* name;
  const char* text;
  std::optional<std::vector<Function>> functions;  // once they are asked for
};

// Which texts define a name, found without parsing them: a definition begins a line, "f32 sin(f32 x)", and nothing else
// begins one with a letter.
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
    const auto where = families_of_.find(name);
    if (where == families_of_.end()) return none;
    std::vector<Function>& all = found_[name];
    for (size_t f : where->second)
      for (const Function& function : functions(families_[f]))
        if (function.name == name) all.push_back(function);
    return all;
  }

 private:
  void add(const char* name, const char* text) {
    const std::string_view all = text;
    for (size_t at = 0; at < all.size(); at = std::min(all.find('\n', at), all.size() - 1) + 1) {
      if (!std::isalpha(static_cast<unsigned char>(all[at]))) continue;
      const size_t end = all.find('(', at), begin = all.rfind(' ', end) + 1;
      std::vector<size_t>& list = families_of_[std::string(all.substr(begin, end - begin))];
      if (list.empty() || list.back() != families_.size()) list.push_back(families_.size());
    }
    families_.push_back({name, text, {}});
  }

  static const std::vector<Function>& functions(Family& f) {
    if (!f.functions) f.functions = parse_functions(f.text, f.name);
    return *f.functions;
  }

  std::mutex lock_;
  std::vector<Family> families_;
  std::unordered_map<std::string, std::vector<size_t>> families_of_;
  std::unordered_map<std::string, std::vector<Function>> found_;
};

}  // namespace

const std::vector<Function>& math_functions(const std::string& name) {
  static Library* library = new Library;  // texts may be read while the process ends
  return library->find(name);
}

}  // namespace strata::lower
