// The service as a whole, in one process: equal texts once, many threads, forks, errors.
#include "jit/service/compile.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "kit.h"

namespace strata::jit::test {
namespace {

using lower::Isa;

// The service reads the environment when it is first asked.
Folder& folder() {
  static Folder* one = [] {
    auto* made = new Folder;
    setenv("STRATA_CACHE_DIR", made->path().c_str(), 1);
    return made;
  }();
  return *one;
}

class Compile : public testing::Test {
 protected:
  void SetUp() override {
    folder();
    if (!has_compiler()) GTEST_SKIP() << compiler_report();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder().path()); }
};

std::string text(int number) { return "int answer(int x) { return x + " + std::to_string(number) + "; }\n"; }
int answer(const ProgramRef& program, int x) { return reinterpret_cast<int (*)(int)>(program->symbol("answer"))(x); }

TEST_F(Compile, FromTheCompilerThenMemoryThenDisk) {
  Origin origin;
  {
    ProgramRef first = compile({text(1), Isa::Base}, &origin);
    EXPECT_TRUE(origin.how == How::Clang || origin.how == How::System);
    EXPECT_EQ(answer(first, 41), 42);
    EXPECT_EQ(compile({text(1), Isa::Base}, &origin), first);
    EXPECT_EQ(origin.how, How::Memory);
    EXPECT_NE(compile({text(2), Isa::Base}, &origin), first);
  }
  ProgramRef again = compile({text(1), Isa::Base}, &origin);  // nobody held it
  EXPECT_EQ(origin.how, How::Disk);
  EXPECT_EQ(answer(again, 41), 42);
  EXPECT_EQ(again->symbols(), std::vector<std::string>{"answer"});
  EXPECT_THROW(again->symbol("question"), Error);
}

TEST_F(Compile, AWrongTextSaysWhere) {
  for (int round = 0; round < 2; ++round) try {
      compile({"int good(void) { return 1; }\nint bad(void) {\n  return 1 + ;\n}\n", Isa::Base});
      FAIL() << "it was compiled";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Value);
      EXPECT_NE(e.message().find("line 3:"), std::string::npos) << e.message();
      EXPECT_NE(e.message().find("\n    return 1 + ;"), std::string::npos) << e.message();
    }
  EXPECT_THROW(compile({"#include <stdio.h>\nint f(void) { return missing; }", Isa::Base}), Error);
  EXPECT_THROW(compile({"int cannot(void) { return unlink(\"x\"); }", Isa::Base}), Error);
  EXPECT_EQ(answer(compile({text(3), Isa::Base}), 1), 4);  // the compiler goes on
}

// Of masks that are joined and turned round LLVM 19 has two rules that undo each other, without an end.
TEST_F(Compile, MasksThatAreTurnedRound) {
  if (compiler_report().find("in the process") == std::string::npos) GTEST_SKIP() << "its text is Clang's";
  const ProgramRef program = compile({R"(
typedef short h16 __attribute__((vector_size(32)));
typedef char c16 __attribute__((vector_size(16)));
#define M(n) ((unsigned short)(bits >> 16 * (n)))
#define HALVES(v, ...) ((v) & __builtin_shufflevector(v, v, __VA_ARGS__))
void f(const h16* p, unsigned long bits, h16* q, char* all) {
  const c16 one = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  c16 v = one;
  for (int u = 0; u < 4; u++) {
    q[u] = __builtin_ia32_loaddquhi256_mask(p + u, (h16){0}, M(u));
    v &= __builtin_ia32_selectb_128(M(u), (c16){0}, one);
  }
  v = HALVES(v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  v = HALVES(v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  *all = v[0];
}
)",
                                      Isa::V4});
  EXPECT_NE(program->symbol("f"), nullptr);
}

TEST_F(Compile, ManyAtOnceAndEqualOnesOnce) {
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) requests.push_back({text(100 + i % 6), Isa::Base});
  const int64_t before = cache_stats().misses;
  std::vector<Origin> origins;
  std::vector<ProgramRef> all = compile_all(requests, &origins);
  EXPECT_EQ(cache_stats().misses, before + 6);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(answer(all[size_t(i)], 1), 101 + i % 6);
    EXPECT_EQ(all[size_t(i)], all[size_t(i % 6)]);
    EXPECT_EQ(origins[size_t(i)].how == How::Memory, i >= 6);
  }
  requests[3].text = "int wrong";
  EXPECT_THROW(compile_all(requests), Error);
  EXPECT_TRUE(compile_all(ArrayRef<Request>()).empty());
}

TEST_F(Compile, EightThreads) {
  const int64_t before = cache_stats().misses;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 6; ++i) {
        // Texts that all want, and some of its own.
        wrong += answer(compile({text(200 + i), Isa::Base}), 1) != 201 + i;
        if (i < 2) wrong += answer(compile({text(1000 * (t + 1) + i), Isa::Base}), 1) != 1000 * (t + 1) + i + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  const CacheStats after = cache_stats();
  EXPECT_EQ(after.misses - before, 6 + 16);  // what one thread dropped another took from disk
}

int exit_status(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(Compile, AfterAFork) {
  ProgramRef parents = compile({text(300), Isa::Base});
  pid_t child = fork();
  if (child == 0) {
    bool good = answer(parents, 1) == 301 && answer(compile({text(301), Isa::Base}), 1) == 302;
    _exit(good ? 0 : 1);
  }
  EXPECT_EQ(exit_status(child), 0);
  EXPECT_EQ(answer(compile({text(302), Isa::Base}), 1), 303);
}

TEST_F(Compile, ForksWhileOthersCompile) {
  std::atomic<bool> end{false};
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !end; ++i, ++made) compile({text(100000 * (t + 4) + i), Isa::Base});
    });
  for (int round = 0; round < 5; ++round) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(answer(compile({text(400 + round), Isa::Base}), 1) == 401 + round ? 0 : 1);
    }
    EXPECT_EQ(exit_status(child), 0);
  }
  end = true;
  for (std::thread& t : threads) t.join();
}

TEST_F(Compile, ADamagedFileIsCompiledAgain) {
  compile({text(500), Isa::Base});
  for (const std::string& f : folder().files()) {
    std::string bytes = read_file(f);
    bytes[bytes.size() / 2] ^= 4;
    write_file(f, bytes);
  }
  const CacheStats before = cache_stats();
  Origin origin;
  EXPECT_EQ(answer(compile({text(500), Isa::Base}, &origin), 1), 501);
  EXPECT_TRUE(origin.how == How::Clang || origin.how == How::System);
  EXPECT_EQ(cache_stats().refused, before.refused + 1);
  EXPECT_EQ(cache_stats().misses, before.misses + 1);
}

}  // namespace
}  // namespace strata::jit::test
