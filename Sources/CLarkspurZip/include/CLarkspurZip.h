// What Swift cannot call of libzip.
#if defined(__linux__) && !defined(LARKSPUR_ZIP_H)
#define LARKSPUR_ZIP_H

#include <stdint.h>
#include <zip.h>

// Returns a source over a copy of the bytes, which libzip frees, or NULL.
zip_source_t *larkspur_zip_source_copy(zip_t *archive, const void *bytes, uint64_t count);

// Returns a source over the whole file behind the descriptor, or NULL. The descriptor belongs to the source, or is
// closed.
zip_source_t *larkspur_zip_source_descriptor(zip_t *archive, int descriptor);

// Opens an archive for reading: `count` bytes of a file from `start` on. Positions in the archive count from `start`. The
// descriptor belongs to the archive, or is closed. Returns NULL after an error, and sets `code` to libzip's number of it.
zip_t *larkspur_zip_open_part(int descriptor, uint64_t start, uint64_t count, int *code);

// Decides about an archive of `count` bytes before it replaces the file at its path. 0 keeps that file as it is.
typedef int (*larkspur_zip_judge)(void *context, uint64_t count);

// Opens an archive for writing, as zip_open does. The context must live until the archive is closed. Returns NULL after
// an error, and sets `code` to libzip's number of it.
zip_t *larkspur_zip_open_output(const char *path, int flags, larkspur_zip_judge judge, void *context, int *code);

#endif
