#include "dispatch/seen.h"

#include <unordered_map>
#include <utility>

#include "base/span.h"
#include "dispatch/host_reads.h"
#include "dispatch/operator.h"

namespace strata {

bool recording_here() {
  const DispatchTls& t = dispatch_tls;
  return t.include.has(Key::Tracer) && !t.mask.has(Key::Tracer);
}

void refuse_unseen(const char* what) {
  STRATA_INTERNAL(!recording_here(), what,
                  ": computes while operators are recorded, and no recorded operator asked for it");
}

void refuse_reading(const char* what) {
  if (!recording_here()) return;
  const std::string place = source_chain();
  STRATA_CHECK(false, what,
               ": reads the values of a tensor while operators are recorded, and a recording is replayed with others",
               place.empty() ? "" : " (" + place + ")",
               ". Keep them in tensors (strata.where chooses between two, strata.cond between two functions), or read "
               "them outside of what is recorded");
}

namespace {

thread_local GradientNote::What gradient_note = GradientNote::Theirs;

}  // namespace

GradientNote::GradientNote(What what) : before_(std::exchange(gradient_note, what)) {}
GradientNote::~GradientNote() { gradient_note = before_; }
GradientNote::What GradientNote::here() { return gradient_note; }

namespace {

const HostRead* find_read(const Operator& op) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const HostRead*>;
    for (const HostRead* r = host_reads; r->op; ++r) map->emplace(r->op, r);
    return map;
  }();
  auto at = by_name->find(op.name);
  return at == by_name->end() ? nullptr : at->second;
}

bool holds(const HostRead& read, const Stack& args) {
  if (read.when == HostRead::Always) return true;
  const IValue& v = args[read.argument];
  if (read.when == HostRead::None) return v.is_none();
  if (read.when == HostRead::Equal) return v.is<int64_t>() && v.get<int64_t>() == read.value;
  if (v.is_tensors())
    for (const Tensor& t : v.get<IValue::TensorVec>())
      if (t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::U8)) return true;
  return false;
}

}  // namespace

void check_recordable(const Operator& op, const Stack& args) {
  const HostRead* read = find_read(op);
  if (STRATA_LIKELY(!read || !holds(*read, args))) return;
  if (!read->size) return refuse_reading(op.name.c_str());
  const std::string place = source_chain();
  STRATA_CHECK(
      false, op.name,
      ": cannot be recorded: the size of its result depends on the values of tensors, and a recording is "
      "replayed with others",
      place.empty() ? "" : " (" + place + ")",
      ". Use a form of fixed size (where with three arguments, a mask), or call it outside of what is recorded");
}

}  // namespace strata
