#include "device/queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "device/batch.h"
#include "run/kernels.h"

namespace strata::device {

namespace {
std::atomic<bool> blocks{false};
}

bool set_blocking(bool on) { return blocks.exchange(on); }
bool blocking() { return blocks.load(std::memory_order_relaxed); }

Queue::Queue(const Plugin& plugin, Device device, int number) : plugin_(plugin), number_(number) {
  check(plugin, plugin.table->queue_create(device.index, &queue_), "a queue");
  check(plugin, plugin.table->allocate(device.index, kWords * 4, &words_), "memory for the words of kernels");
  const std::vector<int32_t> zeros(kWords);
  check(plugin, plugin.table->upload(queue_, words_, 0, zeros.data(), kWords * 4), "an upload");
}

// ---- copies

void Queue::upload(StrataMemory to, int64_t offset, const void* from, int64_t bytes) {
  settle();
  check(plugin_, plugin_.table->upload(queue_, to, uint64_t(offset), from, uint64_t(bytes)),
        str_cat("a copy of ", bytes, " bytes to the device"));
  given();
}

void Queue::download(void* to, StrataMemory from, int64_t offset, int64_t bytes) {
  settle();
  told(plugin_.table->download(queue_, to, from, uint64_t(offset), uint64_t(bytes)),
       str_cat("a copy of ", bytes, " bytes to the host"));
}

void Queue::copy(StrataMemory to, StrataMemory from, int64_t bytes) {
  settle();
  check(plugin_, plugin_.table->copy(queue_, to, 0, from, 0, uint64_t(bytes)), "a copy");
  given();
}

void Queue::upload_later(StrataMemory to, int64_t offset, const void* from, int64_t bytes) {
  settle();
  check(plugin_, plugin_.table->upload_later(queue_, to, uint64_t(offset), from, uint64_t(bytes)),
        str_cat("a copy of ", bytes, " bytes to the device"));
  given();
}

void Queue::download_later(void* to, StrataMemory from, int64_t offset, int64_t bytes) {
  settle();
  check(plugin_, plugin_.table->download_later(queue_, to, from, uint64_t(offset), uint64_t(bytes)),
        str_cat("a copy of ", bytes, " bytes to the host"));
  given();
}

void Queue::copy_from(StrataMemory to, Device device, StrataMemory from, int64_t offset, int64_t bytes) {
  settle();
  check(plugin_, plugin_.table->peer_copy(queue_, to, 0, device.index, from, uint64_t(offset), uint64_t(bytes)),
        str_cat("a copy of ", bytes, " bytes from ", device));
  synchronize();
}

// ---- waiting

void Queue::synchronize() {
  settle();
  told(plugin_.table->synchronize(queue_), "waiting for the queue");
}

void Queue::drain() noexcept {
  if (plugin_.table->synchronize(queue_) == STRATA_OK) return;
  try {
    const char* why = plugin_.table->last_error();
    std::lock_guard<std::mutex> hold(failure_lock_);
    if (failure_.empty()) failure_ = why && *why ? why : "no reason given";
  } catch (const std::bad_alloc&) {
  }
}

// After the queue was waited for with that status.
void Queue::told(StrataStatus status, const std::string& what) {
  check(plugin_, status, what);
  std::string failure;
  {
    std::lock_guard<std::mutex> hold(failure_lock_);
    failure.swap(failure_);
  }
  STRATA_CHECK(failure.empty(), plugin_.table->name, ": ", what, ": ", failure);
  Refusal r;
  {
    std::lock_guard<std::mutex> hold(lock_);
    r = refusal();
  }
  raise(r);
}

void Queue::given() {
  if (STRATA_UNLIKELY(blocking())) synchronize();
}

Queue::Refusal Queue::refusal() {
  if (asked_.empty()) return {};
  // Until the words are read, and are 0 again, they stay asked for: a copy that fails loses none, nor leaves one to the
  // next launch.
  std::vector<int32_t> said(asked_.size());
  const uint64_t bytes = 4 * asked_.size();
  check(plugin_, plugin_.table->download(queue_, said.data(), words_, 0, bytes), "reading the words of kernels");
  Refusal found;
  if (const auto at = std::find_if(said.begin(), said.end(), [](int32_t word) { return word != 0; });
      at != said.end()) {
    found = {*at, asked_[size_t(at - said.begin())]};
    const std::vector<int32_t> zeros(said.size());
    check(plugin_, plugin_.table->upload(queue_, words_, 0, zeros.data(), bytes), "an upload");
  }
  asked_.clear();
  return found;
}

void Queue::raise(const Refusal& r) {
  if (!r.said) return;
  const std::string where = r.by.mark ? str_cat(r.by.op, " (called at ", source_text(r.by.mark), ")") : r.by.op;
  eager::raise_status(r.said, where.c_str(), r.by.outside);
}

// ---- launches

void Launches::add(StrataKernel kernel, const KernelNest& nest, const Bound& b, int64_t items, const Blame& by) {
  One made{kernel, uint32_t(nest.group), items, arguments.size(), 0, by, {}};
  auto number = [&](const void* bytes, int64_t width) {
    StrataArgument a{uint32_t(width), 0, nullptr, 0};
    std::memcpy(&a.value, bytes, size_t(width));
    arguments.push_back(a);
  };
  auto memory = [&](const void* handle) {
    arguments.push_back({0, 0, static_cast<StrataMemory>(const_cast<void*>(handle)), 0});
  };
  size_t stride = 0;
  for (const lower::NestParameter& p : nest.parameters) {
    const size_t i = size_t(p.index);
    switch (p.kind) {
      case lower::NestParameter::Memory:
        memory(b.operands[i]->handle());
        break;
      case lower::NestParameter::Offset:
        number(&b.offset[i], 8);
        break;
      case lower::NestParameter::Extent:
        number(&b.extent[i], 8);
        break;
      case lower::NestParameter::Stride:
        number(&b.stride[stride++], 8);
        break;
      case lower::NestParameter::Scalar:
        number(static_cast<const char*>(b.scalars) + 16 * i + itemsize(p.type) * p.part, itemsize(p.type));
        break;
      case lower::NestParameter::Word: {
        made.word = int64_t(arguments.size());
        made.mark = take_source_mark();
        const int64_t later = 0;
        number(&later, 8);
        break;
      }
      default:
        made.words = int64_t(arguments.size());
        memory(nullptr);
    }
  }
  made.past = arguments.size();
  all.push_back(made);
}

void Queue::launch(StrataKernel kernel, const KernelNest& nest, const Bound& bound, int64_t items, const Blame& by) {
  if (Batch* mine = own_batch()) return mine->add(kernel, nest, bound, items, by);
  Launches one;
  one.arguments.reserve(nest.parameters.size());
  one.add(kernel, nest, bound, items, by);
  give(one);
}

void Queue::give(Launches& l, const std::function<bool()>& together) {
  const size_t asking = size_t(std::count_if(l.all.begin(), l.all.end(), [](const auto& o) { return o.word >= 0; }));
  STRATA_INTERNAL(asking <= kWords, "more launches at once than there are words for");
  std::unique_lock<std::mutex> hold(lock_);
  while (asked_.size() + asking > kWords) {
    hold.unlock();
    synchronize();
    hold.lock();
  }
  for (Launches::One& o : l.all) {
    if (o.words >= 0) l.arguments[size_t(o.words)].memory = words_;
    if (o.word < 0) continue;
    l.arguments[size_t(o.word)].value = asked_.size();
    asked_.push_back({o.by.op, o.mark, o.by.outside});
  }
  if (!together || !together())
    for (const Launches::One& o : l.all)
      check(plugin_,
            plugin_.table->launch(queue_, o.kernel, l.arguments.data() + o.first, uint32_t(o.past - o.first), o.items,
                                  o.group),
            str_cat("launching ", o.by.op));
  hold.unlock();
  given();
}

void Queue::run(StrataOperator op, const std::vector<StrataOperand>& results,
                const std::vector<StrataOperand>& arguments, const std::string& name) {
  settle();
  check(plugin_,
        plugin_.table->operator_run(queue_, op, results.data(), uint32_t(results.size()), arguments.data(),
                                    uint32_t(arguments.size())),
        str_cat("its library's ", name));
  given();
}

// ---- batches

bool Queue::claim() {
  std::thread::id none{};
  const std::thread::id mine = std::this_thread::get_id();
  return batch_thread_.compare_exchange_strong(none, mine) || none == mine;
}

Batch* Queue::swap_batch(Batch* batch) {
  Batch* before = std::exchange(batch_, batch);
  if (!batch) batch_thread_ = std::thread::id{};
  return before;
}

bool Queue::settle() {
  Batch* mine = own_batch();
  if (!mine || mine->empty()) return false;
  mine->give();
  return true;
}

// ---- events

Event::Event(const Plugin& plugin, Device device, bool timing) : plugin_(plugin), device_(device), timing_(timing) {
  if (plugin.table->event_create) check(plugin, plugin.table->event_create(device.index, timing, &event_), "an event");
}

Event::~Event() {
  if (event_) plugin_.table->event_destroy(event_);
}

void Event::record(Queue& queue) {
  if (event_) {
    check(plugin_, plugin_.table->event_record(event_, queue.handle()), "recording an event");
  } else {
    queue.drain();
    host_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  recorded_ = true;
}

void Event::wait(Queue& queue) const {
  if (event_ && recorded_) check(plugin_, plugin_.table->event_wait(queue.handle(), event_), "waiting for an event");
}

bool Event::query() const {
  int32_t done = 1;
  if (event_ && recorded_) check(plugin_, plugin_.table->event_query(event_, &done), "asking an event");
  return done != 0;
}

bool all_over(const std::vector<std::unique_ptr<Event>>& events) noexcept {
  try {
    return std::all_of(events.begin(), events.end(), [](const auto& e) { return e->query(); });
  } catch (const std::exception&) {
    return false;
  }
}

void Event::synchronize() const {
  if (event_ && recorded_) check(plugin_, plugin_.table->event_synchronize(event_), "waiting for an event");
}

double Event::elapsed(const Event& end) const {
  STRATA_CHECK(timing_ && end.timing_, "elapsed_time: expected two events made with enable_timing=True");
  STRATA_CHECK(recorded_ && end.recorded_, "elapsed_time: expected two events that were recorded");
  STRATA_CHECK(query() && end.query(), "elapsed_time: expected two events that are over; synchronize() them first");
  if (!event_) return end.host_ms_ - host_ms_;
  double ms = 0;
  check(plugin_, plugin_.table->event_elapsed(event_, end.event_, &ms), "the time between events");
  return ms;
}

}  // namespace strata::device
