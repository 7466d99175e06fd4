/* The contract between Strata and a device: what a plugin offers, and what it may call back. A plugin sees this folder
 * and nothing else of Strata, and nothing of Strata knows it.
 *
 * A plugin is a shared object that exports one C symbol, strata_device_v0, which returns a constant table.
 * Rules of the boundary:
 *  - every struct begins with its size in bytes as its author compiled it; fields are only appended, and a reader
 *    looks at a field only where the size covers it. A change of meaning raises the major version and the symbol's
 *    name. While the major version is 0, a minor version may change meanings too, and must be the host's own;
 *  - a function returns a StrataStatus; for any but OK, last_error() holds the reason, per thread;
 *  - nothing is thrown across the boundary, nothing aborts, every function may be called from any thread;
 *  - the host never looks into a device's memory and does no arithmetic on its handles: a place is a handle and a
 * number of bytes behind it. This file is C11 and C++. */
#ifndef STRATA_SDK_DEVICE_H
#define STRATA_SDK_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_SDK_MAJOR 0
#define STRATA_SDK_MINOR 4
#define STRATA_DEVICE_SYMBOL "strata_device_v0"

typedef enum StrataStatus {
  STRATA_OK = 0,
  STRATA_UNSUPPORTED = 1,   /* not on this device */
  STRATA_INVALID = 2,       /* the caller broke the contract, or a text does not compile */
  STRATA_OUT_OF_MEMORY = 3, /* of the device */
  STRATA_FAILED = 4         /* the device reported an error */
} StrataStatus;

/* What a device hands out. Null is none of them. */
typedef struct StrataMemoryObject* StrataMemory;
typedef struct StrataQueueObject* StrataQueue;
typedef struct StrataModuleObject* StrataModule;
typedef struct StrataKernelObject* StrataKernel;
typedef struct StrataEventObject* StrataEvent;
typedef struct StrataOperatorObject* StrataOperator;
typedef struct StrataGraphObject* StrataGraph;

/* How the device's language spells what kernels say. A text is `head`, functions, and entry points. Whatever compiles
 * it evaluates float arithmetic as written: no contraction, no reassociation, subnormal numbers kept. */
typedef struct StrataDialect {
  uint32_t size;
  uint32_t slots;       /* not 0: an entry point takes (const u64* a, i64 first, i64 past): its arguments in slots of 8
                           bytes, and the items that it shall run. Else it takes its arguments one by one, then i64 items */
  const char* name;     /* "C" */
  const char* head;     /* types i8 u8 ... i64 u64 f32 f64, `bit` (an int that is 0 or 1), functions bits_i32, bits_u32
                           (of an f32), bits_f32, bits_i64, bits_u64 (of an f64), bits_f64, for NaN and infinity what
                           the names below need */
  const char* function; /* before a function that gives nothing: "static void " */
  const char* entry;    /* before an entry point: "void " */
  const char* memory;   /* before a pointer into the device's memory: "__global ", or nothing */
  const char* helper;   /* before a helper function: "static" */
  const char* real[6][2]; /* sqrt, floor, ceil, trunc, rint, fma: of f32 and f64, correctly rounded */
  const char* infinity[2];
  const char* nan[2];
  const char* first_item; /* of an entry point without slots: the number of the first item that it runs, and how many
                             lie between its items */
  const char* item_step;
  const char* or_status;    /* a function of an i32* in the device's memory and an i32: ors it in, whoever else does */
  const char* unroll;       /* a line before a loop of few turns that should have no turns left, or nothing */
  const char* unroll_items; /* a line before the loop over an entry point's items, or nothing */
  const char* apart; /* between a pointer's type and its name: nothing else reaches what it points to, or nothing */

  /* Groups of items. The items of one share memory, in which nothing stands at the start, and wait for each other:
   * behind a barrier each sees what all wrote before theirs. All items of a group come to the same barriers. In a text
   * with groups GROUP is how many items one has. */
  uint32_t group;          /* the most, a power of two from 16 to 1024; 0: there are none */
  const char* group_entry; /* as `entry`, of an entry point whose items come in groups */
  const char* local;       /* before a pointer into a group's memory: "__local ", or nothing */
  const char* barrier;     /* a statement */
  /* Of an entry point without slots: */
  const char* group_memory; /* before the declaration of an array: "__local " */
  const char* first_group;  /* as first_item and item_step, of groups */
  const char* group_step;
  const char* lane; /* an item's number in its group, from 0 */
  /* One with slots takes (const u64* a, i64 first, i64 past, i32 lane, u64* scratch): the groups that it shall run as
   * item `lane` of each, and 16 bytes an item of the group's memory. */
} StrataDialect;

/* An argument of an entry point. */
typedef struct StrataArgument {
  uint32_t bytes; /* of the value: 1, 2, 4 or 8; 0: a memory's handle */
  uint32_t unused;
  StrataMemory memory;
  uint64_t value; /* its first bytes */
} StrataArgument;

/* A launch of a graph: what launch() takes. The next of an array lies `size` bytes behind it. */
typedef struct StrataLaunch {
  uint32_t size;
  uint32_t group;
  StrataKernel kernel;
  const StrataArgument* arguments;
  uint32_t count;
  uint32_t unused;
  int64_t items;
} StrataLaunch;

/* Elements of tensors. Of a bool: a byte that is 0 or 1; of a complex number: two parts. */
typedef enum StrataType {
  STRATA_BOOL,
  STRATA_U8,
  STRATA_I8,
  STRATA_U16,
  STRATA_I16,
  STRATA_U32,
  STRATA_I32,
  STRATA_U64,
  STRATA_I64,
  STRATA_F16,
  STRATA_BF16,
  STRATA_F32,
  STRATA_F64,
  STRATA_C64,
  STRATA_C128
} StrataType;

/* What a library operator takes and gives: an argument of its schema, or a result. */
typedef enum StrataKind {
  STRATA_NOTHING, /* None */
  STRATA_TENSOR,
  STRATA_INTEGER, /* `integer`; of a bool 0 or 1. `real` has it, too */
  STRATA_REAL,    /* `real` */
  STRATA_INTEGERS /* `dims` of them at `sizes` */
} StrataKind;

typedef struct StrataOperand {
  uint32_t size;
  uint32_t kind; /* StrataKind */
  uint32_t type; /* StrataType, of a tensor */
  uint32_t dims;
  StrataMemory memory;
  uint64_t offset;        /* of the first element, in bytes */
  const int64_t* sizes;   /* of each dim */
  const int64_t* strides; /* in elements; 0 and overlapping ones come */
  int64_t integer;
  double real;
} StrataOperand;

typedef struct StrataDevice {
  uint32_t size;
  uint32_t major, minor;
  const char* name;    /* as users write it: "null"; lower case letters */
  const char* version; /* of the plugin, for people */
  const StrataDialect* dialect;

  const char* (*last_error)(void); /* this thread's */
  int32_t (*count)(void);          /* of devices; their numbers begin at 0. Where there are none, last_error() says why,
                                      and what would mend it */

  /* Memory, aligned to 256 bytes. OUT_OF_MEMORY leaves everything as it was. */
  StrataStatus (*allocate)(int32_t device, uint64_t bytes, StrataMemory* memory);
  StrataStatus (*release)(int32_t device, StrataMemory memory); /* no work that uses it is under way */

  /* Work of a queue runs in order, one after the other. A failure of queued work is told by the next synchronize() or
   * download() of its queue, once; the queue is usable afterwards. */
  StrataStatus (*queue_create)(int32_t device, StrataQueue* queue);
  StrataStatus (*queue_destroy)(StrataQueue queue);
  StrataStatus (*synchronize)(StrataQueue queue);
  /* The host's memory may be used again when it returns. */
  StrataStatus (*upload)(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes);
  /* Returns when the bytes are there. */
  StrataStatus (*download)(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes);
  /* The two places do not overlap. */
  StrataStatus (*copy)(StrataQueue queue, StrataMemory to, uint64_t to_offset, StrataMemory from, uint64_t from_offset,
                       uint64_t bytes);

  /* A text in the dialect. A wrong text is INVALID, with the compiler's words as the error. */
  StrataStatus (*compile)(int32_t device, const char* text, StrataModule* module);
  StrataStatus (*module_release)(StrataModule module); /* no work that uses it is under way */
  StrataStatus (*kernel)(StrataModule module, const char* entry,
                         StrataKernel* kernel); /* lives as long as the module */
  /* Runs the items 0 to items - 1 in any order, any of them at the same time. `group` not 0: the items are groups of so
   * many items each. */
  StrataStatus (*launch)(StrataQueue queue, StrataKernel kernel, const StrataArgument* arguments, uint32_t count,
                         int64_t items, uint32_t group);

  /* Not 0 where the operator ("aten::neg") may run on the device by printed kernels; the others run on the CPU and go
   * back. Null: all may. */
  int32_t (*offers)(int32_t device, const char* op);

  /* From here on every field may be null, or beyond the size.
   *
   * What decides, beside the text, what a text becomes: compiler, its version and options, the device's own kind. What
   * was compiled is kept on disk under it and the plugin's file. Null: each process compiles anew. */
  const char* (*identity)(int32_t device);
  /* A module's binary, which load() takes: `*bytes` is its size; copied where `room` covers it. Null, or null load():
   * its text is kept, of many kernels together, which compile() takes again and should find in a cache of its own. */
  StrataStatus (*module_binary)(StrataModule module, void* to, uint64_t room, uint64_t* bytes);
  /* Any status but OK: the binary isn't of this device or compiler; the text is compiled. */
  StrataStatus (*load)(int32_t device, const void* binary, uint64_t bytes, StrataModule* module);

  /* Points in the work of queues. All of them or none: without event_create the host waits for a queue where it would
   * record one. An event is recorded before it is waited for or asked. */
  StrataStatus (*event_create)(int32_t device, int32_t timing, StrataEvent* event);
  StrataStatus (*event_destroy)(StrataEvent event); /* what waits for it goes on waiting */
  /* What the queue has been given so far; recorded again it stands for that alone. */
  StrataStatus (*event_record)(StrataEvent event, StrataQueue queue);
  /* What the queue is given from now on runs after the event, which is of any queue of the device. The host goes on. */
  StrataStatus (*event_wait)(StrataQueue queue, StrataEvent event);
  StrataStatus (*event_query)(StrataEvent event, int32_t* done);
  StrataStatus (*event_synchronize)(StrataEvent event);
  /* Milliseconds between two that are over and were made with timing. */
  StrataStatus (*event_elapsed)(StrataEvent begin, StrataEvent end, double* ms);

  /* Memory of the host that the device's copies reach by themselves. All four or none: without them memory that a
   * program asks to have pinned is ordinary, and copies that need not wait do. */
  StrataStatus (*host_allocate)(int32_t device, uint64_t bytes, void** memory);
  StrataStatus (*host_release)(int32_t device, void* memory); /* no copy that uses it is under way */
  /* As upload and download, with such memory, and without waiting: it is used until the queue has come there. */
  StrataStatus (*upload_later)(StrataQueue queue, StrataMemory to, uint64_t offset, const void* from, uint64_t bytes);
  StrataStatus (*download_later)(StrataQueue queue, void* to, StrataMemory from, uint64_t offset, uint64_t bytes);

  /* From memory of another device of the plugin, whose work on it is over, to one of the queue's device. Null: by way
   * of the host. */
  StrataStatus (*peer_copy)(StrataQueue queue, StrataMemory to, uint64_t to_offset, int32_t device, StrataMemory from,
                            uint64_t from_offset, uint64_t bytes);

  /* Operators of a library of the device, by the names and schemas of the operator table ("aten::mm"), those that write
   * nothing. Both or none: without them operators run by the core's printed kernels. operator_find is asked once a name
   * and device: UNSUPPORTED where there is none. What it gives lives as long as the process.
   *
   * operator_run gives the work to the queue, as a launch. Results are new memory of the sizes and strides that the
   * operator has on the CPU, and overlap nothing. UNSUPPORTED declines: nothing was given to the queue, and the printed
   * kernels (or the CPU) do it. A queue that is null only asks, with memory that is null, too: OK or UNSUPPORTED, and
   * a case that was accepted so is not declined later. No bits are promised; programs switch libraries off where they
   * want those of printed kernels. */
  StrataStatus (*operator_find)(int32_t device, const char* name, StrataOperator* op);
  StrataStatus (*operator_run)(StrataQueue queue, StrataOperator op, const StrataOperand* results,
                               uint32_t result_count, const StrataOperand* arguments, uint32_t argument_count);

  /* Launches as a graph, which is given to a queue at once. All four or none: without them each launch is given by
   * itself. The host makes a graph of what it has launched before and tells it, before each replay, which launches take
   * something else this time. Where one of these fails nothing was given to a queue, and the host launches one by one.
   *
   * The launches run in order, as those of a queue. graph_create runs nothing. graph_change: from the next graph_launch
   * on the launch of that number takes these arguments, also where a handle is the one that it had, which may stand for
   * other memory by now; replays that are under way keep what they had. The memory of a graph may be released while
   * none is. A replay in one queue runs after those of the graph that were given to other queues before, or beside
   * them. graph_release: what was given runs to its end. */
  StrataStatus (*graph_create)(int32_t device, const StrataLaunch* launches, uint32_t count, StrataGraph* graph);
  StrataStatus (*graph_change)(StrataGraph graph, uint32_t launch, const StrataArgument* arguments);
  StrataStatus (*graph_launch)(StrataQueue queue, StrataGraph graph);
  StrataStatus (*graph_release)(StrataGraph graph);
} StrataDevice;

/* What a plugin may call. */
typedef struct StrataHost {
  uint32_t size;
  uint32_t major, minor;
  /* The host's compiler, for devices that are processors like it: C11 without headers; `*program` gives functions that
   * any thread may call until it is released. INVALID: a message is copied to `error`, cut to `room` bytes. */
  StrataStatus (*compile)(const char* text, void** program, char* error, uint64_t room);
  void* (*symbol)(void* program, const char* name); /* null where there is none */
  void (*release)(void* program);
} StrataHost;

/* The one symbol. `host` lives as long as the process. Null: the plugin can't work here, and wrote why to its error,
 * cut to `room` bytes. */
typedef const StrataDevice* (*StrataDeviceEntry)(const StrataHost* host, char* error, uint64_t room);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_SDK_DEVICE_H */
