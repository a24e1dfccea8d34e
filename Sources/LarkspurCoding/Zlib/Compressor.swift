@_implementationOnly import CLarkspurZlib

/// Compresses a stream of bytes in constant memory.
@safe
package struct Compressor: ~Copyable {
  /// A heap allocation, because zlib keeps a pointer to it.
  private let memory: UnsafeMutableRawPointer
  // Safe: `init` binds the memory to `z_stream` and initializes it.
  private var stream: UnsafeMutablePointer<z_stream> { unsafe memory.assumingMemoryBound(to: z_stream.self) }
  private var room = [UInt8](repeating: 0, count: 1 << 16)

  /// Creates a compressor.
  ///
  /// - Parameter level: The level, from 0 (stored) to 9 (smallest).
  package init(_ format: CompressionFormat, level: Int = 6) throws(CodingError) {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    unsafe memory = UnsafeMutableRawPointer(stream)
    // Safe: the structure is zero, as deflateInit2 requires.
    let result = unsafe larkspur_deflate_init(stream, Int32(clamping: level), format.windowBits)
    guard result == Z_OK else {
      unsafe stream.deallocate()
      throw CodingError(zlib: result)
    }
  }

  deinit {
    unsafe deflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Compresses some bytes, and appends the output that is ready, possibly none yet.
  package mutating func compress(_ bytes: Span<UInt8>, into output: inout [UInt8]) throws(CodingError) {
    try run(bytes, flush: Z_NO_FLUSH, into: &output)
  }

  /// Appends the output that zlib still holds, and the end of the format.
  package mutating func finish(into output: inout [UInt8]) throws(CodingError) {
    let nothing: [UInt8] = []
    try run(nothing.span, flush: Z_FINISH, into: &output)
  }

  private mutating func run(_ bytes: Span<UInt8>, flush: Int32, into output: inout [UInt8]) throws(CodingError) {
    var offset = 0
    repeat {
      // zlib counts in 32 bits.
      let step = min(bytes.count - offset, 1 << 30)
      let result = unsafe bytes.extracting(offset..<offset + step).withUnsafeBufferPointer { input in
        // Safe: zlib reads `avail_in` bytes only, though its header lacks the const.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        unsafe stream.pointee.avail_in = uInt(step)
        return drain(flush: flush, into: &output)
      }
      guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else { throw CodingError(zlib: result) }
      offset += step
    } while offset < bytes.count
  }

  /// Calls deflate until it leaves room unused, which means that it has no more output.
  private mutating func drain(flush: Int32, into output: inout [UInt8]) -> Int32 {
    let stream = unsafe stream
    while true {
      let (result, left) = unsafe room.withUnsafeMutableBufferPointer { room in
        // Safe: zlib writes at most `avail_out` bytes.
        unsafe stream.pointee.next_out = room.baseAddress
        unsafe stream.pointee.avail_out = uInt(room.count)
        let result = unsafe deflate(stream, flush)
        return (result, unsafe Int(stream.pointee.avail_out))
      }
      output.append(contentsOf: room[..<(room.count - left)])
      if result != Z_OK || left > 0 { return result }
    }
  }
}
