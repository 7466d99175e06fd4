#include "harness.h"
namespace strata::lower::test {
void test_values(const std::vector<Library>&) {}
void test_errors() {}
void bench(const std::vector<Library>&) {}
}
