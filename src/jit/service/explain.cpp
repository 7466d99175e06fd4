#include "jit/service/explain.h"

#include <algorithm>

#include "base/error.h"

namespace strata::jit {

namespace {

constexpr size_t kMost = 4096;  // files that are looked at

// A maker's parts: "clang v4 PATH SIZE TIME", and flags on a line of their own.
struct Maker {
  std::string_view kind, isa, path, version, flags;
};

std::string_view cut(std::string_view& text, char at, bool last = false) {
  const size_t found = last ? text.rfind(at) : text.find(at);
  if (found == text.npos) return {};
  const std::string_view head = last ? text.substr(found + 1) : text.substr(0, found);
  text = last ? text.substr(0, found) : text.substr(found + 1);
  return head;
}

Maker parts_of(std::string_view maker) {
  Maker m;
  if (const size_t line = maker.find('\n'); line != maker.npos)
    m.flags = maker.substr(line + 1), maker = maker.substr(0, line);
  m.kind = cut(maker, ' ');
  m.isa = cut(maker, ' ');
  std::string_view path = maker;
  cut(path, ' ', true), cut(path, ' ', true);
  m.path = path;
  m.version = maker.substr(std::min(path.size() + 1, maker.size()));
  return m;
}

// What differs, and how many parts do.
std::pair<int, std::string> differences(std::string_view there, std::string_view wanted) {
  const Maker a = parts_of(there), b = parts_of(wanted);
  int count = 0;
  std::string out;
  auto compare = [&](const char* what, std::string_view x, std::string_view y, bool shown = true) {
    if (x == y) return;
    out += str_cat(count++ ? "; " : "", what, shown ? str_cat(": '", x, "' there, '", y, "' wanted") : std::string());
  };
  compare("compiler", a.kind, b.kind);
  compare("CPU features", a.isa, b.isa);
  compare("the compiler's file", a.path, b.path);
  compare("the compiler's version (its file has changed)", a.version, b.version, false);
  compare("flags", a.flags, b.flags);
  return {count, out};
}

std::string_view line_at(std::string_view text, size_t at) {
  const size_t begin = at ? text.rfind('\n', at - 1) + 1 : 0;  // npos + 1 is 0
  return text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
}

// A text without its instruction set's name, which is part of the names in it.
std::string plain(std::string_view text, std::string_view isa) {
  std::string out(text);
  const std::string prefix = str_cat(isa, '_');
  for (size_t at = 0; !isa.empty() && (at = out.find(prefix, at)) != out.npos;) out.erase(at, prefix.size());
  return out;
}

}  // namespace

std::string explain_miss(const DiskCache& disk, std::string_view maker, std::string_view text) {
  if (!disk.on()) return "the cache is off";
  const std::vector<DiskCache::Key> keys = disk.keys(kMost);
  std::pair<int, std::string> least{100, ""};
  const DiskCache::Key* near = nullptr;
  size_t longest = 0;
  const std::string_view isa = parts_of(maker).isa;
  const std::string wanted = plain(text, isa);
  for (const DiskCache::Key& k : keys) {
    if (k.maker.starts_with("device ")) continue;  // of devices (device/kernel_files.h)
    const std::string_view other = parts_of(k.maker).isa;
    if (k.text == text || (other != isa && plain(k.text, other) == wanted)) {
      if (k.maker != maker) least = std::min(least, differences(k.maker, maker));
      continue;
    }
    if (k.maker != maker) continue;
    const size_t same =
        size_t(std::mismatch(k.text.begin(), k.text.end(), text.begin(), text.end()).first - k.text.begin());
    if (!near || same > longest) near = &k, longest = same;
  }
  if (!least.second.empty()) return "the same text was there, made otherwise: " + least.second;
  if (!near) return "text: nothing that this compiler made was there";
  const auto line = 1 + std::count(text.begin(), text.begin() + int64_t(longest), '\n');
  return str_cat("text: none was there; the nearest differs first in line ", line, ": '", line_at(near->text, longest),
                 "' there, '", line_at(text, longest), "' wanted");
}

}  // namespace strata::jit
