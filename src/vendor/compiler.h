/* The contract between the CPU core and an optional compiler of printed kernels. The rules of library.h hold, and:
 *  - a text is whole: C11 with Clang's and GCC's vector extensions, no header;
 *  - its object is an ELF64 relocatable file for x86-64, position independent, that needs nothing but functions of C's
 *    mathematics and memory; the same text gives the same bytes every time;
 *  - the bits that compiled kernels compute are those of the flags of lower/print/print_c.h (no contraction, wrapping
 *    integers, no aliasing by type, no traps, no errno), at every instruction set.
 * This file is C11 and C++. */
#ifndef STRATA_EAGER_COMPILER_H
#define STRATA_EAGER_COMPILER_H

#include "vendor/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_COMPILER_MAJOR 1
#define STRATA_COMPILER_MINOR 2
#define STRATA_COMPILER_SYMBOL "strata_compiler_v1"

typedef struct StrataCompilerJob {
  uint32_t size;
  uint32_t isa; /* 0 x86-64, 1 x86-64-v3, 2 x86-64-v4 with vectors of 512 bits: never what the machine has beyond it */
  const char* text; /* ends with a zero */
  uint64_t bytes;   /* without the zero */
  uint32_t lines;   /* since 1.1: not 0: the object has a table of the text's lines (DWARF), as #line names them */
} StrataCompilerJob;

typedef struct StrataCompilerObject {
  uint32_t size;
  uint32_t isa;     /* since 1.2: the set it is for, below the job's where the compiler fails at that */
  const void* data; /* the compiler's, until release() */
  uint64_t bytes;
  void* owner;
} StrataCompilerObject;

typedef struct StrataCompiler {
  uint32_t size;
  uint32_t major, minor;
  const char* name;    /* "Clang" */
  const char* version; /* "19.1.7" */

  /* This thread's last error. Of a text that is wrong (STRATA_LIBRARY_INVALID): lines "LINE:COLUMN: error: what". */
  const char* (*last_error)(void);

  /* From any number of threads at once. What compile() gave stays until release(). */
  int (*compile)(const StrataCompilerJob* job, StrataCompilerObject* out); /* the caller sets out->size */
  void (*release)(StrataCompilerObject* object);
} StrataCompiler;

/* The one symbol: const StrataCompiler* strata_compiler_v1(void). */
typedef const StrataCompiler* (*StrataCompilerEntry)(void);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_EAGER_COMPILER_H */
