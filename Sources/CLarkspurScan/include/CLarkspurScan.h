// Sixteen bytes compared at once, answered as one bit per byte. Swift's SIMD types compare, but have
// no way to get the answer into an integer register, which is what makes scanning fast. These are
// clang's portable vectors: SSE2 on x86-64, NEON on arm64, no compiler flags.
#ifndef LARKSPUR_SCAN_H
#define LARKSPUR_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t larkspur_bytes16 __attribute__((vector_size(16)));
typedef int8_t larkspur_lanes16 __attribute__((vector_size(16)));
typedef bool larkspur_bits16 __attribute__((ext_vector_type(16)));

static inline larkspur_bytes16 larkspur_load16(const void *from) {
  larkspur_bytes16 bytes;
  memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

static inline uint32_t larkspur_bitmask16(larkspur_lanes16 lanes) {
#if defined(__SSE2__)
  typedef char larkspur_chars16 __attribute__((vector_size(16)));
  return (uint32_t)__builtin_ia32_pmovmskb128((larkspur_chars16)lanes);
#else
  larkspur_bits16 bits = __builtin_convertvector(lanes & 1, larkspur_bits16);
  uint16_t mask;
  memcpy(&mask, &bits, sizeof mask);
  return mask;
#endif
}

// Bytes that end the easy part of a field name: anything but letters, digits and '-'. The caller looks at the byte and
// decides: ':' ends the name, a rarer token character goes on.
static inline uint32_t larkspur_name_stops16(const void *from) {
  larkspur_bytes16 c = larkspur_load16(from);
  // Vectors compare signed bytes in one instruction and unsigned ones in two: the ranges are moved down to -128.
  larkspur_lanes16 letter = (larkspur_lanes16)((c | 0x20) - ('a' + 128)), digit = (larkspur_lanes16)(c - ('0' + 128));
  larkspur_lanes16 plain = (letter < -128 + 26) | (digit < -128 + 10) | (larkspur_lanes16)(c == '-');
  return larkspur_bitmask16(~plain);
}

// Bytes that end the easy part of a field value or a reason phrase: control characters and DEL. The caller looks
// at the byte and decides: HTAB, which is rare, goes on.
static inline uint32_t larkspur_value_stops16(const void *from) {
  larkspur_bytes16 c = larkspur_load16(from);
  return larkspur_bitmask16((larkspur_lanes16)(c < 0x20) | (larkspur_lanes16)(c == 0x7f));
}

// The same for thirty-two bytes.
static inline uint32_t larkspur_value_stops32(const void *from) {
  return larkspur_value_stops16(from) | larkspur_value_stops16((const uint8_t *)from + 16) << 16;
}

#endif
