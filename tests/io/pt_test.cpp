// io/pt, io/pickle, io/zip: files of torch.save, damaged ones, and pickles that want to run something.
#include "io_files.h"

#include "io/pt.h"
#include "io/zip.h"

namespace strata::io {
namespace {

const std::string kData = "tests/data/io/";

std::string pt_file(const std::string& pickle, std::vector<ZipItem> more = {}) {
  more.insert(more.begin(), {"archive/data.pkl", pickle});
  return make_zip(more);
}
// A pickle of protocol 2 around a body that leaves one value.
std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string text(const std::string& s) {
  std::string out = "X";
  append<uint32_t>(out, uint32_t(s.size()));
  return out + s;
}
std::string tensor(const std::string& arguments) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + arguments + "tR";
}
std::string storage(const std::string& key, int count) {
  return "(" + text("storage") + global("torch", "FloatStorage") + text(key) + text("cpu") + "K" + char(count) + "tQ";
}
const std::string kHooks = global("collections", "OrderedDict") + ")R";
const ZipItem kFour = {"archive/data/0", std::string(16, '\1')};

TEST(Pt, ReadsAStateDict) {
  Value v = load_bytes(read_bytes(kData + "state_dict.pt"));
  const Dict* d = v.dict();
  ASSERT_TRUE(d);
  EXPECT_EQ(d->kind, Dict::Ordered);
  EXPECT_EQ(*d->items[0].first.str(), "0.weight");
  EXPECT_EQ(d->items[0].second.tensor()->tensor.sizes(), IntArrayRef({2, 1, 3, 3}));
  ASSERT_EQ(d->attributes.size(), 1u);
  EXPECT_EQ(*d->attributes[0].first, "_metadata");
}

TEST(Pt, ViewsShareTheirStorage) {
  for (bool mapped : {false, true}) {
    auto source = mapped ? Source::mapped(kData + "views.pt") : Source::file(kData + "views.pt");
    Value v = load(*source);
    source.reset();
    const auto& items = v.dict()->items;
    const Tensor& base = items[0].second.tensor()->tensor;
    for (size_t i = 1; i < 7; ++i) EXPECT_EQ(items[i].second.tensor()->tensor.storage(), base.storage());
    EXPECT_EQ(items[0].second.tensor(), items[6].second.tensor());
    EXPECT_EQ(items[1].second.tensor()->tensor.data<float>()[1], 1);
    EXPECT_EQ(base.storage()->borrowed(), mapped);
    *base.data<float>() = 5;  // a private page
  }
  EXPECT_EQ(*load_bytes(read_bytes(kData + "views.pt")).dict()->items[0].second.tensor()->tensor.data<float>(), 0);
}

TEST(Pt, CutAtEveryByte) {
  for (const char* name : {"views.pt", "deflated.pt"}) {
    std::string bytes = read_bytes(kData + name);
    EXPECT_EQ(refusal(bytes), "");
    for (size_t n = 0; n < bytes.size(); ++n) ASSERT_NE(refusal(bytes.substr(0, n)), "") << name << " cut to " << n;
  }
}

TEST(Pt, FlippedBytesLoadOrRaise) {
  std::mt19937 random(3);
  for (const char* name : {"state_dict.pt", "plain.pt", "plain5.pt", "parameters.pt", "deflated.pt"}) {
    std::string bytes = read_bytes(kData + name);
    for (int i = 0; i < 2000; ++i) {
      std::string damaged = bytes;
      for (uint32_t k = random() % 3 + 1; k--;) damaged[random() % damaged.size()] = char(random());
      refusal(damaged);
    }
  }
}

// With right checksums, so that the damage reaches the reader of pickles.
TEST(Pt, DamagedPicklesLoadOrRaise) {
  std::mt19937 random(4);
  int loaded = 0, total = 0;
  for (const char* name :
       {"state_dict.pt", "state_dict4.pt", "plain.pt", "plain5.pt", "parameters.pt", "training.pt"}) {
    std::string bytes = read_bytes(kData + name), good;
    auto source = Source::memory(bytes, name);
    ZipReader zip(*source);
    std::vector<ZipItem> items;
    for (const ZipEntry& e : zip.entries()) {
      size_t slash = e.name.find('/');
      if (e.name.substr(slash) == "/data.pkl")
        good = zip.text(e);
      else
        items.push_back({"archive" + e.name.substr(slash), zip.text(e)});
    }
    ASSERT_EQ(refusal(pt_file(good, items)), "");
    for (size_t n = 0; n < good.size(); n += 1 + good.size() / 1000)
      ASSERT_NE(refusal(pt_file(good.substr(0, n), items)), "") << name << " cut to " << n;
    const std::string codes =
        "().NKMJGXhjqrtuesabcQR}]\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8f\x90\x91\x93\x94\x95\x96";
    for (int i = 0; i < 2500; ++i, ++total) {
      std::string damaged = good;
      for (uint32_t k = random() % 3 + 1; k--;) {
        size_t at = 2 + random() % (damaged.size() - 2);
        switch (random() % 4) {
          case 0:
            damaged[at] = char(random());
            break;
          case 1:
            damaged[at] = codes[random() % codes.size()];
            break;
          case 2:
            damaged.erase(at, random() % 9);
            break;
          default:
            damaged.insert(at, damaged.substr(2 + random() % (damaged.size() - 2), random() % 30));
        }
        if (damaged.size() < 3) damaged += "....";
      }
      loaded += refusal(pt_file(damaged, items)).empty();
    }
  }
  EXPECT_GT(loaded, total / 100);
}

TEST(Pt, ForbiddenGlobalsAreNamedAndNotRun) {
  Folder folder;
  std::string trace = folder / "it-ran", command = "touch " + trace;
  const std::pair<std::string, std::string> names[] = {{"os", "system"},
                                                       {"posix", "system"},
                                                       {"nt", "system"},
                                                       {"subprocess", "Popen"},
                                                       {"subprocess", "run"},
                                                       {"builtins", "eval"},
                                                       {"builtins", "exec"},
                                                       {"__builtin__", "eval"},
                                                       {"__builtin__", "exec"},
                                                       {"builtins", "getattr"},
                                                       {"builtins", "__import__"},
                                                       {"builtins", "open"},
                                                       {"builtins", "compile"},
                                                       {"builtins", "print"},
                                                       {"builtins", "type"},
                                                       {"builtins", "object"},
                                                       {"builtins", "dict"},
                                                       {"builtins", "list"},
                                                       {"builtins", "map"},
                                                       {"operator", "attrgetter"},
                                                       {"functools", "partial"},
                                                       {"pickle", "loads"},
                                                       {"_pickle", "loads"},
                                                       {"marshal", "loads"},
                                                       {"runpy", "run_path"},
                                                       {"importlib", "import_module"},
                                                       {"shutil", "rmtree"},
                                                       {"socket", "socket"},
                                                       {"ctypes", "CDLL"},
                                                       {"code", "interact"},
                                                       {"pty", "spawn"},
                                                       {"webbrowser", "open"},
                                                       {"torch.hub", "load"},
                                                       {"torch", "load"},
                                                       {"torch.storage", "_load_from_bytes"},
                                                       {"torch._utils", "_rebuild_sparse_tensor"},
                                                       {"torch._utils", "_rebuild_qtensor"},
                                                       {"torch._C", "_jit_init"},
                                                       {"torch.nn.modules.linear", "Linear"},
                                                       {"collections", "defaultdict"},
                                                       {"collections", "namedtuple"},
                                                       {"collections", "OrderedDict.fromkeys"},
                                                       {"numpy", "load"},
                                                       {"numpy._core.multiarray", "_reconstruct"},
                                                       {"_codecs", "decode"},
                                                       {"os", ""},
                                                       {"", "system"},
                                                       {"torch.FloatStorage", "__init__"}};
  int count = 0;
  for (const auto& [module, name] : names) {
    std::string args = "(" + text(command) + "t", found = global(module, name);
    const std::string bodies[] = {
        found + args + "R",                               // called
        found,                                            // held
        text(module) + text(name) + "\x93" + args + "R",  // by STACK_GLOBAL
        kHooks + "(" + text("a") + found + args + "Rub",  // as a state's value
        global("collections", "OrderedDict") + "(](" + text("a") + found + args + "R\x86" + "etR",  // nested
        found + args + "R}b",                                                                       // with BUILD
        found + args + "\x81",                                                                      // with NEWOBJ
    };
    for (const std::string& body : bodies) {
      std::string refused = refusal(pt_file(pickle(body)));
      EXPECT_NE(refused.find("'" + module + "." + name + "'"), std::string::npos) << refused;
      EXPECT_NE(refused.find("nothing was run"), std::string::npos) << refused;
      ++count;
    }
    expect_refused(pt_file(pickle("(" + text(command) + "i" + module + "\n" + name + "\n")), "INST");
    expect_refused(pt_file(pickle("(" + found + text(command) + "o")), module);
    ++count;
  }
  EXPECT_GE(count, 200);
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(Pt, UnusualPicklesSayWhatIsWrong) {
  const std::string self_list = std::string("]q\0h\0a", 6);
  const std::string f = global("collections", "OrderedDict"), t = global("torch", "Tensor");
  const std::pair<std::string, std::string> cases[] = {
      {"(o", "OBJ"},
      {"N\x81", "NEWOBJ"},
      {"N\x92", "NEWOBJ_EX"},
      {"\x82\x01", "EXT1"},
      {std::string("\x83\x01\0", 3), "EXT2"},
      {std::string("\x84\x01\0\0\0", 5), "EXT4"},
      {"P1\n", "PERSID"},
      {"N0", "POP"},
      {"N2", "DUP"},
      {"I1\n", "INT"},
      {"F1\n", "FLOAT"},
      {"S'a'\n", "STRING"},
      {"Va\n", "UNICODE"},
      {"g0\n", "GET"},
      {"\x97", "NEXT_BUFFER"},
      {"\xff", "unknown opcode 255"},
      {"", "left over"},
      {"NN", "left over"},
      {"(N", "left over"},
      {"(", "left over"},
      {"((Nb", "value is missing"},
      {"t", "mark is missing"},
      {"e", "mark is missing"},
      {"Na", "value is missing"},
      {"NNa", "no list"},
      {")Na", "no list"},
      {"](Nu", "no dict"},
      {"}(Nu", "no dict"},
      {"NNNs", "no dict"},
      {"](N\x90", "no list or set"},
      {"NR", "value is missing"},
      {"NNR", "no tuple"},
      {"N)R", "no function"},
      {t + ")R", "wants to call torch.Tensor"},
      {t, "bare storage, type or function"},
      {f, "bare storage, type or function"},
      {global("torch", "FloatStorage") + ")R", "wants to call torch.FloatStorage"},
      {global("torch", "float32") + ")R", "no function"},
      {f + "N\x85R", "wrong arguments for collections.OrderedDict"},
      {f + "]N\x86R", "wrong arguments"},
      {f + "]Na\x85R", "wrong arguments"},
      {"]}b", "something else than an OrderedDict"},
      {"}}b", "something else than an OrderedDict"},
      {f + ")RNb", "no dict"},
      {f + ")R}K\x01Nsb", "names are no strings"},
      {global("builtins", "set") + "]]a\x85R", "no plain value"},
      {"}]Ns", "no plain value"},
      {global("builtins", "complex") + "NN\x86R", "wrong arguments"},
      {global("_codecs", "encode") + text("a") + text("rot13") + "\x86R", "wrong arguments"},
      {global("_codecs", "encode") + text("\xe2\x82\xac") + text("latin1") + "\x86R", "wrong arguments"},
      {global("torch", "Size") + "(N\x85t\x85R", "wrong arguments"},
      {global("torch", "device") + text("warp") + "\x85R", "not here"},
      {global("torch.serialization", "_get_layout") + text("torch.sparse_coo") + "\x85R", "strided"},
      {"NQ", "no storage"},
      {self_list, "contains itself"},
      {std::string("}q\0Nh\0s", 7), "contains itself"},
      {std::string("q\x05", 2), "holes"},
      {std::string("Nq\x05", 3), "holes"},
      {std::string("h\x05", 2), "lacks"},
      {"X\xff\xff\xff\xff", "cut"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "cut"},
      {"\x8b\xff\xff\xff\xff", "cut"},
      {"\x95\xff\xff\xff\xff\xff\xff\xff\xff", "cut"},
      {text("\xff"), "UTF-8"},
      {"cos", "no end"},
      {"c\xff\nx\n", "UTF-8"},
      {"NN\x93", "no string"},
  };
  for (const auto& [body, part] : cases) {
    SCOPED_TRACE(body);
    expect_refused(pt_file(pickle(body)), part);
  }
  expect_refused(pt_file(""), "cut");
  expect_refused(pt_file("N."), "protocol");
  expect_refused(pt_file("\x80\x06N."), "protocol 6");
  expect_refused(pt_file("\x80\x01N."), "protocol 1");
  expect_refused(pt_file("\x80\x02N.N"), "follows");
  EXPECT_EQ(refusal(pt_file("\x80\x02N.")), "");
}

TEST(Pt, TensorsMustFitTheirStorage) {
  auto file = [](const std::string& body) { return pt_file(pickle(body), {kFour}); };
  std::string s = storage("0", 4), k1 = "K\1", one = "K\1\x85", four = "K\4\x85", tail = "\x89" + kHooks;
  std::string zero = std::string("K\0", 2);
  EXPECT_EQ(refusal(file(tensor(s + zero + four + one + tail))), "");
  EXPECT_EQ(refusal(file(tensor(s + zero + four + one + tail + "N"))), "");
  const std::pair<std::string, std::string> cases[] = {
      {tensor(s + k1 + four + one + tail), "does not fit"},
      {tensor(s + "J\xff\xff\xff\xff" + four + one + tail), "does not fit"},
      {tensor(s + zero + "J\xff\xff\xff\xff\x85" + one + tail), "does not fit"},
      {tensor(s + zero + four + "K\2\x85" + tail), "does not fit"},
      {tensor(s + zero + four + "J\xff\xff\xff\xff\x85" + tail), "does not fit"},
      {tensor(s + zero + four + ")" + tail), "does not fit"},
      {tensor(s + zero + std::string("\x8a\x08\0\0\0\0\0\0\0\x40\x85", 11) + zero + "\x85" + tail), "does not fit"},
      {tensor(s + zero + four + "N" + tail), "wrong arguments"},
      {tensor(s + zero + four + one), "wrong arguments"},
      {tensor("N" + zero + four + one + tail), "wrong arguments"},
      {tensor(s + zero + four + one + "N" + kHooks), "wrong arguments"},
      {tensor(s + zero + four + one + "\x89}K\1Ns"), "hooks"},
      {tensor(s + zero + four + one + tail + "}" + text("conj") + "\x88s"), "resolve_conj"},
      {tensor(storage("1", 4) + zero + four + one + tail), "missing"},
      {tensor(storage("../0", 4) + zero + four + one + tail), "missing"},
      {tensor(storage("0", 3) + zero + four + one + tail), "expected 12"},
      {tensor(storage("0", 5) + zero + four + one + tail), "expected 20"},
      {s, "bare storage"},
      {"]" + s + "a", "bare storage"},
  };
  for (const auto& [body, part] : cases) {
    SCOPED_TRACE(body);
    expect_refused(file(body), part);
  }
  // The same storage twice with two sizes.
  expect_refused(file("]" + s + "a" + storage("0", 9) + "a"), "two sizes");
}

TEST(Pt, DeepAndLargeNestsEnd) {
  auto nest = [](const std::string& before, const std::string& after, int n) {
    std::string body;
    for (int i = 0; i < n; ++i) body += before;
    body += "N";
    for (int i = 0; i < n; ++i) body += after;
    return pt_file(pickle(body));
  };
  EXPECT_EQ(refusal(nest("]", "a", kMaxDepth)), "");
  EXPECT_EQ(refusal(nest("", "\x85", kMaxDepth)), "");
  for (int n : {kMaxDepth + 1, 1000, 300000}) {
    expect_refused(nest("]", "a", n), "deeper");
    expect_refused(nest("", "\x85", n), "deeper");
    expect_refused(nest("}N", "s", n), "deeper");
  }
  // Two million values at once, and lists that are thrown away inside one another.
  expect_refused(pt_file(pickle(std::string(2000000, ']'))), "wait at once");
  expect_refused(pt_file(pickle(std::string(2000000, '('))), "marks");
  // Nests that double at each level: t = (t, t).
  std::string doubling = ")q";
  doubling += '\0';
  for (int i = 0; i < 50; ++i) doubling += std::string("h") + char(i) + "h" + char(i) + "\x86q" + char(i + 1) + "";
  std::string kept = "](" + doubling + "e";
  EXPECT_EQ(refusal(pt_file(pickle(kept))), "");
  expect_refused(pt_file(pickle("}" + ("(" + doubling + "t") + "Ns")), "256 values");
  // One list, copied over and over.
  std::string list = "](";
  for (int i = 0; i < 20000; ++i) list += "N";
  list += std::string("eq\0", 3);
  std::string copies = "](" + list;
  for (int i = 0; i < 20000; ++i) copies += global("builtins", "set") + std::string("h\0\x85R", 4);
  expect_refused(pt_file(pickle(copies + "e")), "multiplies");
}

TEST(Pt, OtherArchivesAreRefused) {
  std::string good = pickle("N");
  EXPECT_EQ(refusal(make_zip({{"a/data.pkl", good}})), "");
  EXPECT_EQ(refusal(make_zip({{"a/data.pkl", good}}, true)), "");
  EXPECT_EQ(refusal(make_zip({{"a/data.pkl", good}, {"a/byteorder", "little"}})), "");
  expect_refused(make_zip({{"a/data.pkl", good}, {"a/byteorder", "big"}}), "highest byte first");
  expect_refused(make_zip({{"a/data.pkl", good}, {"b/data.pkl", good}}), "two pickles");
  expect_refused(make_zip({{"a/data.pkl", good}, {"a/data.pkl", good}}), "stands twice");
  expect_refused(make_zip({{"a/data.pkl", good}, {"a/constants.pkl", good}}), "TorchScript");
  expect_refused(make_zip({{"a.txt", "x"}}), "no data.pkl");
  expect_refused(make_zip({}), "no data.pkl");
  expect_refused(make_zip({{"a/data.pkl", good, 0, 1}}), "encrypted");
  expect_refused(make_zip({{"a/data.pkl", good, 12}}), "method 12");
  expect_refused(make_zip({{"a/data.pkl", good, 0, 0, 99}}), "two sizes");
  expect_refused(make_zip({{"a/data.pkl", good, 8}}), "does not unpack");
  expect_refused(make_zip({{"a/data.pkl", good, 8, 0, uint64_t(1) << 31}}), "claims to unpack");
  std::string damaged = make_zip({{"a/data.pkl", good}});
  damaged[30 + 10 + 2] ^= 1;
  expect_refused(damaged, "checksum");
  expect_refused("\x80\x02N.", "bare pickle");
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  expect_refused(tar, "tar archive");
  expect_refused("", "empty");
  expect_refused("GGUF", "neither");
  expect_refused(std::string("\x93NUMPY\1\0", 8), "neither");
}

TEST(Zip, DeflatedEntriesAreChecked) {
  std::string plain(5000, '\0'), packed(200, '\0');
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = char(i % 7);
  z_stream z{};
  ASSERT_EQ(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(plain.data());
  z.avail_in = uInt(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = uInt(packed.size());
  ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  for (uint64_t claimed : {uint64_t(0), uint64_t(1), uint64_t(4999), uint64_t(5000), uint64_t(5001), uint64_t(6000)}) {
    std::string bytes = make_zip({{"a", packed, 8, 0, claimed}});
    auto source = Source::memory(bytes, "file");
    ZipReader zip(*source);
    // make_zip's checksum is that of the packed bytes: all of them are refused, those of the wrong size for their size.
    try {
      zip.text(*zip.find("a"));
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.message().find("checksum") != std::string::npos, claimed == 5000) << e.message();
    }
  }
}

TEST(Zip, OverlappingEntriesAreRefused) {
  // Two entries of the directory, of which the second lies in the first one's data.
  std::string inner = make_zip({{"b", "data"}}), outer = make_zip({{"a", inner}});
  size_t directory = outer.rfind(std::string("PK\1\2", 4)), end = outer.rfind(std::string("PK\5\6", 4));
  std::string second = inner.substr(inner.find(std::string("PK\1\2", 4)), 47);
  uint32_t local = 31;
  std::memcpy(&second[42], &local, 4);
  std::string both = outer.substr(0, end) + second + outer.substr(end);
  size_t tail = both.rfind(std::string("PK\5\6", 4));
  auto bytes = uint32_t(end - directory + second.size());
  both[tail + 8] = both[tail + 10] = 2;
  std::memcpy(&both[tail + 12], &bytes, 4);
  try {
    ZipReader(*Source::memory(both, "file"));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("overlap"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace strata::io
