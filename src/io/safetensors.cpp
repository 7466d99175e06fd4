#include "io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checked.h"
#include "io/file.h"

namespace strata::io {

namespace {

constexpr uint64_t kMaxHeader = 100'000'000;

struct TypeName {
  const char* name;
  DType type;
};
constexpr TypeName kTypes[] = {{"BOOL", DType::Bool}, {"U8", DType::U8},   {"I8", DType::I8},     {"U16", DType::U16},
                               {"I16", DType::I16},   {"U32", DType::U32}, {"I32", DType::I32},   {"U64", DType::U64},
                               {"I64", DType::I64},   {"F16", DType::F16}, {"BF16", DType::BF16}, {"F32", DType::F32},
                               {"F64", DType::F64},   {"C64", DType::C64}};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw_error(ErrorKind::Runtime, str_cat("load: '", path, "' is no valid safetensors file: ", what));
}

// A JSON parser's callback that refuses a key twice in one object.
nlohmann::json parse_header(const std::string& path, std::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using E = nlohmann::json::parse_event_t;
    if (depth > 8) twice = "nesting deeper than 8";
    if (event == E::object_start) keys.emplace_back();
    if (event == E::object_end && !keys.empty()) keys.pop_back();
    if (event == E::key && !keys.empty() && !keys.back().insert(value.get<std::string>()).second)
      twice = "the key '" + value.get<std::string>() + "' stands twice";
    return true;
  };
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& e) {
    refuse(path, str_cat("its header is no JSON: ", e.what()));
  }
  if (!twice.empty()) refuse(path, twice);
  if (!header.is_object()) refuse(path, "its header is no JSON object");
  return header;
}

uint64_t number(const std::string& path, const std::string& name, const nlohmann::json& v) {
  if (!v.is_number_unsigned()) refuse(path, str_cat("'", name, "' has a size or offset that is no whole number"));
  return v.get<uint64_t>();
}

}  // namespace

SafeFile load_safetensors(const std::string& path) {
  std::shared_ptr<MappedFile> file = MappedFile::open(path);
  if (file->size() < 8) refuse(path, str_cat("expected at least 8 bytes, got ", file->size()));
  uint64_t length;
  std::memcpy(&length, file->data(), 8);
  if (length > kMaxHeader) refuse(path, str_cat("its header length is ", length, "; the limit is ", kMaxHeader));
  if (length > file->size() - 8) refuse(path, str_cat("its header length is ", length, ", but the file has ", file->size(), " bytes"));
  std::string_view text = file->view(8, length);
  if (text.empty() || text[0] != '{') refuse(path, "its header does not begin with '{'");
  nlohmann::json header = parse_header(path, text);
  uint64_t begin = 8 + length, room = file->size() - begin;

  SafeFile result;
  struct Item {
    std::string name;
    DType dtype;
    DimVec sizes;
    uint64_t from, to;
  };
  std::vector<Item> items;
  for (auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) refuse(path, "__metadata__ is no object");
      for (auto& [key, value] : entry.items()) {
        if (!value.is_string()) refuse(path, "__metadata__ holds something else than strings");
        result.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets") || !entry["dtype"].is_string() || !entry["shape"].is_array() ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
      refuse(path, str_cat("'", name, "' needs exactly dtype, shape and data_offsets"));
    Item item;
    item.name = name;
    std::string type = entry["dtype"];
    auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return type == t.name; });
    if (known == std::end(kTypes)) refuse(path, str_cat("'", name, "' has the unknown dtype ", type));
    item.dtype = known->type;
    for (const auto& s : entry["shape"]) {
      uint64_t n = number(path, name, s);
      if (n > uint64_t(INT64_MAX) || item.sizes.size() >= 64) refuse(path, str_cat("'", name, "' has an impossible shape"));
      item.sizes.push_back(int64_t(n));
    }
    item.from = number(path, name, entry["data_offsets"][0]);
    item.to = number(path, name, entry["data_offsets"][1]);
    int64_t bytes = checked_bytes(checked_numel(item.sizes, "load"), itemsize(item.dtype), "load");
    if (item.from > item.to || item.to > room || item.to - item.from != uint64_t(bytes))
      refuse(path, str_cat("'", name, "' has offsets ", item.from, " to ", item.to, ", which do not fit its shape or the file"));
    items.push_back(std::move(item));
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  uint64_t at = 0;
  for (const Item& item : items) {
    if (item.from != at) refuse(path, str_cat("'", item.name, "' begins at ", item.from, "; expected ", at, ": tensors overlap or leave a hole"));
    at = item.to;
  }
  if (at != room) refuse(path, str_cat(room - at, " bytes follow the last tensor"));
  for (const Item& item : items) {
    Tensor t;
    char* data = const_cast<char*>(file->data()) + begin + item.from;
    if (item.to == item.from) {
      t = make_tensor(item.sizes, item.dtype);
    } else if (reinterpret_cast<uintptr_t>(data) % uintptr_t(std::min<int64_t>(itemsize(item.dtype), 8)) != 0) {
      t = make_tensor(item.sizes, item.dtype);
      std::memcpy(t.data_ptr(), data, item.to - item.from);
    } else {
      auto* keep = new std::shared_ptr<MappedFile>(file);
      Ref<Storage> storage = Storage::borrow(data, item.to - item.from, Device{}, [](void* k) {
        delete static_cast<std::shared_ptr<MappedFile>*>(k);
      }, keep);
      t = make_tensor_over(std::move(storage), item.sizes, contiguous_strides(item.sizes), 0, item.dtype);
    }
    result.tensors.emplace_back(item.name, t);
  }
  return result;
}

void save_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  // Wide elements first, so that each tensor is aligned to its elements, then by name.
  std::vector<const std::pair<std::string, Tensor>*> order;
  std::set<std::string> names;
  for (const auto& item : tensors) {
    STRATA_CHECK_VALUE(item.first != "__metadata__" && names.insert(item.first).second, "save: the name '", item.first,
                       "' is reserved or stands twice; use another one");
    STRATA_CHECK(item.second.defined() && !item.second.is_meta(), "save: '", item.first, "': expected a tensor with memory");
    order.push_back(&item);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return a->second.itemsize() != b->second.itemsize() ? a->second.itemsize() > b->second.itemsize() : a->first < b->first;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (auto* item : order) {
    const Tensor& t = item->second;
    auto known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& n) { return n.type == t.dtype(); });
    STRATA_CHECK_TYPE(known != std::end(kTypes), "save: '", item->first, "': safetensors has no dtype ", t.dtype(),
                      "; save its real and imaginary parts");
    header[item->first] = {{"dtype", known->name}, {"shape", t.sizes().vec()}, {"data_offsets", {at, at + uint64_t(t.nbytes())}}};
    at += uint64_t(t.nbytes());
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& e) {
    throw_error(ErrorKind::Value, str_cat("save: a name or metadata is no UTF-8 text: ", e.what()));
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  write_atomically(path, [&](Writer& w) {
    uint64_t length = text.size();
    w.write(&length, 8);
    w.write(text.data(), text.size());
    for (auto* item : order) {
      Tensor t = item->second.is_contiguous() ? item->second : item->second.clone(MemoryFormat::Contiguous);
      w.write(t.data_ptr(), uint64_t(t.nbytes()));
    }
  });
}

}  // namespace strata::io
