// Saving and loading: `_C._save`, `_C._load` and their like for plain safetensors files.
#include "bind/io/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "bind/tensor/methods.h"
#include "io/load.h"
#include "io/package.h"
#include "io/safetensors.h"

namespace strata::py {

namespace {

bool given(PyObject* o) { return o && o != Py_None; }

// Hands bytes to a Python function write(bytes) -> count or None. The lock is held.
class PythonWriter final : public io::Writer {
 public:
  explicit PythonWriter(PyObject* write) : write_(write) {}

 private:
  void put(const char* data, uint64_t bytes) override {
    while (bytes) {
      auto piece = Py_ssize_t(std::min<uint64_t>(bytes, 4 << 20));
      Own chunk(checked(PyBytes_FromStringAndSize(data, piece)));
      Own written(checked(PyObject_CallOneArg(write_, chunk.get())));
      // Raw files may take less than they were given.
      if (PyLong_Check(written.get())) {
        Py_ssize_t n = PyLong_AsSsize_t(written.get());
        if (n == -1 && PyErr_Occurred()) throw PythonError();
        STRATA_CHECK(n > 0 && n <= piece, "save: the file object's write() took ", n, " of ", piece, " bytes");
        piece = n;
      }
      data += piece;
      bytes -= uint64_t(piece);
    }
  }
  PyObject* write_;
};

// A path to be written, or a function write(bytes).
void write_to(PyObject* target, const io::SafeWriter& file) {
  if (PyUnicode_Check(target)) {
    std::string path(to_Str(target));
    ReleaseLock unlocked(true);
    io::write_atomically(path, [&](io::Writer& writer) { file.write(writer); });
  } else {
    PythonWriter writer(target);
    file.write(writer);
  }
}

// A path, or bytes. `map`: the file's own pages.
std::shared_ptr<io::Source> source_of(PyObject* from, bool map) {
  if (PyBytes_Check(from))
    return io::Source::memory({PyBytes_AS_STRING(from), size_t(PyBytes_GET_SIZE(from))}, "<file object>");
  std::string path(to_Str(from));
  // The system's own errors are Python's, with their number and the file's name.
  struct stat info;
  int failed = ::stat(path.c_str(), &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (!failed && ::access(path.c_str(), R_OK) != 0) failed = errno;
  if (failed) {
    errno = failed;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, from);
    throw PythonError();
  }
  ReleaseLock unlocked(true);
  return map ? io::Source::mapped(path) : io::Source::file(path);
}

// None: the device that the file names; a device: that one; a function (storage, location) -> device.
io::Place place_of(PyObject* o) {
  if (!given(o)) return {};
  if (!PyCallable_Check(o)) return [device = to_Device(o)](const Ref<Storage>&, const std::string&) { return device; };
  return [o](const Ref<Storage>& storage, const std::string& location) {
    Own handle(wrap_storage(storage));
    Own result(checked(PyObject_CallFunction(o, "Os#", handle.get(), location.data(), Py_ssize_t(location.size()))));
    return to_Device(result.get());
  };
}

PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[2] = {};
  read_args("_save", {"obj", "target"}, 2, v, args, n, kw, 2);
  io::Value value = to_value(v[0]);
  write_to(v[1], io::make_package(value));
  Py_RETURN_NONE;
}

PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[3] = {};
  read_args("_load", {"source", "map_location", "mmap"}, 3, v, args, n, kw, 1);
  std::shared_ptr<io::Source> source = source_of(v[0], given(v[2]) && to_Bool(v[2]));
  io::Place place = place_of(v[1]);
  io::Value value;
  {
    ReleaseLock unlocked(!given(v[1]) || !PyCallable_Check(v[1]));
    value = io::load(*source, place);
  }
  return from_value(value, *source);
}

std::vector<std::pair<std::string, Tensor>> named_tensors(PyObject* dict) {
  if (!PyDict_Check(dict))
    raise(PyExc_TypeError,
          str_cat("save_file: expected a dict of [str, strata.Tensor] but received ", Py_TYPE(dict)->tp_name));
  std::vector<std::pair<std::string, Tensor>> list;
  Own items(checked(PyDict_Items(dict)));  // not the class's own items(), which may give anything
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(items.get(), i);
    PyObject *name = PyTuple_GET_ITEM(pair, 0), *tensor = PyTuple_GET_ITEM(pair, 1);
    if (!PyUnicode_Check(name) || !is_tensor(tensor)) {
      Own shown(checked(PyObject_Repr(name)));
      raise(PyExc_TypeError,
            str_cat("save_file: key ", to_Str(shown.get()), " is invalid, expected str to strata.Tensor but received ",
                    Py_TYPE(name)->tp_name, " to ", Py_TYPE(tensor)->tp_name));
    }
    list.emplace_back(to_Str(name), tensor_of(tensor));
  }
  return list;
}

PyObject* save_safetensors(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[3] = {};
  read_args("_save_safetensors", {"tensors", "target", "metadata"}, 3, v, args, n, kw, 2);
  std::map<std::string, std::string> metadata;
  if (given(v[2])) {
    if (!PyDict_Check(v[2])) raise(PyExc_TypeError, "save_file: metadata must be a dict of str to str");
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(v[2], &at, &key, &value)) {
      if (!PyUnicode_Check(key) || !PyUnicode_Check(value))
        raise(PyExc_TypeError, "save_file: metadata must be a dict of str to str");
      metadata.emplace(to_Str(key), to_Str(value));
    }
  }
  auto tensors = named_tensors(v[0]);
  io::check_separate(tensors);
  write_to(v[1], io::SafeWriter(tensors, metadata));
  Py_RETURN_NONE;
}

// (dict of the tensors, metadata or None)
PyObject* load_safetensors(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  PyObject* v[3] = {};
  read_args("_load_safetensors", {"source", "device", "mmap"}, 3, v, args, n, kw, 1);
  std::shared_ptr<io::Source> source = source_of(v[0], given(v[2]) && to_Bool(v[2]));
  Device device = given(v[1]) ? to_Device(v[1]) : Device{};
  std::vector<std::pair<std::string, Tensor>> tensors;
  io::SafeHeader header;
  {
    ReleaseLock unlocked(true);
    header = io::read_safetensors_header(*source);
    for (const io::SafeEntry& e : header.entries)
      tensors.emplace_back(e.name, converted(io::read_safetensor(*source, e), std::nullopt, device));
  }
  auto put = [](PyObject* dict, const std::string& name, PyObject* value) {
    Own k(checked(PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), nullptr))), v(checked(value));
    checked(PyDict_SetItem(dict, k.get(), v.get()));
  };
  Own dict(checked(PyDict_New())), metadata(Py_NewRef(Py_None));
  for (auto& [name, t] : tensors) put(dict.get(), name, wrap(std::move(t)));
  if (!header.metadata.empty()) metadata = Own(checked(PyDict_New()));
  for (const auto& [key, text] : header.metadata)
    put(metadata.get(), key, PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr));
  return checked(PyTuple_Pack(2, dict.get(), metadata.get()));
}

template <MethodBody Body>
PyObject* caught(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  return guarded([&] { return Body(self, args, n, kw); });
}

PyMethodDef functions[] = {
    {"_save", fast<caught<save>>(), METH_FASTCALL | METH_KEYWORDS, "_save(obj, path or write)"},
    {"_load", fast<caught<load>>(), METH_FASTCALL | METH_KEYWORDS, "_load(path or bytes, map_location, mmap)"},
    {"_save_safetensors", fast<caught<save_safetensors>>(), METH_FASTCALL | METH_KEYWORDS,
     "_save_safetensors(tensors, path or write, metadata)"},
    {"_load_safetensors", fast<caught<load_safetensors>>(), METH_FASTCALL | METH_KEYWORDS,
     "_load_safetensors(path or bytes, device, mmap) -> (tensors, metadata)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_io(PyObject* module) { add_functions(module, functions); }

}  // namespace strata::py
