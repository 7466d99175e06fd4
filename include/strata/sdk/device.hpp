// A device in C++20, over device.h alone: a class says what the device does, and the table is made of it. Errors are
// exceptions here and statuses outside, objects are classes here and handles outside.
//
//   struct Mine {
//     static constexpr const char *name = "mine", *version = "1.0";
//     static StrataDialect dialect();
//     static int32_t count();
//     using Memory = ...;                      // a pointer or an integer of 8 bytes; none is 0
//     static Memory allocate(int32_t device, uint64_t bytes);
//     static void release(int32_t device, Memory memory);
//     using Kernel = ...;                      // a pointer
//     struct Module {
//       Module(int32_t device, const char* text);
//       Kernel kernel(const char* entry);
//       // or both left out: nothing is kept but texts
//       Module(int32_t device, const void* binary, uint64_t bytes);
//       std::string binary();
//     };
//     struct Queue {
//       explicit Queue(int32_t device);
//       void synchronize();
//       void upload(Memory to, uint64_t offset, const void* from, uint64_t bytes);
//       void download(void* to, Memory from, uint64_t offset, uint64_t bytes);
//       void copy(Memory to, uint64_t to_offset, Memory from, uint64_t from_offset, uint64_t bytes);
//       void launch(Kernel kernel, const StrataArgument* arguments, uint32_t count, int64_t items);
//       // or, where the dialect has groups, with `uint32_t group` at the end
//     };
//     // What follows may be left out.
//     struct Event {                                        // the host waits
//       Event(int32_t device, bool timing);
//       void record(Queue& queue);
//       void wait(Queue& queue);
//       bool done();
//       void synchronize();
//       double since(Event& begin);                         // ms
//     };
//     struct Graph {                                        // each launch by itself
//       Graph(int32_t device, const StrataLaunch* launches, uint32_t count);
//       void change(uint32_t launch, const StrataArgument* arguments);
//       void launch(Queue& queue);
//     };
//     static const char* identity(int32_t device);          // each process compiles anew
//     static bool offers(int32_t device, const char* op);   // all
//     static void start();                                  // throws where the device can't work
//     using Operator = ...;                                 // a pointer; operators of a library
//     static Operator find_operator(int32_t device, const char* name);  // null: none
//     // False declines. A queue that is null only asks.
//     static bool run_operator(Queue* queue, Operator op, const StrataOperand* results, uint32_t result_count,
//                              const StrataOperand* arguments, uint32_t argument_count);
//   };
//   STRATA_OFFER_DEVICE(Mine)
//
// What each of them promises stands at the field of its name in device.h.
#ifndef STRATA_SDK_DEVICE_HPP
#define STRATA_SDK_DEVICE_HPP

#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/sdk/device.h"

// Hidden: each plugin has its own.
namespace strata {
namespace sdk __attribute__((visibility("hidden"))) {

  // ---- errors

  struct Error : std::runtime_error {
    Error(StrataStatus s, const std::string& why) : std::runtime_error(why), status(s) {}
    StrataStatus status;
  };
  [[noreturn]] inline void fail(StrataStatus status, const std::string& why) { throw Error(status, why); }

  inline thread_local std::string error_text;  // this thread's last error

  inline StrataStatus note(StrataStatus status, const char* why) noexcept {
    try {
      error_text = why;
    } catch (const std::exception&) {
      error_text.clear();
    }
    return status;
  }

  // Runs the body, which may throw.
  template <class F>
  StrataStatus status_of(F && body) noexcept {
    try {
      body();
      return STRATA_OK;
    } catch (const Error& e) {
      return note(e.status, e.what());
    } catch (const std::exception& e) {
      return note(STRATA_FAILED, e.what());
    } catch (...) {
      return note(STRATA_FAILED, "an exception without words");
    }
  }

  // ---- handles

  template <class To, class From>
  To handle_cast(From from) {
    static_assert(sizeof(To) == sizeof(void*) && sizeof(From) == sizeof(void*), "a handle is as large as a pointer");
    return std::bit_cast<To>(from);
  }
  // The memory of an argument; 0 where it has none.
  template <class Memory>
  Memory memory_of(const StrataArgument& argument) {
    return handle_cast<Memory>(argument.memory);
  }
  // Arguments in slots of 8 bytes, for dialects with slots; `address` gives where kernels find a memory.
  template <class F>
  std::vector<uint64_t> slots_of(const StrataArgument* arguments, uint32_t count, F&& address) {
    std::vector<uint64_t> slots(count);
    for (uint32_t k = 0; k < count; ++k)
      if (arguments[k].bytes)
        slots[k] = arguments[k].value;
      else if (arguments[k].memory)
        slots[k] = handle_cast<uint64_t>(address(arguments[k].memory));
    return slots;
  }

  // The launch of that number among those of a graph.
  inline const StrataLaunch& launch_at(const StrataLaunch* launches, uint32_t number) {
    return *reinterpret_cast<const StrataLaunch*>(reinterpret_cast<const char*>(launches) +
                                                  uint64_t(number) * launches->size);
  }

  // ---- the host

  inline const StrataHost* host = nullptr;

  // A text that the host's compiler has compiled, for devices that run on its processor.
  class HostProgram {
   public:
    using Entry = void (*)(const uint64_t* arguments, int64_t first, int64_t past);

    explicit HostProgram(const char* text) {
      std::string why(4096, 0);
      const StrataStatus status = host->compile(text, &program_, why.data(), why.size());
      if (status != STRATA_OK) fail(status, why.c_str());
    }
    ~HostProgram() { host->release(program_); }
    HostProgram(const HostProgram&) = delete;

    Entry entry(const char* name) const {
      void* found = host->symbol(program_, name);
      if (!found) fail(STRATA_INVALID, std::string("the text has no entry point ") + name);
      return reinterpret_cast<Entry>(found);
    }

   private:
    void* program_ = nullptr;
  };

  inline uint64_t setting(const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
  }

// ---- dialects

// What the heads of C's kin have in common. LONG: the word for 64 bits; SUFFIX: of its numbers; FUNCTION: before a
// function. The others are expressions of `x`.
#define STRATA_TYPES(LONG, SUFFIX)                                                                        \
  "typedef signed char i8;\ntypedef unsigned char u8;\ntypedef short i16;\ntypedef unsigned short u16;\n" \
  "typedef int i32;\ntypedef unsigned int u32;\ntypedef " LONG " i64;\ntypedef unsigned " LONG            \
  " u64;\n"                                                                                               \
  "typedef float f32;\ntypedef double f64;\ntypedef int bit;\n#define INT64_C(x) x##" SUFFIX              \
  "\n#define UINT64_C(x) x##u" SUFFIX "\n"
#define STRATA_BITS(FUNCTION, I32, U32, F32, I64, U64, F64)                                                            \
  FUNCTION " i32 bits_i32(f32 x) { return " I32 "; }\n" FUNCTION " u32 bits_u32(f32 x) { return " U32 "; }\n" FUNCTION \
           " f32 bits_f32(u32 x) { return " F32 "; }\n" FUNCTION " i64 bits_i64(f64 x) { return " I64 "; }\n" FUNCTION \
           " u64 bits_u64(f64 x) { return " U64 "; }\n" FUNCTION " f64 bits_f64(u64 x) { return " F64 "; }\n"

  // That of the host's compiler.
  inline StrataDialect host_dialect() {
#define STRATA_COPY(TYPE) "({ " TYPE " r; __builtin_memcpy(&r, &x, sizeof r); r; })"
    StrataDialect d{};
    d.size = sizeof d;
    d.slots = 1;
    d.name = "C";
    d.head = STRATA_TYPES("long", "l")
      STRATA_BITS("static inline", STRATA_COPY("i32"), STRATA_COPY("u32"), STRATA_COPY("f32"), STRATA_COPY("i64"),
                  STRATA_COPY("u64"), STRATA_COPY("f64")) "static inline void or_status(i32* status, i32 bits) { "
                                                          "__atomic_fetch_or(status, bits, __ATOMIC_RELAXED); }\n";
#undef STRATA_COPY
    d.function = "static void ";
    d.entry = "void ";
    d.memory = d.first_item = d.item_step = d.unroll = d.unroll_items = d.apart = "";
    d.group_entry = d.local = d.barrier = d.group_memory = d.first_group = d.group_step = d.lane = "";
    d.helper = "static";
    const char* const words[6][2] = {{"__builtin_sqrtf", "__builtin_sqrt"}, {"__builtin_floorf", "__builtin_floor"},
                                     {"__builtin_ceilf", "__builtin_ceil"}, {"__builtin_truncf", "__builtin_trunc"},
                                     {"__builtin_rintf", "__builtin_rint"}, {"__builtin_fmaf", "__builtin_fma"}};
    std::memcpy(d.real, words, sizeof words);
    d.infinity[0] = "__builtin_inff()";
    d.infinity[1] = "__builtin_inf()";
    d.nan[0] = "__builtin_nanf(\"\")";
    d.nan[1] = "__builtin_nan(\"\")";
    d.or_status = "or_status";
    return d;
  }

  // ---- the table

  template <class D>
  StrataDevice table_of(const StrataDialect* dialect) {
    using Memory = typename D::Memory;
    using Kernel = typename D::Kernel;
    using Queue = typename D::Queue;
    using Module = typename D::Module;
    static constexpr auto queue_of = [](StrataQueue q) -> Queue& { return *handle_cast<Queue*>(q); };
    StrataDevice t{};
    t.size = sizeof t;
    t.major = STRATA_SDK_MAJOR;
    t.minor = STRATA_SDK_MINOR;
    t.name = D::name;
    t.version = D::version;
    t.dialect = dialect;
    t.last_error = [] { return error_text.c_str(); };
    t.count = [] {
      int32_t n = 0;
      status_of([&] { n = D::count(); });
      return n;
    };
    t.allocate = [](int32_t device, uint64_t bytes, StrataMemory* memory) {
      return status_of([&] { *memory = handle_cast<StrataMemory>(D::allocate(device, bytes)); });
    };
    t.release = [](int32_t device, StrataMemory memory) {
      return status_of([&] { D::release(device, handle_cast<Memory>(memory)); });
    };
    t.queue_create = [](int32_t device, StrataQueue* queue) {
      return status_of([&] { *queue = handle_cast<StrataQueue>(new Queue(device)); });
    };
    t.queue_destroy = [](StrataQueue queue) { return status_of([&] { delete &queue_of(queue); }); };
    t.synchronize = [](StrataQueue queue) { return status_of([&] { queue_of(queue).synchronize(); }); };
    t.upload = [](StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes) {
      return status_of([&] { queue_of(queue).upload(handle_cast<Memory>(to), offset, from, bytes); });
    };
    t.download = [](StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes) {
      return status_of([&] { queue_of(queue).download(to, handle_cast<Memory>(from), offset, bytes); });
    };
    t.copy = [](StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                uint64_t bytes) {
      return status_of([&] {
        queue_of(queue).copy(handle_cast<Memory>(to), to_offset, handle_cast<Memory>(from), from_offset, bytes);
      });
    };
    t.compile = [](int32_t device, const char* text, StrataModule* module) {
      return status_of([&] { *module = handle_cast<StrataModule>(new Module(device, text)); });
    };
    t.module_release = [](StrataModule module) { return status_of([&] { delete handle_cast<Module*>(module); }); };
    t.kernel = [](StrataModule module, const char* entry, StrataKernel* kernel) {
      return status_of([&] { *kernel = handle_cast<StrataKernel>(handle_cast<Module*>(module)->kernel(entry)); });
    };
    t.launch = [](StrataQueue queue, StrataKernel kernel, const StrataArgument* arguments, uint32_t count,
                  int64_t items, uint32_t group) {
      return status_of([&] {
        Queue& q = queue_of(queue);
        const Kernel k = handle_cast<Kernel>(kernel);
        if constexpr (requires { q.launch(k, arguments, count, items, group); })
          q.launch(k, arguments, count, items, group);
        else
          q.launch(k, arguments, count, items);
      });
    };
    if constexpr (requires { D::identity(0); })
      t.identity = [](int32_t device) {
        const char* found = nullptr;
        status_of([&] { found = D::identity(device); });
        return found;
      };
    if constexpr (requires(Module m) { m.binary(); }) {
      t.module_binary = [](StrataModule module, void* to, uint64_t room, uint64_t* bytes) {
        return status_of([&] {
          const std::string code = handle_cast<Module*>(module)->binary();
          *bytes = code.size();
          if (room >= code.size()) std::memcpy(to, code.data(), code.size());
        });
      };
      t.load = [](int32_t device, const void* binary, uint64_t bytes, StrataModule* module) {
        return status_of([&] { *module = handle_cast<StrataModule>(new Module(device, binary, bytes)); });
      };
    }
    if constexpr (requires { typename D::Event; }) {
      using Event = typename D::Event;
      static constexpr auto event_of = [](StrataEvent e) -> Event& { return *handle_cast<Event*>(e); };
      t.event_create = [](int32_t device, int32_t timing, StrataEvent* event) {
        return status_of([&] { *event = handle_cast<StrataEvent>(new Event(device, timing != 0)); });
      };
      t.event_destroy = [](StrataEvent event) { return status_of([&] { delete &event_of(event); }); };
      t.event_record = [](StrataEvent event, StrataQueue queue) {
        return status_of([&] { event_of(event).record(queue_of(queue)); });
      };
      t.event_wait = [](StrataQueue queue, StrataEvent event) {
        return status_of([&] { event_of(event).wait(queue_of(queue)); });
      };
      t.event_query = [](StrataEvent event, int32_t* done) {
        return status_of([&] { *done = event_of(event).done(); });
      };
      t.event_synchronize = [](StrataEvent event) { return status_of([&] { event_of(event).synchronize(); }); };
      t.event_elapsed = [](StrataEvent begin, StrataEvent end, double* ms) {
        return status_of([&] { *ms = event_of(end).since(event_of(begin)); });
      };
    }
    if constexpr (requires { D::host_release(0, nullptr); }) {
      t.host_allocate = [](int32_t device, uint64_t bytes, void** memory) {
        return status_of([&] { *memory = D::host_allocate(device, bytes); });
      };
      t.host_release = [](int32_t device, void* memory) { return status_of([&] { D::host_release(device, memory); }); };
      t.upload_later = [](StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes) {
        return status_of([&] { queue_of(queue).upload_later(handle_cast<Memory>(to), offset, from, bytes); });
      };
      t.download_later = [](StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes) {
        return status_of([&] { queue_of(queue).download_later(to, handle_cast<Memory>(from), offset, bytes); });
      };
    }
    if constexpr (requires(Queue q, Memory m) { q.peer_copy(m, 0, 0, m, 0, 0); })
      t.peer_copy = [](StrataQueue queue, StrataMemory to, uint64_t to_offset, int32_t device, StrataMemory from,
                       uint64_t from_offset, uint64_t bytes) {
        return status_of([&] {
          queue_of(queue).peer_copy(handle_cast<Memory>(to), to_offset, device, handle_cast<Memory>(from), from_offset,
                                    bytes);
        });
      };
    if constexpr (requires { D::find_operator(int32_t(), ""); }) {
      using Operator = typename D::Operator;
      t.operator_find = [](int32_t device, const char* name, StrataOperator* op) {
        Operator found{};
        const StrataStatus status = status_of([&] { found = D::find_operator(device, name); });
        if (status == STRATA_OK) *op = handle_cast<StrataOperator>(found);
        return status == STRATA_OK && !found ? STRATA_UNSUPPORTED : status;
      };
      t.operator_run = [](StrataQueue queue, StrataOperator op, const StrataOperand* results, uint32_t result_count,
                          const StrataOperand* arguments, uint32_t argument_count) {
        bool taken = false;
        const StrataStatus status = status_of([&] {
          taken = D::run_operator(handle_cast<Queue*>(queue), handle_cast<Operator>(op), results, result_count,
                                  arguments, argument_count);
        });
        return status == STRATA_OK && !taken ? STRATA_UNSUPPORTED : status;
      };
    }
    if constexpr (requires { typename D::Graph; }) {
      using Graph = typename D::Graph;
      static constexpr auto graph_of = [](StrataGraph g) -> Graph& { return *handle_cast<Graph*>(g); };
      t.graph_create = [](int32_t device, const StrataLaunch* launches, uint32_t count, StrataGraph* graph) {
        return status_of([&] { *graph = handle_cast<StrataGraph>(new Graph(device, launches, count)); });
      };
      t.graph_change = [](StrataGraph graph, uint32_t launch, const StrataArgument* arguments) {
        return status_of([&] { graph_of(graph).change(launch, arguments); });
      };
      t.graph_launch = [](StrataQueue queue, StrataGraph graph) {
        return status_of([&] { graph_of(graph).launch(queue_of(queue)); });
      };
      t.graph_release = [](StrataGraph graph) { return status_of([&] { delete &graph_of(graph); }); };
    }
    if constexpr (requires { D::offers(int32_t(), ""); })
      t.offers = [](int32_t device, const char* op) {
        int32_t yes = 0;
        status_of([&] { yes = D::offers(device, op); });
        return yes;
      };
    return t;
  }

  template <class D>
  const StrataDevice* offer(const StrataHost* given, char* error, uint64_t room) {
    host = given;
    const StrataDevice* made = nullptr;
    const StrataStatus status = status_of([&] {
      if constexpr (requires { D::start(); }) D::start();
      static const StrataDialect dialect = D::dialect();
      static const StrataDevice table = table_of<D>(&dialect);
      made = &table;
    });
    if (status != STRATA_OK && room) {
      std::strncpy(error, error_text.c_str(), room - 1);
      error[room - 1] = 0;
    }
    return made;
  }

}  // namespace sdk
}  // namespace strata

#define STRATA_OFFER_DEVICE(D)                                                                                         \
  extern "C" __attribute__((visibility("default"))) const StrataDevice* strata_device_v0(const StrataHost* host,       \
                                                                                         char* error, uint64_t room) { \
    return ::strata::sdk::offer<D>(host, error, room);                                                                 \
  }

#endif  // STRATA_SDK_DEVICE_HPP
