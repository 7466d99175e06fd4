#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "io/checksum.h"
#include "io/json.h"
#include "io/package.h"

namespace strata::io {

namespace {

// One level of values is at most three of JSON: tag, items, pair.
constexpr int kJsonDepth = 3 * kMaxDepth + 16;

class PackageReader {
 public:
  PackageReader(const Source& source, const SafeHeader& header, const Place& place)
      : source_(source),
        place_(place),
        refuse_([this](const std::string& what) { source_.refuse("has a damaged tree: " + what); }),
        json_(header.metadata.at(kPackageKey), kJsonDepth, refuse_) {
    for (const SafeEntry& e : header.entries) entries_.emplace(e.name, &e);
    for (const auto& [key, text] : header.metadata)  // the name of the checksums, damaged, would be no check at all
      if (key != kPackageKey && key != kChecksumKey)
        source_.refuse(str_cat("has a damaged header: '", key, "' beside its tree"));
    if (auto checks = header.metadata.find(kChecksumKey); checks != header.metadata.end())
      read_checksums(checks->second, header.metadata.at(kPackageKey));
  }

  Value read() {
    std::string key;
    std::optional<Value> root;
    json_.begin_object();
    while (json_.key(key)) {
      if (key == "version") {
        uint64_t version = json_.unsigned_int();
        if (version != 1)
          source_.refuse(
              str_cat("is a package of version ", version, "; this strata reads version 1: use a newer one"));
      } else if (key == "tree" && !root) {
        root = value();
      } else {
        json_.fail(str_cat("an unknown part '", key, "'"));
      }
    }
    json_.end();
    if (!root) json_.fail("there is no tree");
    return keeper_.finish(std::move(*root), [&](const std::string& what) { source_.refuse(what); });
  }

 private:
  using Kind = JsonReader::Kind;

  void check(uint32_t found, uint32_t expected, const std::string& of) {
    if (found != expected)
      source_.refuse(str_cat("is damaged: the checksum of ", of, " is ", found, ", expected ", expected));
  }

  void read_checksums(const std::string& text, const std::string& tree) {
    JsonReader json(text, kJsonDepth, refuse_);
    auto number = [&] {
      uint64_t n = json.unsigned_int();
      if (n > UINT32_MAX) json.fail("a checksum is impossible");
      return uint32_t(n);
    };
    std::string key, name;
    bool tree_checked = false;
    checksums_.emplace();
    json.begin_object();
    while (json.key(key)) {
      if (key == "tree") {
        check(checksum(0, tree.data(), tree.size()), number(), "its tree");
        tree_checked = true;
      } else if (key == "entries") {
        json.begin_object();
        while (json.key(name))
          if (!checksums_->emplace(name, number()).second) json.fail(str_cat("'", name, "' has two checksums"));
      } else {
        json.fail(str_cat("an unknown part '", key, "' of its checksums"));
      }
    }
    json.end();
    if (!tree_checked || checksums_->size() != entries_.size()) json.fail("checksums are missing");
  }

  Value value() {
    switch (json_.peek()) {
      case Kind::Null:
        json_.null();
        return {};
      case Kind::Bool:
        return {json_.boolean()};
      case Kind::String:
        return make_str(json_.string());
      case Kind::Object: {
        auto dict = made(keeper_.dict());
        items(*dict);
        return {dict};
      }
      case Kind::Array:
        return tagged();
      default: {
        JsonReader::Number n = json_.number();
        if (!n.whole) return {n.real};
        if (!n.negative && n.integer < 0) json_.fail("a whole number beyond 64 bits");
        return {n.integer};
      }
    }
  }

  // Reads one array element; raises where there is none.
  void next() {
    if (!json_.more()) json_.fail("an array is too short");
  }
  void close() {
    if (json_.more()) json_.fail("an array is too long");
  }

  template <class T>
  std::shared_ptr<T> made(std::shared_ptr<T> p) {
    numbered_.push_back({p});
    return p;
  }

  Value tagged() {
    json_.begin_array();
    next();
    std::string tag = json_.string();
    static constexpr std::string_view lists = "luzeE";
    Value v;
    if (size_t kind = tag.size() == 1 ? lists.find(tag[0]) : std::string_view::npos; kind != std::string_view::npos) {
      auto list = made(keeper_.list(List::Kind(kind)));
      next();
      json_.begin_array();
      while (json_.more()) {
        list->items.push_back(value());
        if (kind == List::Size && !list->items.back().get<int64_t>())
          json_.fail("a Size holds something else than ints");
      }
      v = {list};
    } else if (tag == "d" || tag == "o" || tag == "n") {
      auto dict = made(keeper_.dict(tag == "o" ? Dict::Ordered : tag == "n" ? Dict::Counter : Dict::Plain));
      next();
      items(*dict);
      v = {dict};
      if (!json_.more()) return v;
      if (tag != "o") json_.fail("an array is too long");
      attributes(dict->attributes);
    } else if (tag == "t") {
      auto item = made(keeper_.tensor());
      next();
      tensor(*item);
      v = {item};
    } else if (tag == "r") {
      next();
      uint64_t n = json_.unsigned_int();
      if (n >= numbered_.size()) json_.fail("a reference leads nowhere");
      v = numbered_[n];
    } else {
      next();
      v = scalar(tag);
    }
    close();
    return v;
  }

  Value scalar(const std::string& tag) {
    if (tag == "c") {
      double re = real();
      next();
      return {std::complex<double>(re, real())};
    }
    std::string text = json_.string();
    if (tag == "f") {
      std::string bytes = unhex(text);
      double d;
      if (bytes.size() != 8) json_.fail("a float needs 8 bytes");
      std::memcpy(&d, bytes.data(), 8);
      return {d};
    }
    if (tag == "i") return {std::make_shared<const BigInt>(BigInt{unhex(text)})};
    if (tag == "b" || tag == "B") return {std::make_shared<const Bytes>(Bytes{unhex(text), tag == "B"})};
    if (tag == "dtype") return {dtype(text)};
    if (tag == "layout" && text == "strided") return {StridedLayout{}};
    if (tag == "device") {
      try {
        return {parse_device(text)};
      } catch (const Error& e) {
        source_.refuse(str_cat("holds a device that is not here: ", e.message()));
      }
    }
    json_.fail(str_cat("an unknown tag '", tag, "'"));
  }

  double real() {
    Value v = value();
    if (auto* d = v.get<double>()) return *d;
    json_.fail("expected a float");
  }

  DType dtype(const std::string& name) {
    for (int i = 0; i < kDTypeCount; ++i)
      if (name == dtype_name(DType(i))) return DType(i);
    json_.fail(str_cat("an unknown dtype '", name, "'"));
  }

  std::string unhex(const std::string& text) {
    auto digit = [&](char c) -> int {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      json_.fail("bytes are no hexadecimal numbers");
    };
    if (text.size() % 2) json_.fail("bytes are cut");
    std::string bytes;
    for (size_t i = 0; i < text.size(); i += 2) bytes += char(digit(text[i]) << 4 | digit(text[i + 1]));
    return bytes;
  }

  // {"key": value} or [[key, value], ...]
  void items(Dict& dict) {
    if (json_.peek() == Kind::Object) {
      std::string key;
      std::unordered_set<std::string> keys;
      json_.begin_object();
      while (json_.key(key)) {
        if (!keys.insert(key).second) json_.fail(str_cat("the key '", key, "' stands twice"));
        Value name = make_str(key);
        dict.items.emplace_back(std::move(name), value());
      }
      return;
    }
    json_.begin_array();
    while (json_.more()) {
      json_.begin_array();
      next();
      Value key = value();
      next();
      dict.items.emplace_back(std::move(key), value());
      close();
    }
  }

  void attributes(std::vector<std::pair<Str, Value>>& list) {
    std::string name;
    json_.begin_object();
    while (json_.key(name)) {
      auto shared = std::make_shared<const std::string>(name);
      list.emplace_back(std::move(shared), value());
    }
  }

  DimVec ints() {
    DimVec v;
    json_.begin_array();
    while (json_.more()) {
      if (v.size() >= size_t(TensorImpl::kMaxDims)) json_.fail("a tensor has too many dims");
      v.push_back(json_.signed_int());
    }
    return v;
  }

  void tensor(TensorItem& item) {
    std::string key, in, where = "cpu";
    std::optional<DType> type;
    std::optional<DimVec> shape, stride;
    int64_t offset = 0;
    json_.begin_object();
    while (json_.key(key)) {
      if (key == "in") {
        in = json_.string();
      } else if (key == "dtype") {
        type = dtype(json_.string());
      } else if (key == "shape") {
        shape = ints();
      } else if (key == "stride") {
        stride = ints();
      } else if (key == "offset") {
        offset = json_.signed_int();
      } else if (key == "kind") {
        std::string kind = json_.string();
        if (kind != "parameter" && kind != "buffer") json_.fail(str_cat("an unknown kind of tensor '", kind, "'"));
        item.kind = kind == "buffer" ? TensorItem::Buffer : TensorItem::Parameter;
      } else if (key == "grad") {
        item.requires_grad = json_.boolean();
      } else if (key == "device") {
        where = json_.string();
      } else if (key == "attributes") {
        attributes(item.attributes);
      } else {
        json_.fail(str_cat("an unknown part '", key, "' of a tensor"));
      }
    }
    if (!type || !shape) json_.fail("a tensor has no dtype or no shape");
    if (item.requires_grad && !is_differentiable(*type)) json_.fail("a tensor of integers asks for a gradient");
    item.tensor =
        tensor_within(source_, storage(in, where), *shape, stride ? *stride : strides_of(*shape), offset, *type);
  }

  DimVec strides_of(const DimVec& shape) {
    int64_t numel = 1;
    for (int64_t s : shape)
      if (s < 0 || (s > 1 && __builtin_mul_overflow(numel, s, &numel))) json_.fail("a shape is impossible");
    return contiguous_strides(shape);
  }

  const Ref<Storage>& storage(const std::string& name, const std::string& where) {
    auto [at, fresh] = storages_.try_emplace(name);
    if (fresh) {
      auto entry = entries_.find(name);
      if (entry == entries_.end()) json_.fail(str_cat("a tensor lies in '", name, "', which is not there"));
      const SafeEntry& e = *entry->second;
      Ref<Storage> data = source_.storage(e.from, e.to - e.from, 8);
      if (checksums_) {
        auto expected = checksums_->find(name);
        if (expected == checksums_->end()) json_.fail(str_cat("'", name, "' has no checksum"));
        if (!source_.pages())
          check(checksum(entry_checksum(e.dtype, e.sizes), data->data(), e.to - e.from), expected->second,
                str_cat("'", name, "' (read unchecked with mmap=True)"));
      }
      at->second = placed(source_, place_, std::move(data), where);
    }
    return at->second;
  }

  const Source& source_;
  const Place& place_;
  std::function<void(const std::string&)> refuse_;
  JsonReader json_;
  Keeper keeper_;
  std::vector<Value> numbered_;
  std::unordered_map<std::string, const SafeEntry*> entries_;
  std::optional<std::unordered_map<std::string, uint32_t>> checksums_;
  std::unordered_map<std::string, Ref<Storage>> storages_;
};

}  // namespace

Value read_package(const Source& source, const SafeHeader& header, const Place& place) {
  return PackageReader(source, header, place).read();
}

}  // namespace strata::io
