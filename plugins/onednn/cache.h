// The bounded table of plans, shared by all threads, least recently used out first.
// A key is the list of integers that decide a plan; a plan is built outside the lock, since that compiles code.
// A shape that the library declines is remembered as a null plan with its reason, so that asking again is cheap.
#pragma once

#include <array>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>

#include "common.h"

namespace strata::onednn {

struct Key {
  static constexpr int capacity = 48;
  std::array<int64_t, capacity> words;
  int count = 0;

  void add(int64_t word) { words[count++] = word; }
  void add(const int64_t* first, int n) {
    for (int i = 0; i < n; ++i) add(first[i]);
  }
  bool operator==(const Key& other) const {
    return count == other.count && std::memcmp(words.data(), other.words.data(), sizeof(int64_t) * count) == 0;
  }
};

struct KeyHash {
  // One multiplication a word: sizes are small numbers, so the high half has to be folded back each time.
  size_t operator()(const Key& key) const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < key.count; ++i) {
      unsigned __int128 product = (unsigned __int128)(h ^ (uint64_t)key.words[i]) * 0xd6e8feb86659fd93u;
      h = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return h;
  }
};

struct CachedPlan {
  std::shared_ptr<const Plan> plan;  // null: declined
  std::string reason;
};

class PlanCache {
 public:
  static PlanCache& instance();

  // The plan for key, made by make() if it is not known. Throws Unsupported for a declined one.
  template <class Make>
  std::shared_ptr<const Plan> get(const Key& key, Make&& make) {
    CachedPlan found;
    if (!find(key, found)) {
      try {
        found.plan = make();
      } catch (const Unsupported& e) {
        found.reason = e.reason;
      } catch (const dnnl::error& e) {
        if (e.status != dnnl_unimplemented) throw;
        found.reason = std::string("oneDNN has no kernel for this: ") + e.what();
      }
      insert(key, found);
    }
    if (!found.plan) throw Unsupported{found.reason};
    return std::move(found.plan);
  }

  void resize(int64_t capacity);
  void info(StrataLibraryCache& out);

 private:
  using Entry = std::pair<Key, CachedPlan>;

  bool find(const Key& key, CachedPlan& out);
  void insert(const Key& key, const CachedPlan& value);
  void trim();

  std::mutex mutex_;
  std::list<Entry> order_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> index_;
  int64_t capacity_ = 512, hits_ = 0, misses_ = 0;
};

}  // namespace strata::onednn
