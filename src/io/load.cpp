#include "io/load.h"

#include <cstring>

#include "io/package.h"
#include "io/pt.h"

namespace strata::io {

namespace {

Value flat_dict(const Source& source, const SafeHeader& header, const Place& place) {
  auto dict = std::make_shared<Dict>();
  for (const SafeEntry& e : header.entries) {
    Tensor t = read_safetensor(source, e);
    Ref<Storage> there = placed(source, place, t.storage(), "cpu");
    if (there != t.storage()) t = make_tensor_over(there, t.sizes(), t.strides(), 0, t.dtype());
    dict->items.emplace_back(make_str(e.name), make_tensor_value(t));
  }
  return {dict};
}

}  // namespace

Value load(const Source& source, const Place& place) {
  std::string head = source.text(0, std::min<uint64_t>(source.size(), 512));
  auto begins = [&](std::string_view with, size_t at = 0) {
    return head.size() >= at && head.compare(at, with.size(), with) == 0;
  };
  if (head.empty()) source.refuse("is empty");
  // First what begins with a length: its lowest byte may be that of any other format.
  uint64_t length = UINT64_MAX;
  if (head.size() >= 9) std::memcpy(&length, head.data(), 8);
  if (length <= kMaxSafeHeader && head[8] == '{') {
    SafeHeader header = read_safetensors_header(source);
    if (!header.metadata.count(kPackageKey))
      for (const auto& [key, text] : header.metadata)  // whose names may both be damaged
        if (key == kChecksumKey || text.starts_with("{\"version\":") || text.starts_with("{\"tree\":"))
          source.refuse(str_cat("has a damaged header: '", key, "' is of a package, whose tree is not there"));
    return header.metadata.count(kPackageKey) ? read_package(source, header, place) : flat_dict(source, header, place);
  }
  if (begins("PK\x03\x04") || begins("PK\x05\x06")) return read_pt(source, place);
  const char* way_out =
      "; load it with PyTorch and save it again with torch.save(obj, path), whose present format is read";
  if (begins("ustar", 257))
    source.refuse(str_cat("is a tar archive of PyTorch before 0.1.10, which is not read", way_out));
  if (head[0] == '\x80')
    source.refuse(
        str_cat("is a bare pickle (of torch.save before PyTorch 1.6, or of Python), which is not read", way_out));
  source.refuse("is neither a package of strata.save, nor a safetensors file, nor a .pt file of PyTorch, or it is cut");
}

void save(const Value& value, const std::string& path) {
  SafeWriter package = make_package(value);
  write_atomically(path, [&](Writer& writer) { package.write(writer); });
}

void save(const Value& value, Writer& writer) { make_package(value).write(writer); }

}  // namespace strata::io
