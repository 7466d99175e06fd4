/* The contract between the CPU core and an optional library of Fourier transforms. The rules of library.h hold, and:
 *  - a plan transforms `count` lines, which lie one after the other without gaps;
 *  - the forward transform has exp(-2 pi i j k / length), backward exp(+2 pi i j k / length); nothing is scaled;
 *  - a plan runs on the calling thread alone, any number of threads may run it at once, and its bits depend on the plan
 *    and the values alone: the caller spreads lines over its threads;
 *  - memory of lines begins at multiples of STRATA_FOURIER_ALIGNMENT bytes, in and out do not overlap.
 * This file is C11 and C++. */
#ifndef STRATA_EAGER_FOURIER_H
#define STRATA_EAGER_FOURIER_H

#include "vendor/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_FOURIER_MAJOR 1
#define STRATA_FOURIER_MINOR 0
#define STRATA_FOURIER_SYMBOL "strata_fourier_v1"
#define STRATA_FOURIER_ALIGNMENT 16

typedef enum StrataFourierKind {
  STRATA_FOURIER_FORWARD = 0,  /* complex to complex */
  STRATA_FOURIER_BACKWARD = 1, /* complex to complex */
  STRATA_FOURIER_REAL = 2,     /* forward: `length` real numbers to the first length / 2 + 1 complex ones */
  STRATA_FOURIER_HALF = 3 /* backward: these to `length` real numbers; `in` is destroyed. The imaginary parts of what
                             has no conjugate partner are zeros. */
} StrataFourierKind;

typedef struct StrataFourierLines {
  uint32_t size;
  int32_t precise; /* float64 parts, else float32 */
  int32_t kind;
  int64_t length, count; /* at least 1 */
} StrataFourierLines;

typedef struct StrataFourierPlan StrataFourierPlan;

typedef struct StrataFourierCache {
  uint32_t size;
  int64_t plans, capacity, hits, misses;
} StrataFourierCache;

typedef struct StrataFourier {
  uint32_t size;
  uint32_t major, minor;
  const char* name;    /* "FFTW" */
  const char* version; /* "3.3.10" */

  /* Reason of this thread's last status that was not OK; never null, valid until the thread's next call. */
  const char* (*last_error)(void);

  /* A plan, of a bounded cache, which lives until it is released. */
  int (*prepare)(const StrataFourierLines* lines, const StrataFourierPlan** plan);
  void (*release)(const StrataFourierPlan* plan);
  void (*run)(const StrataFourierPlan* plan, void* in, void* out);

  void (*cache)(StrataFourierCache* out);
} StrataFourier;

/* The one symbol: const StrataFourier* strata_fourier_v1(void). Null if the library cannot run on this machine. */
typedef const StrataFourier* (*StrataFourierEntry)(void);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_EAGER_FOURIER_H */
