#include "io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/checked.h"
#include "io/json.h"
#include "strata/generated/ops/copy.h"

namespace strata::io {

static_assert(std::endian::native == std::endian::little, "files hold numbers with the lowest byte first");

namespace {

struct TypeName {
  const char* name;
  DType type;
};
// In the format's own order, by which files are sorted from the last to the first.
constexpr TypeName kTypes[] = {{"BOOL", DType::Bool}, {"U8", DType::U8},   {"I8", DType::I8},     {"I16", DType::I16},
                               {"U16", DType::U16},   {"F16", DType::F16}, {"BF16", DType::BF16}, {"I32", DType::I32},
                               {"U32", DType::U32},   {"F32", DType::F32}, {"C64", DType::C64},   {"F64", DType::F64},
                               {"I64", DType::I64},   {"U64", DType::U64}};

int rank_of(DType t) {
  for (int i = 0; i < int(std::size(kTypes)); ++i)
    if (kTypes[i].type == t) return i;
  return -1;
}

struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<DimVec> sizes;
  std::optional<uint64_t> from, to;
};

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
RawEntry read_entry(JsonReader& json) {
  RawEntry e;
  std::string key;
  json.begin_object();
  while (json.key(key)) {
    if (key == "dtype" && !e.dtype) {
      e.dtype = json.string();
    } else if (key == "shape" && !e.sizes) {
      e.sizes.emplace();
      json.begin_array();
      while (json.more()) {
        uint64_t n = json.unsigned_int();
        if (n > uint64_t(INT64_MAX) || e.sizes->size() >= size_t(TensorImpl::kMaxDims))
          json.fail("a shape is impossible");
        e.sizes->push_back(int64_t(n));
      }
    } else if (key == "data_offsets" && !e.from) {
      json.begin_array();
      int n = 0;
      for (; json.more(); ++n) (n ? e.to : e.from) = json.unsigned_int();
      if (n != 2) json.fail("data_offsets needs two numbers");
    } else {
      json.fail(
          str_cat("a tensor's entry has the key '", key, "' twice, or it is none of dtype, shape and data_offsets"));
    }
  }
  if (!e.dtype || !e.sizes || !e.from) json.fail("a tensor's entry needs dtype, shape and data_offsets");
  return e;
}

}  // namespace

SafeHeader read_safetensors_header(const Source& source) {
  auto refuse = [&](const std::string& what) { source.refuse("is no valid safetensors file: " + what); };
  uint64_t length = 0;
  if (source.size() < 8) refuse(str_cat("expected at least 8 bytes, got ", source.size()));
  source.read(0, &length, 8);
  if (length > kMaxSafeHeader) refuse(str_cat("its header length is ", length, "; the limit is ", kMaxSafeHeader));
  if (length > source.size() - 8)
    refuse(str_cat("its header length is ", length, ", but the file has ", source.size(), " bytes"));
  std::string text = source.text(8, length);
  if (text.empty() || text[0] != '{') refuse("its header does not begin with '{'");
  JsonReader json(text, 8, [&](const std::string& what) { refuse("its header: " + what); });
  uint64_t begin = 8 + length, room = source.size() - begin;

  SafeHeader header;
  std::unordered_set<std::string> names;
  std::string name, key;
  json.begin_object();
  while (json.key(name)) {
    if (!names.insert(name).second) json.fail(str_cat("the name '", name, "' stands twice"));
    if (name == "__metadata__") {
      json.begin_object();
      while (json.key(key)) {
        if (json.peek() != JsonReader::Kind::String) json.fail("__metadata__ may hold strings only");
        if (!header.metadata.emplace(key, json.string()).second) json.fail(str_cat("the key '", key, "' stands twice"));
      }
      continue;
    }
    RawEntry raw = read_entry(json);
    auto known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return *raw.dtype == t.name; });
    if (known == std::end(kTypes))
      refuse(str_cat("'", name, "' has the dtype ", *raw.dtype, ", which strata does not have"));
    int64_t numel = 1, bytes = 0;
    bool fits = true, empty = false;
    for (int64_t s : *raw.sizes) {
      empty |= s == 0;
      fits &= !__builtin_mul_overflow(numel, s, &numel);
    }
    fits &= !__builtin_mul_overflow(numel, itemsize(known->type), &bytes);
    if (empty) bytes = 0;
    if ((!fits && !empty) || *raw.from > *raw.to || *raw.to > room || *raw.to - *raw.from != uint64_t(bytes))
      refuse(
          str_cat("'", name, "' has offsets ", *raw.from, " to ", *raw.to, ", which do not fit its shape or the file"));
    header.entries.push_back({name, known->type, *raw.sizes, *raw.from, *raw.to});
  }
  json.end();

  std::stable_sort(header.entries.begin(), header.entries.end(), [](const SafeEntry& a, const SafeEntry& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  uint64_t at = 0;
  for (SafeEntry& e : header.entries) {
    if (e.from != at)
      refuse(str_cat("'", e.name, "' begins at ", e.from, "; expected ", at, ": tensors overlap or leave a hole"));
    at = e.to;
    e.from += begin;
    e.to += begin;
  }
  if (at != room) refuse(str_cat(room - at, " bytes follow the last tensor"));
  return header;
}

Tensor read_safetensor(const Source& source, const SafeEntry& e) {
  uint64_t alignment = uint64_t(std::min<int64_t>(itemsize(e.dtype), 8));
  return make_tensor_over(source.storage(e.from, e.to - e.from, alignment), e.sizes, contiguous_strides(e.sizes), 0,
                          e.dtype);
}

void check_has_data(const Tensor& t, const std::string& name) {
  STRATA_CHECK_VALUE(t.defined() && !t.is_meta(), "save: '", name, "' has a shape but no data (device meta)");
}

Tensor tensor_to_write(const Tensor& t, const std::string& name) {
  check_has_data(t, name);
  Tensor plain = t.alias();
  return t.device().is_cpu() ? plain : ops::_to_copy(plain, std::nullopt, Device{});
}

void check_separate(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  struct Range {
    uintptr_t from, to;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, t] : tensors) {
    if (!t.defined() || t.numel() == 0 || !t.storage()->data()) continue;
    auto from = reinterpret_cast<uintptr_t>(t.data_ptr());
    ranges.push_back({from, from + uintptr_t(strided_span(t.sizes(), t.strides()) * t.itemsize()), &name});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.from < b.from; });
  for (size_t i = 1; i < ranges.size(); ++i)
    STRATA_CHECK(
        ranges[i].from >= ranges[i - 1].to, "save: '", *ranges[i - 1].name, "' and '", *ranges[i].name,
        "' share memory, which safetensors files cannot hold; save one of them or a .clone(), or use strata.save "
        "with another suffix, which keeps them shared");
}

SafeWriter::SafeWriter(std::vector<std::pair<std::string, Tensor>> tensors,
                       const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)) {
  std::unordered_set<std::string> names;
  auto text_of = [&](const std::string& s) -> const std::string& {
    STRATA_CHECK_VALUE(is_utf8(s), "save: a name or metadata is no UTF-8 text");
    return s;
  };
  for (auto& [name, t] : tensors_) {
    STRATA_CHECK_VALUE(name != "__metadata__" && names.insert(name).second, "save: the name '", name,
                       "' is reserved or stands twice; use another one");
    STRATA_CHECK_TYPE(!t.defined() || rank_of(t.dtype()) >= 0, "save: '", name, "': safetensors files have no dtype ",
                      t.dtype(), "; save strata.view_as_real of it, or use strata.save with another suffix");
    check_has_data(t, name);
  }
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    int x = rank_of(a.second.dtype()), y = rank_of(b.second.dtype());
    return x != y ? x > y : a.first < b.first;
  });
  header_ = "{";
  auto item = [&](const std::string& name) {
    if (header_.size() > 1) header_ += ',';
    write_json_string(header_, text_of(name));
    header_ += ':';
  };
  if (!metadata.empty()) {
    item("__metadata__");
    const char* before = "{";
    for (const auto& [key, value] : metadata) {
      header_ += before;
      write_json_string(header_, text_of(key));
      header_ += ':';
      write_json_string(header_, text_of(value));
      before = ",";
    }
    header_ += '}';
  }
  uint64_t at = 0;
  for (const auto& [name, t] : tensors_) {
    item(name);
    header_ += str_cat("{\"dtype\":\"", kTypes[rank_of(t.dtype())].name, "\",\"shape\":[");
    for (int64_t d = 0; d < t.dim(); ++d) header_ += (d ? "," : "") + std::to_string(t.size(d));
    header_ += str_cat("],\"data_offsets\":[", at, ",", at + uint64_t(t.nbytes()), "]}");
    at += uint64_t(t.nbytes());
  }
  header_ += '}';
  header_.append((8 - header_.size() % 8) % 8, ' ');
  STRATA_CHECK_VALUE(header_.size() <= kMaxSafeHeader, "save: names and plain values take ", header_.size(),
                     " bytes; the limit is ", kMaxSafeHeader, ": hold long lists of numbers as tensors");
}

void SafeWriter::write(Writer& writer) const {
  uint64_t length = header_.size();
  writer.write(&length, 8);
  writer.write(header_.data(), header_.size());
  for (const auto& [name, tensor] : tensors_) {
    Tensor t = tensor_to_write(tensor, name);
    if (!t.is_contiguous()) t = ops::clone(t, MemoryFormat::Contiguous);
    writer.write(t.data_ptr(), uint64_t(t.nbytes()));
  }
}

}  // namespace strata::io
