// The parts of libzip that this module uses. `CLarkspurZip` is linked, not imported, so that clients need no module
// map: see decision 35. `ExternTests` compares these declarations with the headers.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

let ZIP_CREATE: Int32 = 1
let ZIP_TRUNCATE: Int32 = 8
let ZIP_ER_CRC: Int32 = 7
let ZIP_ER_NOPASSWD: Int32 = 26
let ZIP_ER_WRONGPASSWD: Int32 = 27
let ZIP_FL_COMPRESSED: UInt32 = 4
let ZIP_FL_ENC_RAW: UInt32 = 64
let ZIP_FL_ENC_STRICT: UInt32 = 128
let ZIP_FL_LOCAL: UInt32 = 256
let ZIP_FL_CENTRAL: UInt32 = 512
let ZIP_FL_ENC_UTF_8: UInt32 = 2048
let ZIP_FL_OVERWRITE: UInt32 = 8192
let ZIP_EXTRA_FIELD_ALL: UInt16 = 0xffff
let ZIP_EXTRA_FIELD_NEW: UInt16 = 0xffff
let ZIP_CM_STORE: Int32 = 0
let ZIP_CM_DEFLATE: Int32 = 8
let ZIP_EM_NONE: UInt16 = 0
let ZIP_EM_TRAD_PKWARE: UInt16 = 1
let ZIP_EM_AES_128: UInt16 = 0x101
let ZIP_EM_AES_192: UInt16 = 0x102
let ZIP_EM_AES_256: UInt16 = 0x103
let ZIP_OPSYS_UNIX: UInt8 = 3
let ZIP_STAT_MTIME: UInt64 = 0x10
let ZIP_STAT_ENCRYPTION_METHOD: UInt64 = 0x80

@unsafe
struct zip_error_t {
  var zip_err: Int32 = 0
  var sys_err: Int32 = 0
  var str: UnsafeMutablePointer<CChar>?
}

@unsafe
struct zip_stat_t {
  var valid: UInt64 = 0
  var name: UnsafePointer<CChar>?
  var index: UInt64 = 0
  var size: UInt64 = 0
  var comp_size: UInt64 = 0
  var mtime: Int = 0
  var crc: UInt32 = 0
  var comp_method: UInt16 = 0
  var encryption_method: UInt16 = 0
  var flags: UInt32 = 0
  var _padding: UInt32 = 0
}

@_extern(c) func zip_close(_ archive: OpaquePointer?) -> Int32
@_extern(c) func zip_dir_add(_ archive: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ flags: UInt32) -> Int64
@_extern(c) func zip_discard(_ archive: OpaquePointer?)
@_extern(c) func zip_get_error(_ archive: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func zip_error_code_zip(_ error: UnsafeMutableRawPointer?) -> Int32
@_extern(c) func zip_error_fini(_ error: UnsafeMutableRawPointer?)
@_extern(c) func zip_error_init_with_code(_ error: UnsafeMutableRawPointer?, _ code: Int32)
@_extern(c) func zip_error_strerror(_ error: UnsafeMutableRawPointer?) -> UnsafePointer<CChar>?
@_extern(c) func zip_fclose(_ file: OpaquePointer?) -> Int32
@_extern(c) func zip_file_add(
  _ archive: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ source: OpaquePointer?, _ flags: UInt32
) -> Int64
@_extern(c) func zip_file_extra_field_delete(
  _ archive: OpaquePointer?, _ index: UInt64, _ number: UInt16, _ flags: UInt32
) -> Int32
@_extern(c) func zip_file_extra_field_set(
  _ archive: OpaquePointer?, _ index: UInt64, _ id: UInt16, _ number: UInt16, _ bytes: UnsafePointer<UInt8>?,
  _ count:
    UInt16, _ flags: UInt32
) -> Int32
@_extern(c) func zip_file_extra_field_get_by_id(
  _ archive: OpaquePointer?, _ index: UInt64, _ id: UInt16, _ number: UInt16, _ count: UnsafeMutablePointer<UInt16>?,
  _ flags: UInt32
) -> UnsafePointer<UInt8>?
@_extern(c) func zip_file_get_error(_ file: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func zip_file_get_external_attributes(
  _ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32, _ host: UnsafeMutablePointer<UInt8>?,
  _ attributes:
    UnsafeMutablePointer<UInt32>?
) -> Int32
@_extern(c) func zip_file_set_encryption(
  _ archive: OpaquePointer?, _ index: UInt64, _ method: UInt16, _ password: UnsafePointer<CChar>?
) -> Int32
@_extern(c) func zip_file_set_external_attributes(
  _ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32, _ host: UInt8, _ attributes: UInt32
) -> Int32
@_extern(c) func zip_file_set_mtime(_ archive: OpaquePointer?, _ index: UInt64, _ time: Int, _ flags: UInt32) -> Int32
@_extern(c) func zip_fopen_index(_ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32) -> OpaquePointer?
@_extern(c) func zip_fopen_index_encrypted(
  _ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32, _ password: UnsafePointer<CChar>?
) -> OpaquePointer?
@_extern(c) func zip_fread(_ file: OpaquePointer?, _ bytes: UnsafeMutableRawPointer?, _ count: UInt64) -> Int64
@_extern(c) func zip_get_name(_ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32) -> UnsafePointer<CChar>?
@_extern(c) func zip_get_num_entries(_ archive: OpaquePointer?, _ flags: UInt32) -> Int64
@_extern(c) func zip_register_progress_callback_with_state(
  _ archive: OpaquePointer?, _ precision: Double,
  _ report:
    @convention(c) (
      OpaquePointer?, Double,
      UnsafeMutableRawPointer?
    ) -> Void, _ free: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?,
  _ context:
    UnsafeMutableRawPointer?
) -> Int32
@_extern(c) func zip_set_file_compression(
  _ archive: OpaquePointer?, _ index: UInt64, _ method: Int32, _ level: UInt32
) -> Int32
@_extern(c) func zip_source_file(
  _ archive: OpaquePointer?, _ path: UnsafePointer<CChar>?, _ start: UInt64, _ count: Int64
) -> OpaquePointer?
@_extern(c) func zip_source_free(_ source: OpaquePointer?)
@_extern(c) func zip_stat_index(
  _ archive: OpaquePointer?, _ index: UInt64, _ flags: UInt32, _ out: UnsafeMutableRawPointer?
) -> Int32
@_extern(c) func zip_stat_init(_ out: UnsafeMutableRawPointer?)
@_extern(c) func zip_encryption_method_supported(_ method: UInt16, _ encode: Int32) -> Int32
@_extern(c) func larkspur_zip_source_copy(
  _ archive: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: UInt64
) -> OpaquePointer?
@_extern(c) func larkspur_zip_source_descriptor(_ archive: OpaquePointer?, _ descriptor: Int32) -> OpaquePointer?
@_extern(c) func larkspur_zip_open_part(
  _ descriptor: Int32, _ start: UInt64, _ count: UInt64, _ code: UnsafeMutablePointer<Int32>?
) -> OpaquePointer?
@_extern(c) func larkspur_zip_open_output(
  _ path: UnsafePointer<CChar>?, _ flags: Int32, _ judge: @convention(c) (UnsafeMutableRawPointer?, UInt64) -> Int32,
  _ context: UnsafeMutableRawPointer?, _ code: UnsafeMutablePointer<Int32>?
) -> OpaquePointer?
