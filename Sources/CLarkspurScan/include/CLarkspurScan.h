// Comparisons of 16 bytes at once, with one bit for each byte as the result. Swift's SIMD types can compare, but cannot
// move the result into an integer register, which fast scanning needs.
#if defined(__linux__) && !defined(LARKSPUR_SCAN_H)
#define LARKSPUR_SCAN_H

#include <stdint.h>

// Marks the bytes that end the simple part of a field name: all except letters, digits and '-'. The caller checks the
// byte: ':' ends the name, and a rarer token character belongs to it.
uint32_t larkspur_name_stops16(const void *from);

// Marks the bytes that end the simple part of a field value or a reason phrase: control characters and DEL. The caller
// checks the byte: HTAB, which is rare, belongs to the value.
uint32_t larkspur_value_stops16(const void *from);

// Marks the bytes as `larkspur_value_stops16` does, in 32 bytes.
uint32_t larkspur_value_stops32(const void *from);

// Marks the bytes that end a line of an event stream: LF and CR.
uint32_t larkspur_line_stops16(const void *from);

// Marks the bytes outside ASCII.
uint32_t larkspur_high_bits16(const void *from);

#endif
