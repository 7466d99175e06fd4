#include "io/pt.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "io/json.h"

namespace strata::io {

namespace {

using pt::Call;
using pt::Global;

// What a persistent id stands for.
struct StorageRef : Opaque {
  Ref<Storage> storage;
  DType dtype;
};

const Global* as_global(const Value& v) { return dynamic_cast<const Global*>(v.opaque()); }
const StorageRef* as_storage(const Value& v) { return dynamic_cast<const StorageRef*>(v.opaque()); }

class PtHost final : public PickleHost {
 public:
  PtHost(const Source& source, const Place& place, const ZipReader& zip, std::string root, uint64_t pickle_bytes)
      : source_(source), place_(place), zip_(zip), root_(std::move(root)), copies_left_(4 * pickle_bytes + 4096) {}

  void refuse(const std::string& what) override { source_.refuse(what); }

  Value global(const std::string& module, const std::string& name) override {
    Value& known = globals_[module + "\n" + name];
    if (known.is_none()) known = pt::find_global(module, name);
    if (known.is_none())
      source_.refuse(
          str_cat("wants the global '", module, ".", name,
                  "', which is not on the list of what weights files may hold; nothing was run. If you trust "
                  "the file, load it with PyTorch and save a state_dict: tensors and plain values only"));
    return known;
  }

  // ('storage', type, key, location, number of elements)
  Value persistent(const Value& id) override {
    const List* t = id.list();
    auto fits = t && t->kind == List::Tuple && t->items.size() == 5 && t->items[0].str() &&
                *t->items[0].str() == "storage" && as_global(t->items[1]) && as_global(t->items[1])->storage &&
                t->items[2].str() && t->items[3].str() && t->items[4].get<int64_t>();
    if (!fits) damaged("a persistent id that is no storage");
    const std::string &key = *t->items[2].str(), &location = *t->items[3].str();
    DType dtype = *as_global(t->items[1])->storage;
    int64_t bytes;
    if (__builtin_mul_overflow(*t->items[4].get<int64_t>(), itemsize(dtype), &bytes)) damaged("an impossible storage");
    auto [at, fresh] = storages_.try_emplace(key);
    if (fresh) {
      const ZipEntry* entry = zip_.find(root_ + "data/" + key);
      if (!entry) damaged(str_cat("the storage '", key, "' is missing"));
      if (bytes < 0 || entry->size != uint64_t(bytes))
        damaged(str_cat("the storage '", key, "' has ", entry->size, " bytes; expected ", bytes));
      at->second = placed(source_, place_, zip_.storage(*entry), location);
    }
    if (uint64_t(bytes) > at->second->bytes()) damaged(str_cat("the storage '", key, "' has two sizes"));
    auto ref = std::make_shared<StorageRef>();
    ref->storage = at->second;
    ref->dtype = dtype;
    return {std::shared_ptr<Opaque>(ref)};
  }

  Value reduce(const Value& callable, const List& list, Keeper& keeper) override {
    const Global* f = as_global(callable);
    if (!f || f->call == Call::None)
      source_.refuse(str_cat("wants to call ", f ? f->name : "what is no function", "; nothing was run"));
    Arguments args{*this, *f, list.items};
    switch (f->call) {
      case Call::OrderedDict:
        return {ordered(args, keeper)};
      case Call::Counter:
        return {counter(args, keeper)};
      case Call::Set:
        return {copied(args, List::Set, List::Plain, keeper)};
      case Call::FrozenSet:
        return {copied(args, List::FrozenSet, List::Plain, keeper)};
      case Call::Size: {
        auto size = copied(args, List::Size, List::Tuple, keeper);
        for (const Value& v : size->items)
          if (!v.get<int64_t>()) args.wrong();
        return {size};
      }
      case Call::Complex:
        return {std::complex<double>(args.real(0), args.real(1))};
      case Call::BytesType:
        if (!list.items.empty()) args.wrong();
        return bytes({}, false);
      case Call::ByteArray:
        return bytes(byte_array(args), true);
      case Call::Encode:
        return bytes(latin1(args), false);
      case Call::Device:
        return device(args);
      case Call::GetLayout:
        if (args.text(0) != "torch.strided" || list.items.size() != 1)
          source_.refuse(str_cat("holds the layout ", args.text(0), "; strata has strided tensors only"));
        return {StridedLayout{}};
      case Call::RebuildTensor:
      case Call::RebuildTensorV2:
      case Call::RebuildTensorV3:
        return tensor(args, f->call, keeper);
      case Call::RebuildParameter:
      case Call::RebuildParameterWithState:
        return parameter(args, f->call, keeper);
      case Call::RebuildFromType:
        return typed(args, keeper);
      case Call::None:
        break;
    }
    args.wrong();
  }

  // Attributes of an OrderedDict are all that is set: a state_dict has `_metadata`.
  void build(const Value& object, const Value& state) override {
    auto* dict = object.get<std::shared_ptr<Dict>>();
    if (!dict || (*dict)->kind != Dict::Ordered)
      source_.refuse("sets the state of something else than an OrderedDict; nothing was run");
    attributes((*dict)->attributes, state);
  }

 private:
  struct Arguments {
    PtHost& host;
    const Global& function;
    const std::vector<Value>& items;

    [[noreturn]] void wrong() const { host.damaged(str_cat("wrong arguments for ", function.name)); }
    const Value& at(size_t i) const {
      if (i >= items.size()) wrong();
      return items[i];
    }
    double real(size_t i) const {
      if (auto* d = at(i).get<double>()) return *d;
      wrong();
    }
    int64_t integer(size_t i) const {
      if (auto* n = at(i).get<int64_t>()) return *n;
      wrong();
    }
    bool boolean(size_t i) const {
      if (auto* b = at(i).get<bool>()) return *b;
      wrong();
    }
    const std::string& text(size_t i) const {
      if (const std::string* s = at(i).str()) return *s;
      wrong();
    }
    DimVec ints(size_t i) const {
      const List* list = at(i).list();
      if (!list || list->items.size() > size_t(TensorImpl::kMaxDims)) wrong();
      DimVec v;
      for (const Value& item : list->items) {
        auto* n = item.get<int64_t>();
        if (!n) wrong();
        v.push_back(*n);
      }
      return v;
    }
    // An empty dict, or None.
    void no_hooks(size_t i) const {
      const Dict* hooks = at(i).dict();
      if (!at(i).is_none() && (!hooks || !hooks->items.empty()))
        host.source_.refuse("holds a tensor with backward hooks, which are code; nothing was run");
    }
  };

  [[noreturn]] void damaged(const std::string& what) { source_.refuse("has a damaged or unusual pickle: " + what); }

  // A file can ask for copies of one list over and over; a sound one copies what it holds once.
  void spend(uint64_t n) {
    if (n > copies_left_) damaged("it multiplies its own content");
    copies_left_ -= n;
  }

  std::shared_ptr<List> copied(const Arguments& args, List::Kind kind, List::Kind from, Keeper& keeper) {
    auto list = keeper.list(kind);
    if (args.items.empty()) return list;
    const List* items = args.at(0).list();
    if (args.items.size() != 1 || !items || (items->kind != from && items->kind != List::Tuple)) args.wrong();
    spend(items->items.size());
    list->items = items->items;
    return list;
  }

  std::shared_ptr<Dict> ordered(const Arguments& args, Keeper& keeper) {
    auto dict = keeper.dict(Dict::Ordered);
    if (args.items.empty()) return dict;
    const List* pairs = args.at(0).list();
    if (args.items.size() != 1 || !pairs) args.wrong();
    spend(pairs->items.size());
    for (const Value& pair : pairs->items) {
      const List* p = pair.list();
      if (!p || p->items.size() != 2) args.wrong();
      dict->items.emplace_back(p->items[0], p->items[1]);
    }
    return dict;
  }

  std::shared_ptr<Dict> counter(const Arguments& args, Keeper& keeper) {
    auto dict = keeper.dict(Dict::Counter);
    if (args.items.empty()) return dict;
    const Dict* items = args.at(0).dict();
    if (args.items.size() != 1 || !items) args.wrong();
    spend(items->items.size());
    dict->items = items->items;
    return dict;
  }

  static Value bytes(std::string data, bool array) {
    return {std::make_shared<const Bytes>(Bytes{std::move(data), array})};
  }

  // (text, 'latin1'): how protocol 2 holds bytes.
  std::string latin1(const Arguments& args) {
    const std::string &s = args.text(0), &codec = args.text(1);
    if (args.items.size() != 2 || (codec != "latin1" && codec != "latin-1")) args.wrong();
    spend(s.size());
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
      uint8_t c = uint8_t(s[i]);
      if (c < 0x80) {
        out += char(c);
      } else {
        if (c > 0xc3) args.wrong();  // text is UTF-8: two bytes for 0x80 to 0xff
        out += char((c & 3) << 6 | (uint8_t(s[++i]) & 0x3f));
      }
    }
    return out;
  }

  std::string byte_array(const Arguments& args) {
    if (args.items.empty()) return {};
    if (auto* b = args.at(0).get<std::shared_ptr<const Bytes>>(); b && args.items.size() == 1) {
      spend((*b)->data.size());
      return (*b)->data;
    }
    return latin1(args);
  }

  Value device(const Arguments& args) {
    std::string text = args.text(0);
    if (args.items.size() == 2 && !args.at(1).is_none()) text += ":" + std::to_string(args.integer(1));
    if (args.items.size() > 2) args.wrong();
    try {
      return {parse_device(text)};
    } catch (const Error& e) {
      source_.refuse(str_cat("holds a device that is not here: ", e.message()));
    }
  }

  // (storage, offset, sizes, strides[, requires_grad, hooks[, metadata]]); version 3 has the dtype before the metadata.
  Value tensor(const Arguments& args, Call call, Keeper& keeper) {
    const StorageRef* ref = as_storage(args.at(0));
    size_t n = args.items.size(), plain = call == Call::RebuildTensor ? 4 : call == Call::RebuildTensorV2 ? 6 : 7;
    if (!ref || n < plain || n > plain + (call != Call::RebuildTensor)) args.wrong();
    DType dtype = ref->dtype;
    if (call == Call::RebuildTensorV3) {
      auto* type = args.at(6).get<DType>();
      if (!type) args.wrong();
      dtype = *type;
    }
    auto item = keeper.tensor();
    if (call != Call::RebuildTensor) {
      item->requires_grad = args.boolean(4);
      args.no_hooks(5);
      if (item->requires_grad && !is_differentiable(dtype)) args.wrong();
      if (n > plain) no_math_bits(args.at(plain));
    }
    item->tensor = tensor_within(source_, ref->storage, args.ints(2), args.ints(3), args.integer(1), dtype);
    return {item};
  }

  // PyTorch marks tensors that are conjugated or negated lazily.
  void no_math_bits(const Value& metadata) {
    const Dict* dict = metadata.dict();
    if (!dict && !metadata.is_none()) damaged("metadata of a tensor that is no dict");
    if (!dict) return;
    for (const auto& [key, value] : dict->items) {
      auto* on = value.get<bool>();
      if (!on || *on)
        source_.refuse(str_cat("holds a tensor with the mark '", key.str() ? *key.str() : "?",
                               "'; save tensor.resolve_conj() or tensor.resolve_neg() of it in PyTorch"));
    }
  }

  void attributes(std::vector<std::pair<Str, Value>>& to, const Value& state) {
    const Dict* dict = state.dict();
    if (!dict) damaged("a state that is no dict");
    spend(dict->items.size());
    for (const auto& [key, value] : dict->items) {
      if (!key.get<Str>()) damaged("a state whose names are no strings");
      to.emplace_back(*key.get<Str>(), value);
    }
  }

  // (data, requires_grad, hooks[, state])
  Value parameter(const Arguments& args, Call call, Keeper& keeper) {
    const TensorItem* data = args.at(0).tensor();
    if (!data || args.items.size() != (call == Call::RebuildParameter ? 3 : 4)) args.wrong();
    auto item = keeper.tensor();
    item->tensor = data->tensor.alias();
    item->kind = TensorItem::Parameter;
    item->requires_grad = args.boolean(1);
    if (item->requires_grad && !is_differentiable(item->tensor.dtype())) args.wrong();
    args.no_hooks(2);
    if (call == Call::RebuildParameterWithState) attributes(item->attributes, args.at(3));
    return {item};
  }

  // (function, type, arguments, state)
  Value typed(const Arguments& args, Keeper& keeper) {
    const Global *function = as_global(args.at(0)), *type = as_global(args.at(1));
    const List* inner = args.at(2).list();
    bool known = function && function->call >= Call::RebuildTensor && function->call <= Call::RebuildParameter;
    if (args.items.size() != 4 || !known || !type || !inner) args.wrong();
    bool parameter = type->name == "torch.nn.parameter.Parameter";
    if (!parameter && type->name != "torch.Tensor") args.wrong();
    Value made = reduce(args.at(0), *inner, keeper);
    auto& item = *made.get<std::shared_ptr<TensorItem>>();
    if (parameter) item->kind = TensorItem::Parameter;
    if (!args.at(3).is_none()) attributes(item->attributes, args.at(3));
    auto& list = item->attributes;
    for (const auto& [name, value] : list)
      if (*name == "_is_buffer" && value.get<bool>() && *value.get<bool>()) item->kind = TensorItem::Buffer;
    if (item->kind == TensorItem::Buffer)
      list.erase(std::remove_if(list.begin(), list.end(), [](const auto& a) { return *a.first == "_is_buffer"; }),
                 list.end());
    return made;
  }

  const Source& source_;
  const Place& place_;
  const ZipReader& zip_;
  std::string root_;
  uint64_t copies_left_;
  std::unordered_map<std::string, Value> globals_;
  std::unordered_map<std::string, Ref<Storage>> storages_;
};

// The first part of every name, with its slash.
std::string root_of(const Source& source, const ZipReader& zip) {
  const ZipEntry* pickle = nullptr;
  for (const ZipEntry& e : zip.entries()) {
    size_t slash = e.name.find('/');
    if (slash != std::string::npos && e.name.substr(slash) == "/data.pkl") {
      if (pickle) source.refuse("is no .pt file: it holds two pickles");
      pickle = &e;
    }
  }
  if (!pickle) source.refuse("is a zip archive but no .pt file: it has no data.pkl");
  return pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
}

}  // namespace

Value read_pt(const Source& source, const Place& place) {
  ZipReader zip(source);
  std::string root = root_of(source, zip);
  if (zip.find(root + "constants.pkl"))
    source.refuse("is a TorchScript program, which is code; save its state_dict with torch.save instead");
  if (const ZipEntry* order = zip.find(root + "byteorder"))
    if (order->size > 16 || zip.text(*order) != "little")
      source.refuse("was written on a machine with the highest byte first, which is not read; save it again elsewhere");
  std::string pickle = zip.text(*zip.find(root + "data.pkl"));
  PtHost host(source, place, zip, root, pickle.size());
  return read_pickle(pickle, host);
}

}  // namespace strata::io
