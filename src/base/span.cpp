#include "base/span.h"

namespace strata {

namespace {
SourceProvider provider_;
}

void set_source_provider(SourceProvider provider) { provider_ = provider; }
SourceMark take_source_mark() { return provider_.take ? provider_.take() : SourceMark{}; }
std::string source_chain() { return provider_.chain ? provider_.chain() : std::string(); }
std::string source_text(SourceMark mark) {
  return mark && provider_.text ? provider_.text(mark) : std::string("an unknown line (no Python frame)");
}

}  // namespace strata
