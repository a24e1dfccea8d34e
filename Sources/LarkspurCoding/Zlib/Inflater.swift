@_implementationOnly import CLarkspurZlib

/// Undoes one deflate stream with its wrapping, in constant memory.
@safe
struct Inflater: ~Copyable {
  /// On the heap, for zlib keeps a pointer to it.
  private let memory: UnsafeMutableRawPointer
  // Safe: see `init`.
  private var stream: UnsafeMutablePointer<z_stream> { unsafe memory.assumingMemoryBound(to: z_stream.self) }

  enum Outcome: Hashable {
    /// All input is used up, or the output is full.
    case going
    /// The stream has come to its end, and its checksum and length are right.
    case ended
    /// This is no such stream.
    case invalid
  }

  init(_ format: CompressionFormat) throws(CodingError) {
    // Safe: the memory is freed when this value goes, or below if it does not come about.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    unsafe memory = UnsafeMutableRawPointer(stream)
    // Safe: the structure is zero, which is what inflateInit2 asks for.
    let result = unsafe larkspur_inflate_init(stream, format.windowBits)
    guard result == Z_OK else {
      unsafe stream.deallocate()
      throw CodingError(zlib: result)
    }
  }

  deinit {
    // Safe: the stream is ours, and nobody uses it after this.
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Begins with a new stream. The memory stays.
  mutating func reset(_ format: CompressionFormat) throws(CodingError) {
    // Safe: the stream was initialised when this value was.
    let result = unsafe inflateReset2(stream, format.windowBits)
    guard result == Z_OK else { throw CodingError(zlib: result) }
  }

  /// Takes in bytes from `consumed` on, and appends what comes out for them to `output`, as far as it fits.
  mutating func run(
    _ input: Span<UInt8>, consumed: inout Int, into output: inout OutputRawSpan
  ) throws(CodingError) -> Outcome {
    // zlib counts in 32 bits: what is beyond is taken in by the next call.
    let step = min(input.count - consumed, 1 << 30)
    var result = Z_OK
    // Safe: `count` is set to what has been written behind the bytes that were there.
    unsafe output.withUnsafeMutableBytes { room, count in
      guard let base = room.baseAddress, room.count > count else { return }
      let free = min(room.count - count, 1 << 30)
      unsafe input.extracting(consumed..<consumed + step).withUnsafeBufferPointer { bytes in
        // Safe: zlib reads `avail_in` bytes only, though its header lacks the const, and both buffers are lent for the
        // call. It writes at most `avail_out` bytes, behind those that are there.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
        unsafe stream.pointee.avail_in = uInt(bytes.count)
        unsafe stream.pointee.next_out = (base + count).assumingMemoryBound(to: UInt8.self)
        unsafe stream.pointee.avail_out = uInt(free)
        result = unsafe inflate(stream, Z_NO_FLUSH)
        consumed += unsafe bytes.count - Int(stream.pointee.avail_in)
        count += unsafe free - Int(stream.pointee.avail_out)
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
      }
    }
    switch result {
    // Z_BUF_ERROR: it could not go on, for want of input or of room.
    case Z_OK, Z_BUF_ERROR: return .going
    case Z_STREAM_END: return .ended
    // Z_NEED_DICT: a dictionary that was agreed upon elsewhere. HTTP knows of none.
    case Z_DATA_ERROR, Z_NEED_DICT: return .invalid
    default: throw CodingError(zlib: result)
    }
  }
}
