// zlib's header, and functions for macros that Swift cannot call.
#ifndef LARKSPUR_ZLIB_H
#define LARKSPUR_ZLIB_H

#include <zlib.h>

static inline int larkspur_deflate_init(z_stream *stream, int level, int window_bits, int strategy) {
  return deflateInit2(stream, level, Z_DEFLATED, window_bits, 8, strategy);
}

static inline int larkspur_inflate_init(z_stream *stream, int window_bits) {
  return inflateInit2(stream, window_bits);
}

#endif
