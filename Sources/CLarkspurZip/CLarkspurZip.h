// libzip's header, and what Swift cannot call of it.
#ifndef LARKSPUR_ZIP_H
#define LARKSPUR_ZIP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

// Returns a source over a copy of the bytes, which libzip frees, or NULL.
static inline zip_source_t *larkspur_zip_source_copy(zip_t *archive, const void *bytes, uint64_t count) {
  // A null pointer is an error to libzip even for no bytes.
  void *copy = malloc(count ? count : 1);
  if (!copy) return NULL;
  if (count) memcpy(copy, bytes, count);
  zip_source_t *source = zip_source_buffer(archive, copy, count, 1);
  if (!source) free(copy);
  return source;
}

// Returns a source over the whole file behind the descriptor, or NULL. The descriptor belongs to the source, or is
// closed.
static inline zip_source_t *larkspur_zip_source_descriptor(zip_t *archive, int descriptor) {
  FILE *file = fdopen(descriptor, "rb");
  if (!file) {
    close(descriptor);
    return NULL;
  }
  zip_source_t *source = zip_source_filep(archive, file, 0, -1);
  if (!source) fclose(file);
  return source;
}

#endif
