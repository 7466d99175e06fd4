// Compiled objects in a folder, one file each, named by the hash of what they were compiled from. A file holds its
// whole key, text included, and is believed only when everything in it is as it was written and its key is the one
// asked for. Many processes share a folder: files appear by renaming, whole, and may vanish at any time. Plans of
// graphs (jit/compile/kept.h) lie beside them under another suffix.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/service/hash.h"

namespace strata::jit {

class DiskCache {
 public:
  static constexpr const char *kKernels = ".kernel", *kPlans = ".plan";
  // An empty folder or a limit of 0: nothing is kept.
  DiskCache(std::string folder, int64_t limit, const char* suffix = kKernels)
      : folder_(std::move(folder)), limit_(limit), suffix_(suffix) {}
  // As the environment says: STRATA_CACHE_DIR, else XDG_CACHE_HOME/strata, else ~/.cache/strata; STRATA_CACHE_BYTES.
  static DiskCache of_environment();

  struct Found {
    std::optional<std::string> object;
    bool refused = false;  // there was a file, which was not what it should be; it is removed
    std::string text;      // where it was asked for by its hash
  };
  // `maker`: who compiled, how, for which instruction set.
  Found load(std::string_view maker, std::string_view text) const;
  Found load(std::string_view maker, const Hash& text) const;
  void remove(std::string_view maker, std::string_view text) const;
  // Returns why it could not be written, or nothing.
  std::string store(std::string_view maker, std::string_view text, std::string_view object, int64_t* evicted) const;

  struct Size {
    int64_t files = 0, bytes = 0;  // files of this suffix; bytes of all
  };
  Size size() const;
  void clear() const;
  struct Key {
    std::string maker, text;
  };
  // Of the files that were used last, `most` of them at the most; what is damaged is left out.
  std::vector<Key> keys(size_t most) const;
  const std::string& folder() const { return folder_; }
  int64_t limit() const { return limit_; }
  bool on() const { return !folder_.empty() && limit_ > 0; }

 private:
  std::string path(std::string_view maker, const Hash& text) const;
  int64_t account(int64_t bytes) const;

  std::string folder_;
  int64_t limit_;
  const char* suffix_;
};

}  // namespace strata::jit
