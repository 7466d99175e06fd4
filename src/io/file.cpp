#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace strata::io {

namespace {
[[noreturn]] void fail(const std::string& what, const std::string& path) {
  int code = errno;
  throw_error(code == ENOENT ? ErrorKind::FileNotFound : ErrorKind::Runtime,
              str_cat(what, " '", path, "': ", std::strerror(code)));
}
struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};
}  // namespace

std::shared_ptr<MappedFile> MappedFile::open(const std::string& path) {
  Fd f{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (f.fd < 0) fail("load: cannot open", path);
  struct stat st;
  if (fstat(f.fd, &st) != 0) fail("load: cannot read", path);
  STRATA_CHECK(S_ISREG(st.st_mode), "load: expected a regular file, got '", path, "'");
  std::shared_ptr<MappedFile> m(new MappedFile);
  m->size_ = uint64_t(st.st_size);
  if (m->size_) {
    // Private and writable: tensors over the file may be written without changing it.
    void* p = mmap(nullptr, m->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, f.fd, 0);
    if (p == MAP_FAILED) fail("load: cannot map", path);
    m->data_ = static_cast<const char*>(p);
  }
  return m;
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<char*>(data_), size_);
}

std::string_view MappedFile::view(uint64_t offset, uint64_t length) const {
  STRATA_CHECK(offset <= size_ && length <= size_ - offset, "load: expected ", length, " bytes at offset ", offset,
               ", got a file of ", size_, " bytes; it is cut or damaged");
  return {data_ + offset, length};
}

void Writer::write(const void* data, uint64_t bytes) {
  const char* p = static_cast<const char*>(data);
  position_ += bytes;
  while (bytes) {
    ssize_t n = ::write(fd_, p, bytes);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_error(ErrorKind::Runtime, str_cat("save: cannot write: ", std::strerror(errno), "; what was there is unchanged"));
    }
    p += n;
    bytes -= uint64_t(n);
  }
}

void write_atomically(const std::string& path, const std::function<void(Writer&)>& fill) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  std::string temporary = folder + "/." + name + ".XXXXXX";
  Fd f{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (f.fd < 0) fail("save: cannot create a file beside", path);
  try {
    Writer writer(f.fd);
    fill(writer);
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(f.fd, 0666 & ~mask) != 0 || fsync(f.fd) != 0) fail("save: cannot finish", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail("save: cannot rename to", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  Fd d{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (d.fd >= 0) fsync(d.fd);
}

}  // namespace strata::io
