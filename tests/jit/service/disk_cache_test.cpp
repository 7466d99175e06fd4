// What the cache on disk gives back is what was stored, or nothing.
#include "jit/service/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <random>

#include "kit.h"

namespace strata::jit::test {
namespace {

std::string object(size_t bytes, char fill = 'o') { return std::string(bytes, fill); }

std::string store(const DiskCache& cache, const std::string& text, const std::string& what,
                  int64_t* evicted = nullptr) {
  int64_t unasked;
  return cache.store("maker", text, what, evicted ? evicted : &unasked);
}

TEST(DiskCache, GivesBackWhatWasStored) {
  Folder folder;
  DiskCache cache(folder.path() + "/new/folder", 1 << 20);
  EXPECT_FALSE(cache.load("maker", "text").object);
  EXPECT_EQ(store(cache, "text", object(100)), "");
  EXPECT_EQ(cache.load("maker", "text").object, object(100));
  EXPECT_FALSE(cache.load("another", "text").object);
  EXPECT_FALSE(cache.load("maker", "texts").object);
  EXPECT_EQ(store(cache, "text", object(50)), "");  // the last one stays
  EXPECT_EQ(cache.load("maker", "text").object, object(50));
  EXPECT_EQ(cache.size().files, 1);
  struct stat s;
  ASSERT_EQ(stat(cache.folder().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  cache.clear();
  EXPECT_EQ(cache.size().files, 0);
  EXPECT_FALSE(cache.load("maker", "text").object);
}

TEST(DiskCache, FindsATextByItsHash) {
  Folder folder;
  DiskCache cache(folder.path(), 1 << 20);
  store(cache, "text", object(100));
  const DiskCache::Found found = cache.load("maker", hash("text"));
  EXPECT_EQ(found.object, object(100));
  EXPECT_EQ(found.text, "text");
  EXPECT_FALSE(cache.load("maker", hash("texts")).object);
  EXPECT_FALSE(cache.load("another", hash("text")).object);
}

TEST(DiskCache, PlansLieBesideKernels) {
  Folder folder;
  DiskCache kernels(folder.path(), 10000), plans(folder.path(), 10000, DiskCache::kPlans);
  store(kernels, "text", object(100, 'k'));
  store(plans, "text", object(100, 'p'));
  EXPECT_EQ(kernels.load("maker", "text").object, object(100, 'k'));
  EXPECT_EQ(plans.load("maker", "text").object, object(100, 'p'));
  EXPECT_EQ(kernels.size().files, 1);
  EXPECT_EQ(kernels.size().bytes, plans.size().bytes);
  EXPECT_EQ(kernels.keys(10).size(), 1u);
  int64_t evicted = 0;
  for (int i = 0; i < 20 && !evicted; ++i) store(plans, str_cat("text ", i), object(1000), &evicted);
  EXPECT_GT(evicted, 0);  // one limit for both
  kernels.clear();
  EXPECT_TRUE(folder.files().empty());
}

TEST(DiskCache, KeepsNothingWithoutFolderOrRoom) {
  DiskCache none("", 1 << 20);
  EXPECT_NE(store(none, "text", object(1)), "");
  Folder folder;
  DiskCache off(folder.path(), 0);
  EXPECT_EQ(store(off, "text", object(1)), "");
  EXPECT_TRUE(folder.files().empty());
  DiskCache small(folder.path(), 100);
  EXPECT_EQ(store(small, "text", object(101)), "");
  EXPECT_TRUE(folder.files().empty());
}

TEST(DiskCache, AFlippedBitOrACutGivesNothing) {
  Folder folder;
  DiskCache cache(folder.path(), 1 << 20);
  std::string text = "a text of some length", kept;
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) kept += char(random());
  store(cache, text, kept);
  const std::string path = folder.files().at(0), good = read_file(path);
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good;
    if (round % 3)
      bad[random() % bad.size()] ^= char(1 << random() % 8);
    else
      bad.resize(random() % bad.size());
    write_file(path, bad);
    DiskCache::Found found = cache.load("maker", text);
    ASSERT_FALSE(found.object);
    ASSERT_TRUE(found.refused);
    ASSERT_NE(access(path.c_str(), F_OK), 0);  // removed
  }
  write_file(path, good + "x");
  EXPECT_FALSE(cache.load("maker", text).object);
  write_file(path, good);
  EXPECT_EQ(cache.load("maker", text).object, kept);
}

TEST(DiskCache, AnotherKeysFileGivesNothing) {
  Folder folder;
  DiskCache cache(folder.path(), 1 << 20);
  store(cache, "one", object(10, '1'));
  const std::string first = folder.files().at(0), bytes = read_file(first);
  cache.clear();
  store(cache, "two", object(10, '2'));
  write_file(folder.files().at(0), bytes);  // whole, under the name of the other
  EXPECT_FALSE(cache.load("maker", "two").object);
}

TEST(DiskCache, TheOldestByUseGoFirst) {
  Folder folder;
  constexpr int64_t kLimit = 20000;
  DiskCache cache(folder.path(), kLimit);
  int64_t evicted = 0, all = 0;
  auto age = [&](int hours) {  // of all files that have not been aged yet
    for (const std::string& f : folder.files()) {
      struct stat s;
      stat(f.c_str(), &s);
      const time_t then = time(nullptr) - 3600 * hours;
      if (time(nullptr) - s.st_mtime < 1800) {
        utimbuf when{then, then};
        utime(f.c_str(), &when);
      }
    }
  };
  for (int i = 0; i < 15; ++i) {
    store(cache, "text " + std::to_string(i), object(1000), &evicted);
    all += evicted;
    age(100 - i);
  }
  EXPECT_EQ(all, 0);
  EXPECT_TRUE(cache.load("maker", "text 0").object);  // used: now the youngest
  for (int i = 15; i < 40; ++i) {
    store(cache, "text " + std::to_string(i), object(1000), &evicted);
    all += evicted;
    EXPECT_LE(cache.size().bytes, kLimit);
    if (i == 20) {
      EXPECT_FALSE(cache.load("maker", "text 1").object);
      EXPECT_TRUE(cache.load("maker", "text 0").object);
    }
  }
  EXPECT_GT(all, 15);
  EXPECT_TRUE(cache.load("maker", "text 39").object);
  // What others wrote or removed is found out.
  write_file(folder.path() + "/total", "not a number");
  store(cache, "text", object(1000), &evicted);
  EXPECT_LE(cache.size().bytes, kLimit);
}

TEST(DiskCache, OthersFilesStay) {
  Folder folder;
  DiskCache cache(folder.path(), 3000);
  write_file(folder.path() + "/mine.txt", object(10000));
  for (int i = 0; i < 5; ++i) store(cache, std::to_string(i), object(1000));
  cache.clear();
  EXPECT_EQ(read_file(folder.path() + "/mine.txt").size(), 10000u);
}

TEST(DiskCache, LinksAreNotFollowed) {
  Folder folder, elsewhere;
  DiskCache cache(folder.path(), 1 << 20);
  store(cache, "text", object(10));
  const std::string path = folder.files().at(0), moved = elsewhere.path() + "/file";
  std::filesystem::rename(path, moved);
  std::filesystem::create_symlink(moved, path);
  EXPECT_FALSE(cache.load("maker", "text").object);
}

}  // namespace
}  // namespace strata::jit::test
