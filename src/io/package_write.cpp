#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "io/checksum.h"
#include "io/json.h"
#include "io/package.h"

namespace strata::io {

namespace {

constexpr char kDigits[] = "0123456789abcdef";

void write_hex(std::string& out, std::string_view bytes) {
  out += '"';
  for (char c : bytes) {
    out += kDigits[uint8_t(c) >> 4];
    out += kDigits[uint8_t(c) & 15];
  }
  out += '"';
}

// The part of a storage that tensors reach, to become one entry of the file.
struct Group {
  Ref<Storage> storage;
  uint64_t from = UINT64_MAX, to = 0;  // bytes
  const Tensor* first = nullptr;
  bool mixed = false;  // dtypes differ
  std::string name;
};

class PackageWriter {
 public:
  SafeWriter make(const Value& root) {
    // What would be refused when read must not be written.
    Keeper().finish(root, [](const std::string& what) { throw_error(ErrorKind::Value, "save: the object " + what); });
    collect(root);
    std::vector<std::pair<std::string, Tensor>> entries;
    for (Group* g : order_) entries.emplace_back(g->name, entry_of(*g));
    text_ = "{\"version\":1,\"tree\":";
    write(root);
    text_ += '}';
    std::string checks = checksums(entries);
    return SafeWriter(std::move(entries), {{kPackageKey, std::move(text_)}, {kChecksumKey, std::move(checks)}});
  }

 private:
  std::string checksums(const std::vector<std::pair<std::string, Tensor>>& entries) const {
    std::string text = str_cat("{\"tree\":", checksum(0, text_.data(), text_.size()), ",\"entries\":{");
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto& [name, tensor] = entries[i];
      Tensor t = tensor_to_write(tensor, name);
      if (i) text += ',';
      write_json_string(text, name);
      text += str_cat(':', checksum(entry_checksum(t.dtype(), t.sizes()), t.data_ptr(), uint64_t(t.nbytes())));
    }
    return text + "}}";
  }

  // ---- first walk: storages, their parts and names
  void collect(const Value& v) {
    const void* self = v.list()     ? static_cast<const void*>(v.list())
                       : v.dict()   ? static_cast<const void*>(v.dict())
                       : v.tensor() ? static_cast<const void*>(v.tensor())
                                    : nullptr;
    if (!self || !seen_.insert(self).second) return;
    size_t length = path_.size();
    auto below = [&](const std::string& name, const Value& item) {
      path_ += (path_.empty() ? "" : ".") + name;
      collect(item);
      path_.resize(length);
    };
    if (const List* list = v.list())
      for (size_t i = 0; i < list->items.size(); ++i) below(std::to_string(i), list->items[i]);
    if (const Dict* dict = v.dict()) {
      for (const auto& [key, item] : dict->items) {
        below("key", key);
        below(key_name(key), item);
      }
      for (const auto& [name, item] : dict->attributes) below(*name, item);
    }
    if (const TensorItem* t = v.tensor()) {
      add(t->tensor);
      for (const auto& [name, item] : t->attributes) below(*name, item);
    }
  }

  static std::string key_name(const Value& key) {
    if (key.str()) return *key.str();
    if (auto* i = key.get<int64_t>()) return std::to_string(*i);
    return "item";
  }

  void add(const Tensor& t) {
    check_has_data(t, path_);
    auto [at, fresh] = groups_.try_emplace(t.storage().get());
    Group& g = at->second;
    if (fresh) {
      g.storage = t.storage();
      g.first = &t;
      g.name = unused_name();
      order_.push_back(&g);
    }
    uint64_t from = uint64_t(t.storage_offset() * t.itemsize());
    uint64_t bytes = 0;
    if (t.numel()) {
      bytes = uint64_t(t.itemsize());
      for (int64_t d = 0; d < t.dim(); ++d) bytes += uint64_t((t.size(d) - 1) * t.stride(d) * t.itemsize());
    }
    g.mixed |= g.first->dtype() != t.dtype();
    g.from = std::min(g.from, from);
    g.to = std::max(g.to, from + bytes);
  }

  std::string unused_name() {
    std::string wanted = path_.empty() || path_ == "__metadata__" ? "tensor" : path_, name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i) name = str_cat(wanted, "#", i);
    return name;
  }

  // One dimension of elements or bytes; the first tensor's shape where that is the whole part.
  static Tensor entry_of(Group& g) {
    DType dtype = g.mixed ? DType::U8 : g.first->dtype();
    if (g.mixed) g.from -= g.from % 16;  // every tensor begins at a multiple of its items
    DimVec sizes{int64_t((g.to - g.from) / uint64_t(itemsize(dtype)))};
    if (!g.mixed && g.first->is_contiguous() && uint64_t(g.first->nbytes()) == g.to - g.from)
      sizes = DimVec(g.first->sizes());
    if (is_complex(dtype)) {
      dtype = traits(dtype).component;
      sizes.push_back(2);
    }
    return make_tensor_over(g.storage, sizes, contiguous_strides(sizes), int64_t(g.from) / itemsize(dtype), dtype);
  }

  // ---- second walk: the text
  void string(const std::string& s) {
    STRATA_CHECK_VALUE(is_utf8(s), "save: a string is no UTF-8 text; save it as bytes");
    write_json_string(text_, s);
  }

  void real(double d) {
    if (std::isfinite(d)) return write_json_real(text_, d);
    char bytes[8];
    std::memcpy(bytes, &d, 8);
    text_ += "[\"f\",";
    write_hex(text_, {bytes, 8});
    text_ += ']';
  }

  // Whether `p` stood before; a reference is written then.
  bool again(const void* p) {
    auto [at, fresh] = numbers_.try_emplace(p, numbers_.size());
    if (!fresh) text_ += str_cat("[\"r\",", at->second, "]");
    return !fresh;
  }

  void write(const Value& v) {
    if (v.is_none()) {
      text_ += "null";
    } else if (auto* b = v.get<bool>()) {
      text_ += *b ? "true" : "false";
    } else if (auto* i = v.get<int64_t>()) {
      text_ += std::to_string(*i);
    } else if (auto* d = v.get<double>()) {
      real(*d);
    } else if (auto* c = v.get<std::complex<double>>()) {
      text_ += "[\"c\",";
      real(c->real());
      text_ += ',';
      real(c->imag());
      text_ += ']';
    } else if (v.str()) {
      string(*v.str());
    } else if (auto* big = v.get<std::shared_ptr<const BigInt>>()) {
      text_ += "[\"i\",";
      write_hex(text_, (*big)->bytes);
      text_ += ']';
    } else if (auto* bytes = v.get<std::shared_ptr<const Bytes>>()) {
      text_ += (*bytes)->array ? "[\"B\"," : "[\"b\",";
      write_hex(text_, (*bytes)->data);
      text_ += ']';
    } else if (auto* t = v.get<DType>()) {
      text_ += str_cat("[\"dtype\",\"", dtype_name(*t), "\"]");
    } else if (auto* device = v.get<Device>()) {
      text_ += "[\"device\",";
      string(to_string(*device));
      text_ += ']';
    } else if (v.get<StridedLayout>()) {
      text_ += "[\"layout\",\"strided\"]";
    } else if (v.list()) {
      list(*v.list());
    } else if (v.dict()) {
      dict(*v.dict());
    } else if (v.tensor()) {
      tensor(*v.tensor());
    } else {
      throw_error(ErrorKind::Internal, "save: a value of an unknown kind");
    }
  }

  void list(const List& l) {
    static constexpr const char* tags[] = {"[\"l\",[", "[\"u\",[", "[\"z\",[", "[\"e\",[", "[\"E\",["};
    if (again(&l)) return;
    text_ += tags[l.kind];
    for (size_t i = 0; i < l.items.size(); ++i) {
      if (i) text_ += ',';
      write(l.items[i]);
    }
    text_ += "]]";
  }

  static bool has_text_keys(const Dict& d) {
    std::unordered_set<std::string_view> keys;
    for (const auto& [key, item] : d.items)
      if (!key.str() || !keys.insert(*key.str()).second) return false;
    return true;
  }

  void dict(const Dict& d) {
    if (again(&d)) return;
    bool text_keys = has_text_keys(d), tagged = d.kind != Dict::Plain || !text_keys;
    if (tagged) text_ += d.kind == Dict::Ordered ? "[\"o\"," : d.kind == Dict::Counter ? "[\"n\"," : "[\"d\",";
    text_ += text_keys ? '{' : '[';
    bool first = true;
    for (const auto& [key, item] : d.items) {
      text_ += first ? "" : ",";
      first = false;
      if (!text_keys) text_ += '[';
      write(key);
      text_ += text_keys ? ':' : ',';
      write(item);
      if (!text_keys) text_ += ']';
    }
    text_ += text_keys ? '}' : ']';
    if (d.kind == Dict::Ordered && !d.attributes.empty()) {
      text_ += ',';
      attributes(d.attributes);
    }
    if (tagged) text_ += ']';
  }

  void attributes(const std::vector<std::pair<Str, Value>>& list) {
    const char* before = "{";
    for (const auto& [name, item] : list) {
      text_ += before;
      string(*name);
      text_ += ':';
      write(item);
      before = ",";
    }
    text_ += '}';
  }

  void numbers(const char* name, IntArrayRef list) {
    text_ += str_cat(",\"", name, "\":[");
    for (size_t i = 0; i < list.size(); ++i) text_ += (i ? "," : "") + std::to_string(list[i]);
    text_ += ']';
  }

  void tensor(const TensorItem& item) {
    if (again(&item)) return;
    const Tensor& t = item.tensor;
    const Group& g = groups_.at(t.storage().get());
    text_ += "[\"t\",{\"in\":";
    string(g.name);
    text_ += str_cat(",\"dtype\":\"", dtype_name(t.dtype()), "\"");
    numbers("shape", t.sizes());
    // Contiguous ones may still have odd strides in dims of one element.
    if (t.strides() != IntArrayRef(contiguous_strides(t.sizes()))) numbers("stride", t.strides());
    int64_t offset = t.storage_offset() - int64_t(g.from) / t.itemsize();
    if (offset) text_ += str_cat(",\"offset\":", offset);
    if (item.kind == TensorItem::Parameter) text_ += ",\"kind\":\"parameter\"";
    if (item.kind == TensorItem::Buffer) text_ += ",\"kind\":\"buffer\"";
    if (item.requires_grad) text_ += ",\"grad\":true";
    if (!t.device().is_cpu()) text_ += str_cat(",\"device\":\"", to_string(t.device()), "\"");
    if (!item.attributes.empty()) {
      text_ += ",\"attributes\":";
      attributes(item.attributes);
    }
    text_ += "}]";
  }

  std::string path_, text_;
  std::unordered_set<const void*> seen_;
  std::unordered_set<std::string> names_;
  std::unordered_map<const Storage*, Group> groups_;
  std::vector<Group*> order_;
  std::unordered_map<const void*, size_t> numbers_;
};

}  // namespace

uint32_t entry_checksum(DType dtype, IntArrayRef sizes) {
  std::string text(dtype_name(dtype));
  for (int64_t s : sizes) text += str_cat(' ', s);
  return checksum(0, text.data(), text.size());
}

SafeWriter make_package(const Value& root) { return PackageWriter().make(root); }

}  // namespace strata::io
