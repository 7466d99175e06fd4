// Objects that are bent in every place that a loader reads: each loads or is refused, and nothing else happens.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kit.h"

namespace strata::jit::test {
namespace {

using lower::Isa;

const char* const kText = R"(
float fmaf(float, float, float);
double floor(double);
static float table[] = {1, 2, 3, 4};
static float zeros[100];
const float* const pointers[] = {table, table + 2};
float count;
__attribute__((noinline)) static float inside(float x) { return x * 2 + zeros[3]; }
float call(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
float sum(int i) { return inside(*pointers[i]) + (float)__builtin_floor(count += 1.5f); }
float (*outside(void))(float, float, float) { return fmaf; }
void copy(void* to, const void* from, long n) { __builtin_memcpy(to, from, n); }
)";

// By each compiler that is there, at the baseline: calls of functions outside.
std::vector<std::string> objects() {
  std::vector<std::string> all;
  std::string why;
  if (auto clang = clang_compiler(&why); clang && clang->open().empty())
    all.push_back(clang->object({kText, Isa::Base}));
  if (auto system = system_compiler(&why)) {
    all.push_back(system->object({kText, Isa::Base}));
    all.push_back(system->object({printed("sum", Isa::V3), Isa::V3}));
  }
  return all;
}

TEST(Loader, PlacesCodeConstantsDataAndCalls) {
  const std::vector<std::string> all = objects();
  const size_t ours = std::max<size_t>(all.size(), 2) - 1;  // the last one is a printed kernel, where there is a second
  for (size_t k = 0; k < std::min(ours, all.size()); ++k) {
    Image image(all[k]);
    auto call = reinterpret_cast<float (*)(float, float, float)>(image.symbol("call"));
    auto sum = reinterpret_cast<float (*)(int)>(image.symbol("sum"));
    auto outside = reinterpret_cast<float (*(*)())(float, float, float)>(image.symbol("outside"));
    auto copy = reinterpret_cast<void (*)(void*, const void*, long)>(image.symbol("copy"));
    ASSERT_TRUE(call && sum && outside && copy);
    EXPECT_EQ(call(2, 3, 4), 10);
    EXPECT_EQ(sum(0), 3);  // 1 * 2 + floor(1.5)
    EXPECT_EQ(sum(1), 9);  // 3 * 2 + floor(3)
    EXPECT_EQ(outside()(2, 3, 4), 10);
    char to[64] = {};
    copy(to, "abc", 4);
    EXPECT_STREQ(to, "abc");
    EXPECT_EQ(image.symbol("inside"), nullptr);  // static
    EXPECT_EQ(image.symbol("nothing"), nullptr);
  }
}

TEST(Loader, CodeCannotBeWrittenAndDataCannotRun) {
  for (const std::string& object : objects()) {
    Image image(object);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwx"), line.npos) << line;
  }
}

TEST(Loader, RefusesFunctionsThatKernelsAreNotOffered) {
  std::string why;
  auto compiler = system_compiler(&why);
  if (!compiler) GTEST_SKIP() << why;
  try {
    Image image(compiler->object({"int system(const char*);\nint f(void) { return system(\"true\"); }", Isa::Base}));
    FAIL() << "it was loaded";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("'system'"), std::string::npos) << e.message();
  }
}

// Loaded or refused; whatever was loaded lists symbols inside of its memory.
bool loads(const std::string& object) {
  try {
    Image image(object);
    for (const std::string& name : image.names()) EXPECT_NE(image.symbol(name), nullptr);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Loader, RefusesEveryCut) {
  for (const std::string& object : objects()) {
    EXPECT_TRUE(loads(object));
    // The table of sections is last, or the symbols' names are.
    int loaded = 0;
    for (size_t n = 0; n < object.size(); n += 7) loaded += loads(object.substr(0, n));
    EXPECT_EQ(loaded, 0);
  }
}

TEST(Loader, SurvivesBentHeadersSectionsSymbolsAndRelocations) {
  std::mt19937_64 random(3);
  const uint64_t extremes[] = {0,
                               1,
                               0x7f,
                               0xff,
                               0xffff,
                               0x7fffffff,
                               0xffffffff,
                               uint64_t{1} << 40,
                               uint64_t(-1),
                               uint64_t(-8),
                               uint64_t{1} << 63};
  int refused = 0, tried = 0;
  for (const std::string& object : objects()) {
    Elf64_Ehdr header;
    std::memcpy(&header, object.data(), sizeof header);
    // Offset and size of everything that is not the sections' own bytes.
    std::vector<std::pair<uint64_t, uint64_t>> tables{{0, sizeof header},
                                                      {header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)}};
    for (int i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr s;
      std::memcpy(&s, object.data() + header.e_shoff + size_t(i) * sizeof s, sizeof s);
      if ((s.sh_type == SHT_SYMTAB || s.sh_type == SHT_RELA || s.sh_type == SHT_STRTAB) && s.sh_size)
        tables.emplace_back(s.sh_offset, s.sh_size);
    }
    for (int round = 0; round < 6000; ++round) {
      std::string bent = object;
      for (int n = 1 + int(random() % 3); n > 0; --n) {
        const auto& [offset, size] = tables[random() % tables.size()];
        const uint64_t at = offset + random() % size;
        switch (random() % 4) {
          case 0:  // one bit
            bent[at] = char(bent[at] ^ (1 << random() % 8));
            break;
          case 1:  // one byte
            bent[at] = char(random());
            break;
          case 2: {  // a field
            const uint64_t value = extremes[random() % std::size(extremes)];
            const size_t width = size_t(1) << (random() % 4), place = at / width * width;
            if (place + width <= bent.size()) std::memcpy(bent.data() + place, &value, width);
            break;
          }
          default: {  // a field, moved a little
            uint64_t value;
            const size_t place = at / 8 * 8;
            if (place + 8 > bent.size()) break;
            std::memcpy(&value, bent.data() + place, 8);
            value += random() % 64 - 32;
            std::memcpy(bent.data() + place, &value, 8);
          }
        }
      }
      ++tried;
      refused += !loads(bent);
    }
  }
  if (tried) EXPECT_GT(refused, tried / 10);
}

}  // namespace
}  // namespace strata::jit::test
