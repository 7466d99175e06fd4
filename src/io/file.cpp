#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace strata::io {

namespace {

// One call moves at most this much: the system's own limit is a little above.
constexpr uint64_t kMaxPiece = uint64_t(1) << 30;

[[noreturn]] void fail(const std::string& what, const std::string& path, const char* after = "") {
  int code = errno;
  throw_error(code == ENOENT ? ErrorKind::FileNotFound : ErrorKind::Runtime,
              str_cat(what, " '", path, "': ", std::strerror(code), after));
}

struct Fd {
  int fd = -1;
  Fd() = default;
  explicit Fd(int f) : fd(f) {}
  Fd(Fd&& o) noexcept : fd(std::exchange(o.fd, -1)) {}
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

Fd open_to_read(const std::string& path, uint64_t& size) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  Fd f(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (f.fd < 0) fail("load: cannot open", path);
  struct stat st;
  if (fstat(f.fd, &st) != 0) fail("load: cannot read", path);
  STRATA_CHECK(S_ISREG(st.st_mode), "load: expected a regular file, got '", path, "'");
  size = uint64_t(st.st_size);
  return f;
}

class FileSource final : public Source {
 public:
  explicit FileSource(const std::string& path) : fd_(open_to_read(path, size_)) { name_ = path; }

 private:
  void fetch(uint64_t offset, void* to, uint64_t bytes) const override {
    char* p = static_cast<char*>(to);
    while (bytes) {
      ssize_t n = ::pread(fd_.fd, p, std::min(bytes, kMaxPiece), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("load: cannot read", name_);
      if (n == 0) refuse("became shorter while it was read");
      p += n;
      offset += uint64_t(n);
      bytes -= uint64_t(n);
    }
  }
  Fd fd_;
};

class MappedSource final : public Source {
 public:
  explicit MappedSource(const std::string& path) {
    Fd f = open_to_read(path, size_);
    name_ = path;
    if (!size_) return;
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, f.fd, 0);
    if (p == MAP_FAILED) fail("load: cannot map", path);
    data_ = static_cast<char*>(p);
  }
  ~MappedSource() override {
    if (data_) munmap(data_, size_);
  }
  const char* pages() const override { return data_; }

 private:
  void fetch(uint64_t offset, void* to, uint64_t bytes) const override { std::memcpy(to, data_ + offset, bytes); }
  char* data_ = nullptr;
};

class MemorySource final : public Source {
 public:
  MemorySource(std::string_view bytes, std::string name) : bytes_(bytes) {
    name_ = std::move(name);
    size_ = bytes.size();
  }

 private:
  void fetch(uint64_t offset, void* to, uint64_t bytes) const override {
    std::memcpy(to, bytes_.data() + offset, bytes);
  }
  std::string_view bytes_;
};

class FileWriter final : public Writer {
 public:
  FileWriter(int fd, const std::string& path, const char* after) : fd_(fd), path_(path), after_(after) {}

 private:
  void put(const char* p, uint64_t bytes) override {
    while (bytes) {
      ssize_t n = ::write(fd_, p, std::min(bytes, kMaxPiece));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("save: cannot write", path_, after_);
      p += n;
      bytes -= uint64_t(n);
    }
  }
  int fd_;
  const std::string& path_;
  const char* after_;
};

// The file that links lead to; the path itself where nothing is there yet.
std::string real_path(const std::string& path) {
  struct stat st;
  if (lstat(path.c_str(), &st) != 0 || !S_ISLNK(st.st_mode)) return path;
  if (char* p = ::realpath(path.c_str(), nullptr)) {
    std::string s = p;
    std::free(p);
    return s;
  }
  if (errno != ENOENT) fail("save: cannot follow the link", path);
  char target[PATH_MAX];
  ssize_t n = ::readlink(path.c_str(), target, sizeof target);
  if (n <= 0 || size_t(n) >= sizeof target) fail("save: cannot follow the link", path);
  std::string next(target, size_t(n));
  if (next[0] != '/') next = path.substr(0, path.rfind('/') + 1) + next;
  return next;  // a link to what is not there yet: it will be made
}

// A name beside the final one, short, since the final one may be as long as names can be.
std::string name_in(const std::string& folder) {
  static std::atomic<uint64_t> count{0};
  uint64_t now = uint64_t(std::chrono::steady_clock::now().time_since_epoch().count());
  return str_cat(folder, "/.strata-save-", getpid(), "-", count++, "-", now % 1000000007);
}

// A new file in `folder`: without a name where the system can do that, so that nothing is left when the process dies.
Fd create_in(const std::string& folder, std::string& path) {
  if (access("/proc/self/fd", X_OK) == 0) {
    Fd f(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (f.fd >= 0) return f;
  }
  int fd = -1;
  for (int i = 0; i < 1000 && fd < 0; ++i) {
    path = name_in(folder);
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  return Fd(fd);
}

// Gives the file a name where it has none.
bool name_file(int fd, const std::string& folder, std::string& path) {
  if (!path.empty()) return true;
  std::string self = str_cat("/proc/self/fd/", fd);
  for (int i = 0; i < 1000; ++i) {
    std::string name = name_in(folder);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      path = name;
      return true;
    }
    if (errno != EEXIST) break;
  }
  return false;
}

}  // namespace

std::shared_ptr<Source> Source::file(const std::string& path) { return std::make_shared<FileSource>(path); }
std::shared_ptr<Source> Source::mapped(const std::string& path) { return std::make_shared<MappedSource>(path); }
std::shared_ptr<Source> Source::memory(std::string_view bytes, std::string name) {
  return std::make_shared<MemorySource>(bytes, std::move(name));
}

void Source::refuse(const std::string& what) const {
  throw_error(ErrorKind::Runtime, str_cat("load: '", name_, "' ", what));
}

void Source::check(uint64_t offset, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset)
    refuse(str_cat("is cut or damaged: expected ", bytes, " bytes at offset ", offset, ", got a file of ", size_,
                   " bytes"));
}

void Source::read(uint64_t offset, void* to, uint64_t bytes) const {
  check(offset, bytes);
  if (bytes) fetch(offset, to, bytes);
}

std::string Source::text(uint64_t offset, uint64_t bytes) const {
  check(offset, bytes);
  std::string s(bytes, '\0');
  read(offset, s.data(), bytes);
  return s;
}

Ref<Storage> Source::storage(uint64_t offset, uint64_t bytes, uint64_t alignment) const {
  check(offset, bytes);
  if (bytes && pages() && reinterpret_cast<uintptr_t>(pages() + offset) % alignment == 0) {
    auto* keep = new std::shared_ptr<const Source>(shared_from_this());
    return Storage::borrow(
        const_cast<char*>(pages()) + offset, bytes, Device{},
        [](void* k) { delete static_cast<std::shared_ptr<const Source>*>(k); }, keep);
  }
  Ref<Storage> s = Storage::make(cpu_allocator(), bytes);
  read(offset, s->data(), bytes);
  return s;
}

void write_atomically(const std::string& asked, const std::function<void(Writer&)>& fill) {
  std::string path = real_path(asked);
  struct stat st;
  bool there = stat(path.c_str(), &st) == 0;
  if (there && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    fail("save: cannot write to", path);
  }
  if (there && !S_ISREG(st.st_mode)) {
    Fd f(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (f.fd < 0) fail("save: cannot open", path);
    FileWriter writer(f.fd, path, "");
    fill(writer);
    return;
  }
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  std::string temporary;
  Fd f = create_in(folder, temporary);
  STRATA_CHECK(f.fd >= 0 || errno != ENOENT, "save: Parent directory ", folder, " does not exist; make it first");
  if (f.fd < 0) fail("save: cannot create a file in the folder of", path);
  try {
    FileWriter writer(f.fd, path, there ? "; what was there is unchanged" : "");
    fill(writer);
    if ((there && fchmod(f.fd, st.st_mode & 07777) != 0) || fsync(f.fd) != 0 || !name_file(f.fd, folder, temporary))
      fail("save: cannot finish", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("save: cannot rename to", path);
  } catch (...) {
    if (!temporary.empty()) ::unlink(temporary.c_str());
    throw;
  }
  Fd d(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.fd >= 0) fsync(d.fd);
}

}  // namespace strata::io
