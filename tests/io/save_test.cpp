// io/file: a save that fails or dies leaves the old file, and nothing beside it. The system's calls are replaced here,
// so that each of them can be made to fail.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "io_files.h"

namespace {

// The n-th of the calls that are counted fails with `error`; 0 counts nothing.
struct Faults {
  int counted = 0, fail_at = 0, error = 0;
  bool dies = false;         // the process ends there instead
  size_t most = SIZE_MAX;    // one write takes at most this much
  bool interrupted = false;  // every other write is interrupted
  int writes = 0;
} faults;

bool fails() {
  if (!faults.fail_at || ++faults.counted != faults.fail_at) return false;
  if (faults.dies) _exit(9);
  errno = faults.error;
  return true;
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t n) {
  if (fd > 2) {
    if (fails()) return -1;
    if (faults.interrupted && ++faults.writes % 2) {
      errno = EINTR;
      return -1;
    }
    n = std::min(n, faults.most);
  }
  return syscall(SYS_write, fd, data, n);
}
extern "C" int fsync(int fd) { return fails() ? -1 : int(syscall(SYS_fsync, fd)); }
extern "C" int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : int(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace strata::io {
namespace {

// A tensor and a number that belong together.
Value version(int64_t n) {
  Tensor t = make_tensor({5000}, DType::I64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = n;
  auto list = std::make_shared<List>();
  list->items = {{n}, make_tensor_value(t)};
  return {list};
}

// The number; -1 where the two do not belong together.
int64_t version_of(const std::string& path) {
  Value v = load(*Source::file(path));
  int64_t n = *v.list()->items[0].get<int64_t>();
  const Tensor& t = v.list()->items[1].tensor()->tensor;
  for (int64_t i = 0; i < t.numel(); ++i)
    if (t.data<int64_t>()[i] != n) return -1;
  return n;
}

struct WithFaults {
  ~WithFaults() { faults = {}; }
};

std::string failure(const Value& v, const std::string& path, ErrorKind kind = ErrorKind::Runtime) {
  try {
    save(v, path);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.message();
    return e.message();
  }
}

TEST(Save, EveryFailingCallLeavesTheOldFile) {
  Folder folder;
  std::string path = folder / "state.strata";
  save(version(1), path);
  for (int error : {ENOSPC, EIO, EDQUOT}) {
    int n = 1;
    for (;; ++n) {
      WithFaults after;
      faults.fail_at = n;
      faults.error = error;
      std::string text = failure(version(2), path);
      bool reached = faults.counted >= n;
      faults = {};
      EXPECT_EQ(folder.count(), 1u);
      if (text.empty()) {
        EXPECT_EQ(version_of(path), 2);
        if (!reached) break;
        // Only the last call, the sync of the folder, may fail without notice: the new file is in place by then.
        save(version(1), path);
        continue;
      }
      EXPECT_NE(text.find(std::strerror(error)), std::string::npos) << text;
      EXPECT_NE(text.find(path), std::string::npos) << text;
      EXPECT_EQ(version_of(path), 1);
    }
    EXPECT_GE(n, 6) << "header length, header, tensor, sync, rename, sync of the folder";
    save(version(1), path);
  }
}

TEST(Save, EveryDyingCallLeavesTheOldOrTheNewFile) {
  Folder folder;
  std::string path = folder / "state.strata";
  for (int n = 1;; ++n) {
    save(version(1), path);
    pid_t child = fork();
    if (child == 0) {
      faults.fail_at = n;
      faults.dies = true;
      save(version(2), path);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    int64_t found = version_of(path);
    if (WEXITSTATUS(status) == 0) {
      EXPECT_EQ(found, 2);
      EXPECT_GE(n, 6);
      break;
    }
    ASSERT_EQ(WEXITSTATUS(status), 9);
    EXPECT_TRUE(found == 1 || found == 2) << n;
  }
}

TEST(Save, ShortAndInterruptedWritesGoOn) {
  Folder folder;
  std::string path = folder / "state.strata";
  WithFaults after;
  faults.most = 777;
  faults.interrupted = true;
  save(version(3), path);
  EXPECT_EQ(version_of(path), 3);
}

TEST(Save, KilledAtAnyMomentTheOldOrTheNewFileLoads) {
  Folder folder;
  std::string path = folder / "state.strata";
  save(version(0), path);
  std::mt19937 random(5);
  int64_t last = 0;
  for (int round = 0; round < 50; ++round) {
    pid_t child = fork();
    if (child == 0)
      for (int64_t n = last + 1;; ++n) save(version(n), path);
    usleep(1000 + random() % 9000);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    int64_t found = version_of(path);
    EXPECT_GE(found, last);
    last = std::max(last, found);
  }
  EXPECT_GT(last, 0);
}

TEST(Save, PlacesThatCannotBeWritten) {
  Folder folder;
  EXPECT_NE(failure(version(1), folder / "nowhere/state").find("does not exist"), std::string::npos);
  EXPECT_NE(failure(version(1), folder.path).find("Is a directory"), std::string::npos);
  write_bytes(folder / "file", "x");
  EXPECT_NE(failure(version(1), folder / "file/state").find("Not a directory"), std::string::npos);
  EXPECT_NE(failure(version(1), folder / std::string(300, 'n')).find("name too long"), std::string::npos);
  EXPECT_EQ(read_bytes(folder / "file"), "x");
  EXPECT_EQ(folder.count(), 1u);
  if (geteuid() != 0) {
    save(version(1), folder / "state");
    chmod(folder.path.c_str(), 0555);
    EXPECT_NE(failure(version(2), folder / "state").find("denied"), std::string::npos);
    chmod(folder.path.c_str(), 0755);
    EXPECT_EQ(version_of(folder / "state"), 1);
  }
  // A device stays a device.
  EXPECT_NE(failure(version(1), "/dev/full").find("No space left"), std::string::npos);
  struct stat st;
  ASSERT_EQ(stat("/dev/full", &st), 0);
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  // What cannot be held is told before anything is written.
  failure(make_str("\xff"), folder / "new", ErrorKind::Value);
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(Save, LinksAndModesStay) {
  Folder folder;
  std::string target = folder / "target", link = folder / "link";
  save(version(1), target);
  chmod(target.c_str(), 0640);
  ASSERT_EQ(symlink("target", link.c_str()), 0);
  save(version(2), link);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(version_of(target), 2);
  struct stat st;
  stat(target.c_str(), &st);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  std::string dangling = folder / "dangling";
  ASSERT_EQ(symlink("made", dangling.c_str()), 0);
  save(version(3), dangling);
  EXPECT_EQ(version_of(folder / "made"), 3);
  mode_t mask = umask(027);
  save(version(4), folder / "masked");
  umask(mask);
  stat((folder / "masked").c_str(), &st);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
}

TEST(Load, PlacesThatCannotBeRead) {
  Folder folder;
  for (bool mapped : {false, true}) {
    auto open = [&](const std::string& path) {
      try {
        mapped ? Source::mapped(path) : Source::file(path);
        return ErrorKind::Internal;
      } catch (const Error& e) {
        return e.kind();
      }
    };
    EXPECT_EQ(open(folder / "nothing"), ErrorKind::FileNotFound);
    EXPECT_EQ(open(folder.path), ErrorKind::Runtime);
    EXPECT_EQ(open("/dev/zero"), ErrorKind::Runtime);
    std::string pipe = folder / "pipe";
    mkfifo(pipe.c_str(), 0600);
    EXPECT_EQ(open(pipe), ErrorKind::Runtime);
    std::filesystem::remove(pipe);
    write_bytes(folder / "empty", "");
    EXPECT_THROW(load(*(mapped ? Source::mapped(folder / "empty") : Source::file(folder / "empty"))), Error);
  }
}

// A file that another program cuts while it is read.
TEST(Load, AFileThatShrinksRaises) {
  Folder folder;
  save(version(1), folder / "state");
  auto source = Source::file(folder / "state");
  ASSERT_EQ(truncate((folder / "state").c_str(), 4000), 0);
  EXPECT_THROW(load(*source), Error);
}

}  // namespace
}  // namespace strata::io
