#ifdef __linux__
// clang's portable vectors: SSE2 on x86-64, NEON on arm64, without compiler flags.
#include "CLarkspurScan.h"

#include <stdbool.h>
#include <string.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int8_t lanes16 __attribute__((vector_size(16)));
typedef bool bits16 __attribute__((ext_vector_type(16)));

static inline bytes16 load16(const void *from) {
  bytes16 bytes;
  memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

static inline uint32_t bitmask16(lanes16 lanes) {
#if defined(__SSE2__)
  typedef char chars16 __attribute__((vector_size(16)));
  return (uint32_t)__builtin_ia32_pmovmskb128((chars16)lanes);
#else
  bits16 bits = __builtin_convertvector(lanes & 1, bits16);
  uint16_t mask;
  memcpy(&mask, &bits, sizeof mask);
  return mask;
#endif
}

uint32_t larkspur_name_stops16(const void *from) {
  bytes16 c = load16(from);
  // Performance: vectors compare signed bytes in one instruction and unsigned bytes in two. So the ranges are shifted
  // to begin at -128.
  lanes16 letter = (lanes16)((c | 0x20) - ('a' + 128)), digit = (lanes16)(c - ('0' + 128));
  lanes16 plain = (letter < -128 + 26) | (digit < -128 + 10) | (lanes16)(c == '-');
  return bitmask16(~plain);
}

static inline uint32_t value_stops16(const void *from) {
  bytes16 c = load16(from);
  return bitmask16((lanes16)(c < 0x20) | (lanes16)(c == 0x7f));
}

uint32_t larkspur_value_stops16(const void *from) { return value_stops16(from); }

uint32_t larkspur_value_stops32(const void *from) {
  return value_stops16(from) | value_stops16((const uint8_t *)from + 16) << 16;
}

uint32_t larkspur_line_stops16(const void *from) {
  bytes16 c = load16(from);
  return bitmask16((lanes16)(c == 0x0a) | (lanes16)(c == 0x0d));
}

uint32_t larkspur_high_bits16(const void *from) { return bitmask16((lanes16)load16(from) < 0); }
#endif
