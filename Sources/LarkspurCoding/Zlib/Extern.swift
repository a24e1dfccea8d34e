// The parts of zlib that this module uses. No C module is imported, so that clients need no module map (decision 35).
// `ExternTests` compares these declarations with zlib.h.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// The version that `deflateInit2_` and `inflateInit2_` compare with that of the library. Only the first digit counts.
let zlibVersion = "1"

let Z_OK: Int32 = 0
let Z_STREAM_END: Int32 = 1
let Z_NEED_DICT: Int32 = 2
let Z_DATA_ERROR: Int32 = -3
let Z_MEM_ERROR: Int32 = -4
let Z_BUF_ERROR: Int32 = -5

let Z_NO_FLUSH: Int32 = 0
let Z_SYNC_FLUSH: Int32 = 2
let Z_FINISH: Int32 = 4
let Z_DEFLATED: Int32 = 8
let Z_DEFAULT_STRATEGY: Int32 = 0
let Z_RLE: Int32 = 3

/// A stream's state. `deflateInit2_` and `inflateInit2_` compare its size with that of the library.
@unsafe
struct z_stream {
  var next_in: UnsafePointer<UInt8>?
  var avail_in: UInt32 = 0
  var total_in: UInt = 0
  var next_out: UnsafeMutablePointer<UInt8>?
  var avail_out: UInt32 = 0
  var total_out: UInt = 0
  var msg: UnsafePointer<CChar>?
  var state: OpaquePointer?
  var zalloc: UnsafeRawPointer?
  var zfree: UnsafeRawPointer?
  var opaque: UnsafeMutableRawPointer?
  var data_type: Int32 = 0
  var adler: UInt = 0
  var reserved: UInt = 0
}

@_extern(c) func crc32_z(_ crc: UInt, _ bytes: UnsafePointer<UInt8>?, _ count: Int) -> UInt

@_extern(c) func deflateInit2_(
  _ stream: UnsafeMutableRawPointer, _ level: Int32, _ method: Int32, _ windowBits: Int32, _ memoryLevel: Int32,
  _ strategy: Int32, _ version: UnsafePointer<CChar>?, _ streamSize: Int32
) -> Int32
@_extern(c) func deflate(_ stream: UnsafeMutableRawPointer, _ flush: Int32) -> Int32
@_extern(c) func deflateReset(_ stream: UnsafeMutableRawPointer) -> Int32
@discardableResult
@_extern(c) func deflateEnd(_ stream: UnsafeMutableRawPointer) -> Int32

@_extern(c) func inflateInit2_(
  _ stream: UnsafeMutableRawPointer, _ windowBits: Int32, _ version: UnsafePointer<CChar>?, _ streamSize: Int32
) -> Int32
@_extern(c) func inflate(_ stream: UnsafeMutableRawPointer, _ flush: Int32) -> Int32
@_extern(c) func inflateReset2(_ stream: UnsafeMutableRawPointer, _ windowBits: Int32) -> Int32
@_extern(c) func inflateResetKeep(_ stream: UnsafeMutableRawPointer) -> Int32
@discardableResult
@_extern(c) func inflateEnd(_ stream: UnsafeMutableRawPointer) -> Int32
