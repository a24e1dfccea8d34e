#ifdef __linux__
#define _GNU_SOURCE
#include "CLarkspurZip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The sizes of structures that Swift knows (Extern.swift).
_Static_assert(sizeof(zip_error_t) == 16 && sizeof(zip_stat_t) == 64, "libzip has other structures");

zip_source_t *larkspur_zip_source_copy(zip_t *archive, const void *bytes, uint64_t count) {
  // A null pointer is an error to libzip even for no bytes.
  void *copy = malloc(count ? count : 1);
  if (!copy) return NULL;
  if (count) memcpy(copy, bytes, count);
  zip_source_t *source = zip_source_buffer(archive, copy, count, 1);
  if (!source) free(copy);
  return source;
}

zip_source_t *larkspur_zip_source_descriptor(zip_t *archive, int descriptor) {
  FILE *file = fdopen(descriptor, "rb");
  if (!file) {
    close(descriptor);
    return NULL;
  }
  zip_source_t *source = zip_source_filep(archive, file, 0, -1);
  if (!source) fclose(file);
  return source;
}

zip_t *larkspur_zip_open_part(int descriptor, uint64_t start, uint64_t count, int *code) {
  zip_error_t error;
  zip_error_init(&error);
  FILE *file = fdopen(descriptor, "rb");
  if (!file) {
    zip_error_set(&error, ZIP_ER_OPEN, errno);
    close(descriptor);
  }
  // libzip takes a count of 0 for the whole file, which is empty then.
  zip_source_t *source = file ? zip_source_filep_create(file, start, (zip_int64_t)count, &error) : NULL;
  if (file && !source) fclose(file);
  zip_t *archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
  if (source && !archive) zip_source_free(source);
  *code = zip_error_code_zip(&error);
  zip_error_fini(&error);
  return archive;
}

// The file of an archive that is being written, with the decision about the finished archive.
typedef struct {
  zip_source_t *file;
  larkspur_zip_judge judge;
  void *context;
  zip_error_t error;
} larkspur_zip_output;

static zip_int64_t larkspur_zip_output_fail(larkspur_zip_output *output, int code) {
  zip_error_set(&output->error, code, 0);
  return -1;
}

// Passes each command of libzip to the file (zip_source_function(3)), and asks the judge before the last one.
static zip_int64_t larkspur_zip_output_call(
    void *state, void *data, zip_uint64_t length, zip_source_cmd_t command) {
  larkspur_zip_output *output = (larkspur_zip_output *)state;
  zip_source_t *file = output->file;
  // An error of an earlier command does not hide one of the file.
  if (command != ZIP_SOURCE_ERROR) zip_error_set(&output->error, ZIP_ER_OK, 0);
  switch (command) {
  case ZIP_SOURCE_OPEN: return zip_source_open(file);
  case ZIP_SOURCE_READ: return zip_source_read(file, data, length);
  case ZIP_SOURCE_CLOSE: return zip_source_close(file);
  case ZIP_SOURCE_STAT: return zip_source_stat(file, (zip_stat_t *)data) == 0 ? (zip_int64_t)sizeof(zip_stat_t) : -1;
  case ZIP_SOURCE_TELL: return zip_source_tell(file);
  case ZIP_SOURCE_BEGIN_WRITE: return zip_source_begin_write(file);
  case ZIP_SOURCE_WRITE: return zip_source_write(file, data, length);
  case ZIP_SOURCE_TELL_WRITE: return zip_source_tell_write(file);
  case ZIP_SOURCE_SEEK:
  case ZIP_SOURCE_SEEK_WRITE: {
    zip_source_args_seek_t *place = ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, length, &output->error);
    if (!place) return -1;
    return command == ZIP_SOURCE_SEEK ? zip_source_seek(file, place->offset, place->whence)
                                      : zip_source_seek_write(file, place->offset, place->whence);
  }
  case ZIP_SOURCE_COMMIT_WRITE: {
    zip_int64_t count = zip_source_tell_write(file);
    if (count < 0) return -1;
    if (!output->judge(output->context, (uint64_t)count)) return larkspur_zip_output_fail(output, ZIP_ER_CANCELLED);
    return zip_source_commit_write(file);
  }
  case ZIP_SOURCE_ROLLBACK_WRITE:
    zip_source_rollback_write(file);
    return 0;
  case ZIP_SOURCE_ERROR: {
    zip_error_t *error = zip_error_code_zip(&output->error) == ZIP_ER_OK ? zip_source_error(file) : &output->error;
    return zip_error_to_data(error, data, length);
  }
  case ZIP_SOURCE_FREE:
    zip_source_free(file);
    zip_error_fini(&output->error);
    free(output);
    return 0;
  case ZIP_SOURCE_SUPPORTS:
    return ZIP_SOURCE_SUPPORTS_WRITABLE | ZIP_SOURCE_MAKE_COMMAND_BITMASK(ZIP_SOURCE_ACCEPT_EMPTY);
  // An empty file is no archive.
  case ZIP_SOURCE_ACCEPT_EMPTY: return 0;
  default: return larkspur_zip_output_fail(output, ZIP_ER_OPNOTSUPP);
  }
}

zip_t *larkspur_zip_open_output(
    const char *path, int flags, larkspur_zip_judge judge, void *context, int *code) {
  zip_error_t error;
  zip_error_init(&error);
  zip_t *archive = NULL;
  zip_source_t *source = NULL;
  larkspur_zip_output *output = (larkspur_zip_output *)calloc(1, sizeof(larkspur_zip_output));
  if (output) {
    zip_error_init(&output->error);
    output->judge = judge;
    output->context = context;
    output->file = zip_source_file_create(path, 0, -1, &error);
    if (output->file) source = zip_source_function_create(larkspur_zip_output_call, output, &error);
    if (output->file && !source) zip_source_free(output->file);
    if (!source) free(output);
  } else {
    zip_error_set(&error, ZIP_ER_MEMORY, 0);
  }
  if (source) archive = zip_open_from_source(source, flags, &error);
  if (source && !archive) zip_source_free(source);
  *code = zip_error_code_zip(&error);
  zip_error_fini(&error);
  return archive;
}
#endif
