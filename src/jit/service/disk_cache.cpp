#include "jit/service/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "jit/service/hash.h"

namespace strata::jit {

namespace {

constexpr int64_t kDefaultLimit = int64_t{1} << 30;
constexpr int64_t kLargestFile = int64_t{1} << 28;
constexpr time_t kUsed = 3600;   // seconds after which another use is noted: not a write for each load
constexpr time_t kStale = 3600;  // a file that was being written this long ago has no writer any more
constexpr const char* kTemporary = ".new-";
constexpr const char* kTotal = "total";  // the bytes of all files, kept up by those who write

struct Header {
  char magic[8];
  Hash check;  // of everything after this field
  uint64_t maker, text, object;
};
constexpr char kMagic[8] = {'S', 't', 'r', 'a', 't', 'a', 'K', '1'};

class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool read(char* to, size_t bytes) const {
    for (size_t at = 0; at < bytes;) {
      ssize_t n = ::pread(fd_, to + at, bytes - at, off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += size_t(n);
    }
    return true;
  }
  bool write(std::string_view from) const {
    for (size_t at = 0; at < from.size();) {
      ssize_t n = ::pwrite(fd_, from.data() + at, from.size() - at, off_t(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += size_t(n);
    }
    return true;
  }

 private:
  int fd_;
};

bool make_folders(const std::string& path) {
  struct stat s;
  if (stat(path.c_str(), &s) == 0) return S_ISDIR(s.st_mode) || (errno = ENOTDIR, false);
  size_t slash = path.rfind('/');
  if (slash != path.npos && slash > 0 && !make_folders(path.substr(0, slash))) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool ours(const std::string& name) {
  constexpr size_t kHash = 32;
  const std::string_view suffix = std::string_view(name).substr(std::min(name.size(), kHash));
  return suffix == DiskCache::kKernels || suffix == DiskCache::kPlans || name.starts_with(kTemporary);
}

struct Entry {
  std::string name;
  int64_t bytes;
  time_t used;
};
std::vector<Entry> entries(const std::string& folder) {
  std::vector<Entry> found;
  DIR* dir = opendir(folder.c_str());
  if (!dir) return found;
  while (dirent* e = readdir(dir)) {
    std::string name = e->d_name;
    struct stat s;
    if (ours(name) && fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode))
      found.push_back({name, s.st_size, s.st_mtime});
  }
  closedir(dir);
  return found;
}

struct Content {
  std::string_view maker, text, object;
};
// What a file's bytes hold, or nothing where they are not as they were written.
std::optional<Content> content_of(std::string_view bytes) {
  Header h;
  if (bytes.size() < sizeof h) return {};
  std::memcpy(&h, bytes.data(), sizeof h);
  constexpr size_t checked = offsetof(Header, maker);
  std::string_view rest = bytes.substr(sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || !(h.check == hash(bytes.substr(checked)))) return {};
  if (h.maker > rest.size() || h.text > rest.size() - h.maker || h.object != rest.size() - h.maker - h.text) return {};
  return Content{rest.substr(0, h.maker), rest.substr(h.maker, h.text), rest.substr(h.maker + h.text)};
}

// The bytes of a file that may be believed, empty where it cannot be read; nothing where there is none.
std::optional<std::string> bytes_of(const std::string& path, bool used) {
  File file(path, O_RDONLY);
  struct stat s;
  if (!file || fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  // What somebody else put here would be run as this user.
  if (s.st_uid != geteuid() && s.st_uid != 0) return {};
  std::string bytes;
  if (s.st_size <= kLargestFile) {
    bytes.resize(size_t(s.st_size));
    if (!file.read(bytes.data(), bytes.size())) bytes.clear();
  }
  if (used && time(nullptr) - s.st_mtime > kUsed) futimens(file.fd(), nullptr);
  return bytes;
}

}  // namespace

DiskCache DiskCache::of_environment() {
  std::string folder = env_text("STRATA_CACHE_DIR"), limit = env_text("STRATA_CACHE_BYTES");
  if (folder.empty()) {
    std::string base = env_text("XDG_CACHE_HOME");
    if (base.empty() || base[0] != '/') {  // relative ones are to be ignored, says its specification
      std::string home = env_text("HOME");
      base = home.empty() ? "" : home + "/.cache";
    }
    if (!base.empty()) folder = base + "/strata";
  }
  int64_t bytes = kDefaultLimit;
  if (!limit.empty()) {
    auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), bytes);
    STRATA_CHECK_VALUE(error == std::errc() && end == limit.data() + limit.size() && bytes >= 0,
                       "STRATA_CACHE_BYTES: expected a number of bytes, got '", limit, "'; 0 keeps nothing on disk");
  }
  return {folder, bytes};
}

std::string DiskCache::path(std::string_view maker, const Hash& text) const {
  return str_cat(folder_, '/', hex(hash(maker, text)), suffix_);
}

DiskCache::Found DiskCache::load(std::string_view maker, std::string_view text) const {
  Found found = load(maker, hash(text));
  if (!found.object || found.text == text) return found;
  remove(maker, text);
  return {{}, true, ""};
}

DiskCache::Found DiskCache::load(std::string_view maker, const Hash& text) const {
  if (!on()) return {};
  const std::string path = this->path(maker, text);
  std::optional<std::string> bytes = bytes_of(path, true);
  if (!bytes) return {};
  if (auto c = content_of(*bytes); c && c->maker == maker && hash(c->text) == text) {
    std::string found(c->text);
    bytes->erase(0, size_t(c->object.data() - bytes->data()));  // the object is last
    return {std::move(bytes), false, std::move(found)};
  }
  unlink(path.c_str());
  return {{}, true, ""};
}

void DiskCache::remove(std::string_view maker, std::string_view text) const {
  if (on()) unlink(path(maker, hash(text)).c_str());
}

std::string DiskCache::store(std::string_view maker, std::string_view text, std::string_view object,
                             int64_t* evicted) const {
  *evicted = 0;
  if (!on()) return limit_ > 0 ? "there is no folder: neither STRATA_CACHE_DIR, XDG_CACHE_HOME nor HOME is set" : "";
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.maker = maker.size(), h.text = text.size(), h.object = object.size();
  std::string bytes(reinterpret_cast<const char*>(&h), sizeof h);
  bytes.append(maker).append(text).append(object);
  if (int64_t(bytes.size()) > limit_) return "";
  h.check = hash(std::string_view(bytes).substr(offsetof(Header, maker)));
  std::memcpy(bytes.data(), &h, sizeof h);

  static std::atomic<uint64_t> count{0};
  const std::string target = path(maker, hash(text));
  const std::string temporary = str_cat(folder_, '/', kTemporary, getpid(), '-', count.fetch_add(1), '-',
                                        hex(hash(target, {uint64_t(time(nullptr)), uint64_t(clock())})).substr(0, 8));
  auto why = [&] {
    std::string text = std::strerror(errno);
    unlink(temporary.c_str());
    return text;
  };
  if (!make_folders(folder_)) return std::strerror(errno);
  {
    // Not synced: a file that a crash has cut fails its check.
    File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (!file || !file.write(bytes)) return why();
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) return why();
  *evicted = account(int64_t(bytes.size()));
  return "";
}

// Adds to the total of all files, which a look at each of them would take too long to find for every store. Beyond the
// limit everything is counted, and what was not used for longest goes, down to some room.
int64_t DiskCache::account(int64_t bytes) const {
  File file(str_cat(folder_, '/', kTotal), O_RDWR | O_CREAT);
  if (!file) return 0;
  while (flock(file.fd(), LOCK_EX) != 0)
    if (errno != EINTR) return 0;
  int64_t total = -1, evicted = 0;
  if (!file.read(reinterpret_cast<char*>(&total), sizeof total) || total < 0 || total > INT64_MAX - bytes ||
      total + bytes > limit_) {
    std::vector<Entry> all = entries(folder_);
    total = 0;
    for (const Entry& e : all) total += e.bytes;
    if (total > limit_) {
      std::sort(all.begin(), all.end(), [](const Entry& x, const Entry& y) { return x.used < y.used; });
      const int64_t room = limit_ - limit_ / 8;
      const time_t now = time(nullptr);
      for (const Entry& e : all) {
        if (total <= room) break;
        if (e.name.starts_with(kTemporary) && now - e.used < kStale) continue;  // being written
        if (unlink(str_cat(folder_, '/', e.name).c_str()) != 0) continue;
        total -= e.bytes;
        evicted += !e.name.starts_with(kTemporary);
      }
    }
  } else {
    total += bytes;
  }
  file.write({reinterpret_cast<const char*>(&total), sizeof total});
  return evicted;  // closing ends the lock
}

DiskCache::Size DiskCache::size() const {
  Size size;
  if (on())
    for (const Entry& e : entries(folder_)) size.files += e.name.ends_with(suffix_), size.bytes += e.bytes;
  return size;
}

std::vector<DiskCache::Key> DiskCache::keys(size_t most) const {
  std::vector<Key> found;
  if (!on()) return found;
  std::vector<Entry> all = entries(folder_);
  std::sort(all.begin(), all.end(), [](const Entry& x, const Entry& y) { return x.used > y.used; });
  for (const Entry& e : all) {
    if (found.size() == most) break;
    if (!e.name.ends_with(suffix_)) continue;
    const std::optional<std::string> bytes = bytes_of(str_cat(folder_, '/', e.name), false);
    if (!bytes) continue;
    if (auto c = content_of(*bytes)) found.push_back({std::string(c->maker), std::string(c->text)});
  }
  return found;
}

void DiskCache::clear() const {
  if (!on()) return;
  for (const Entry& e : entries(folder_)) unlink(str_cat(folder_, '/', e.name).c_str());
  unlink(str_cat(folder_, '/', kTotal).c_str());
}

}  // namespace strata::jit
