// Work on 16 bytes at once: masking, and comparisons with one bit for each byte as the result. Swift's SIMD types can
// compare, but cannot move the result into an integer register, which fast scanning needs. The code uses clang's
// portable vectors: SSE2 on x86-64, NEON on arm64, without compiler flags.
#if defined(__linux__) && !defined(LARKSPUR_SCAN_H)
#define LARKSPUR_SCAN_H

#include <stdbool.h>
#include <stddef.h>
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

// Marks the bytes that end the simple part of a field name: all except letters, digits and '-'. The caller checks the
// byte: ':' ends the name, and a rarer token character belongs to it.
static inline uint32_t larkspur_name_stops16(const void *from) {
  larkspur_bytes16 c = larkspur_load16(from);
  // Performance: vectors compare signed bytes in one instruction and unsigned bytes in two. So the ranges are shifted
  // to begin at -128.
  larkspur_lanes16 letter = (larkspur_lanes16)((c | 0x20) - ('a' + 128)), digit = (larkspur_lanes16)(c - ('0' + 128));
  larkspur_lanes16 plain = (letter < -128 + 26) | (digit < -128 + 10) | (larkspur_lanes16)(c == '-');
  return larkspur_bitmask16(~plain);
}

// Marks the bytes that end the simple part of a field value or a reason phrase: control characters and DEL. The caller
// checks the byte: HTAB, which is rare, belongs to the value.
static inline uint32_t larkspur_value_stops16(const void *from) {
  larkspur_bytes16 c = larkspur_load16(from);
  return larkspur_bitmask16((larkspur_lanes16)(c < 0x20) | (larkspur_lanes16)(c == 0x7f));
}

// Marks the bytes that end a line of an event stream: LF and CR.
static inline uint32_t larkspur_line_stops16(const void *from) {
  larkspur_bytes16 c = larkspur_load16(from);
  return larkspur_bitmask16((larkspur_lanes16)(c == 0x0a) | (larkspur_lanes16)(c == 0x0d));
}

// Marks the bytes as `larkspur_value_stops16` does, in 32 bytes.
static inline uint32_t larkspur_value_stops32(const void *from) {
  return larkspur_value_stops16(from) | larkspur_value_stops16((const uint8_t *)from + 16) << 16;
}

// Marks the bytes outside ASCII.
static inline uint32_t larkspur_high_bits16(const void *from) {
  return larkspur_bitmask16((larkspur_lanes16)larkspur_load16(from) < 0);
}

// Combines `count` bytes with `key`, whose four bytes repeat in memory order, by exclusive or (RFC 6455 5.3).
static inline void larkspur_mask(uint8_t *bytes, size_t count, uint32_t key) {
  typedef uint32_t larkspur_words4 __attribute__((vector_size(16)));
  larkspur_bytes16 keys = (larkspur_bytes16)(larkspur_words4){key, key, key, key};
  size_t index = 0;
  for (; count - index >= 16; index += 16) {
    larkspur_bytes16 masked = larkspur_load16(bytes + index) ^ keys;
    memcpy(bytes + index, &masked, sizeof masked);
  }
  for (; index < count; index++) bytes[index] ^= keys[index & 15];
}

#endif
