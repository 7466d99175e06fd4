#include "run/observe.h"

namespace strata::eager {

namespace {
thread_local LaunchObserver* observer = nullptr;
}

LaunchObserver* LaunchObserver::current() { return observer; }
LaunchObserver::Scope::Scope(LaunchObserver& o) : before_(observer) { observer = &o; }
LaunchObserver::Scope::~Scope() { observer = before_; }

void tell_other() {
  if (observer) observer->other();
}

}  // namespace strata::eager
