#include "io/pickle.h"

#include <bit>
#include <cstring>

#include "io/json.h"

namespace strata::io {

namespace {

// Values that wait on the stack: ten times what any container of a weights file needs.
constexpr size_t kMaxStack = size_t(1) << 20;

constexpr std::pair<uint8_t, const char*> kRefused[] = {{'0', "POP"},          {'1', "POP_MARK"},
                                                        {'2', "DUP"},          {'F', "FLOAT"},
                                                        {'I', "INT"},          {'L', "LONG"},
                                                        {'P', "PERSID"},       {'S', "STRING"},
                                                        {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
                                                        {'V', "UNICODE"},      {'d', "DICT"},
                                                        {'g', "GET"},          {'i', "INST"},
                                                        {'l', "LIST"},         {'o', "OBJ"},
                                                        {'p', "PUT"},          {0x81, "NEWOBJ"},
                                                        {0x82, "EXT1"},        {0x83, "EXT2"},
                                                        {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
                                                        {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"}};

class Machine {
 public:
  Machine(std::string_view data, PickleHost& host) : data_(data), host_(host) {}

  Value run() {
    if (take<uint8_t>() != 0x80) fail("it does not begin with a protocol");
    uint8_t protocol = take<uint8_t>();
    if (protocol < 2 || protocol > 5) fail(str_cat("protocol ", int(protocol), "; expected 2 to 5"));
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("values are left over");
    if (at_ != data_.size()) fail("something follows its end");
    return keeper_.finish(std::move(stack_.back()), [&](const std::string& what) { host_.refuse(what); });
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    host_.refuse(str_cat("has a damaged or unusual pickle: ", what, " (at byte ", at_, ")"));
    throw_error(ErrorKind::Internal, "PickleHost::refuse returned");
  }

  // ---- input
  std::string_view bytes(uint64_t n) {
    if (n > data_.size() - at_) fail("it is cut");
    std::string_view s = data_.substr(at_, n);
    at_ += n;
    return s;
  }
  template <class T>
  T take() {
    T v;
    std::memcpy(&v, bytes(sizeof v).data(), sizeof v);
    return v;
  }
  std::string line() {
    size_t end = data_.find('\n', at_);
    if (end == std::string_view::npos) fail("a line has no end");
    std::string s(data_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }
  void text(uint64_t n) {
    std::string_view s = bytes(n);
    if (!is_utf8(s)) fail("a string is no UTF-8 text");
    push(make_str(std::string(s)));
  }
  void binary(uint64_t n, bool array = false) {
    push({std::make_shared<const Bytes>(Bytes{std::string(bytes(n)), array})});
  }
  void integer(uint64_t n) {
    std::string_view s = bytes(n);
    if (n > 8) return push({std::make_shared<const BigInt>(BigInt{std::string(s)})});
    uint64_t v = n && (s.back() & 0x80) ? ~uint64_t(0) : 0;
    std::memcpy(&v, s.data(), s.size());
    push({int64_t(v)});
  }

  // ---- stack and memo
  void push(Value v) {
    if (stack_.size() >= kMaxStack) fail(str_cat("more than ", kMaxStack, " values wait at once"));
    stack_.push_back(std::move(v));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value pop() {
    if (stack_.size() <= floor()) fail("a value is missing");
    Value v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  const Value& top() {
    if (stack_.size() <= floor()) fail("a value is missing");
    return stack_.back();
  }
  std::vector<Value> pop_mark() {
    if (marks_.empty()) fail("a mark is missing");
    std::vector<Value> items(std::make_move_iterator(stack_.begin() + int64_t(marks_.back())),
                             std::make_move_iterator(stack_.end()));
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void put(uint64_t index) {
    if (index > memo_.size()) fail("its memo has holes");
    if (index == memo_.size())
      memo_.push_back(top());
    else
      memo_[index] = top();
  }
  void get(uint64_t index) {
    if (index >= memo_.size()) fail("its memo lacks an entry");
    push(memo_[index]);
  }

  // ---- containers
  void push_list(List::Kind kind, std::vector<Value> items) {
    auto list = keeper_.list(kind);
    list->items = std::move(items);
    push({list});
  }
  void tuple(size_t n) {
    std::vector<Value> items(n);
    while (n--) items[n] = pop();
    push_list(List::Tuple, std::move(items));
  }
  void extend(List::Kind kind, std::vector<Value> items) {
    auto* list = top().get<std::shared_ptr<List>>();
    if (!list || (*list)->kind != kind) fail("items for what is no list or set");
    auto& to = (*list)->items;
    to.insert(to.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  }
  void set_items(std::vector<Value> items) {
    auto* dict = top().get<std::shared_ptr<Dict>>();
    if (!dict || items.size() % 2) fail("items for what is no dict");
    for (size_t i = 0; i < items.size(); i += 2)
      (*dict)->items.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  }
  void global(const std::string& module, const std::string& name) {
    if (!is_utf8(module) || !is_utf8(name)) fail("a name is no UTF-8 text");
    push(host_.global(module, name));
  }

  bool step() {
    uint8_t code = take<uint8_t>();
    switch (code) {
      case '.':
        return false;  // STOP
      case 0x95: {     // FRAME
        uint64_t n = take<uint64_t>();
        if (n > data_.size() - at_) fail("a frame is cut");
        break;
      }
      case '(': {  // MARK
        if (marks_.size() >= kMaxStack) fail("too many marks");
        marks_.push_back(stack_.size());
        break;
      }
      case 'N':
        push({});
        break;  // NONE
      case 0x88:
        push({true});
        break;  // NEWTRUE
      case 0x89:
        push({false});
        break;  // NEWFALSE
      case 'J':
        push({int64_t(take<int32_t>())});
        break;  // BININT
      case 'K':
        push({int64_t(take<uint8_t>())});
        break;  // BININT1
      case 'M':
        push({int64_t(take<uint16_t>())});
        break;  // BININT2
      case 0x8a:
        integer(take<uint8_t>());
        break;  // LONG1
      case 0x8b:
        integer(take<uint32_t>());
        break;     // LONG4
      case 'G': {  // BINFLOAT, highest byte first
        push({std::bit_cast<double>(__builtin_bswap64(take<uint64_t>()))});
        break;
      }
      case 'X':
        text(take<uint32_t>());
        break;  // BINUNICODE
      case 0x8c:
        text(take<uint8_t>());
        break;  // SHORT_BINUNICODE
      case 0x8d:
        text(take<uint64_t>());
        break;  // BINUNICODE8
      case 'B':
        binary(take<uint32_t>());
        break;  // BINBYTES
      case 'C':
        binary(take<uint8_t>());
        break;  // SHORT_BINBYTES
      case 0x8e:
        binary(take<uint64_t>());
        break;  // BINBYTES8
      case 0x96:
        binary(take<uint64_t>(), true);
        break;  // BYTEARRAY8
      case ']':
        push_list(List::Plain, {});
        break;  // EMPTY_LIST
      case ')':
        push_list(List::Tuple, {});
        break;  // EMPTY_TUPLE
      case 0x8f:
        push_list(List::Set, {});
        break;  // EMPTY_SET
      case '}':
        push({keeper_.dict()});
        break;  // EMPTY_DICT
      case 't':
        push_list(List::Tuple, pop_mark());
        break;  // TUPLE
      case 0x85:
        tuple(1);
        break;  // TUPLE1
      case 0x86:
        tuple(2);
        break;  // TUPLE2
      case 0x87:
        tuple(3);
        break;  // TUPLE3
      case 0x91:
        push_list(List::FrozenSet, pop_mark());
        break;     // FROZENSET
      case 'a': {  // APPEND
        Value item = pop();
        extend(List::Plain, {std::move(item)});
        break;
      }
      case 'e':
        extend(List::Plain, pop_mark());
        break;  // APPENDS
      case 0x90:
        extend(List::Set, pop_mark());
        break;     // ADDITEMS
      case 's': {  // SETITEM
        Value item = pop(), key = pop();
        set_items({std::move(key), std::move(item)});
        break;
      }
      case 'u':
        set_items(pop_mark());
        break;  // SETITEMS
      case 'q':
        put(take<uint8_t>());
        break;  // BINPUT
      case 'r':
        put(take<uint32_t>());
        break;  // LONG_BINPUT
      case 0x94:
        put(memo_.size());
        break;  // MEMOIZE
      case 'h':
        get(take<uint8_t>());
        break;  // BINGET
      case 'j':
        get(take<uint32_t>());
        break;     // LONG_BINGET
      case 'c': {  // GLOBAL
        std::string module = line();
        global(module, line());
        break;
      }
      case 0x93: {  // STACK_GLOBAL
        Value name = pop(), module = pop();
        if (!name.str() || !module.str()) fail("the name of a global is no string");
        global(*module.str(), *name.str());
        break;
      }
      case 'Q':
        push(host_.persistent(pop()));
        break;     // BINPERSID
      case 'R': {  // REDUCE
        Value arguments = pop(), callable = pop();
        if (!arguments.list() || arguments.list()->kind != List::Tuple) fail("arguments that are no tuple");
        push(host_.reduce(callable, *arguments.list(), keeper_));
        break;
      }
      case 'b': {  // BUILD
        Value state = pop();
        host_.build(top(), state);
        break;
      }
      default: {
        for (auto& [refused, name] : kRefused)
          if (refused == code) fail(str_cat("the opcode ", name, ", which weights files do not need; nothing was run"));
        fail(str_cat("an unknown opcode ", int(code)));
      }
    }
    return true;
  }

  std::string_view data_;
  size_t at_ = 0;
  PickleHost& host_;
  Keeper keeper_;  // dies after the stack and the memo
  std::vector<Value> stack_, memo_;
  std::vector<size_t> marks_;
};

}  // namespace

Value read_pickle(std::string_view data, PickleHost& host) { return Machine(data, host).run(); }

}  // namespace strata::io
