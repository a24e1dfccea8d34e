/// Undoes one deflate stream with its wrapping, in constant memory.
@safe
struct Inflater: ~Copyable {
  /// A heap allocation, because zlib keeps a pointer to it.
  private let stream: UnsafeMutablePointer<z_stream>

  enum Outcome: Hashable {
    /// All input is used up, or the output is full.
    case going
    /// The stream has ended, and its checksum and length are right.
    case ended
    /// The bytes are not a stream of this format.
    case invalid
  }

  init(_ format: CompressionFormat) throws(CodingError) { try self.init(zlibWindowBits: format.windowBits) }

  /// Creates an inflater of raw streams that refer back at most 2^`bits` bytes, where `bits` is 8...15.
  init(rawWindowBits bits: Int) throws(CodingError) { try self.init(zlibWindowBits: -Int32(clamping: bits)) }

  private init(zlibWindowBits bits: Int32) throws(CodingError) {
    // Safe: `deinit` frees the memory, or the branch below if the initialization fails.
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // Safe: the structure is zero, as inflateInit2 requires.
    let result = unsafe inflateInit2_(stream, bits, zlibVersion, Int32(MemoryLayout<z_stream>.size))
    guard result == Z_OK else {
      unsafe stream.deallocate()
      throw CodingError(zlib: result)
    }
  }

  deinit {
    // Safe: this value owns the stream, and nothing uses it after this.
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Starts a new stream and keeps the memory.
  mutating func reset(_ format: CompressionFormat) throws(CodingError) {
    // Safe: `init` has initialized the stream.
    let result = unsafe inflateReset2(stream, format.windowBits)
    guard result == Z_OK else { throw CodingError(zlib: result) }
  }

  /// Starts a new raw stream whose blocks may refer back to the output of the stream before.
  mutating func resetKeepingWindow() throws(CodingError) {
    // Safe: `init` has initialized the stream. zlib.h declares the function among the undocumented ones. The documented
    // way, inflateGetDictionary and inflateSetDictionary, copies 64 KiB for a stream that may have two bytes.
    let result = unsafe inflateResetKeep(stream)
    guard result == Z_OK else { throw CodingError(zlib: result) }
  }

  /// Whether the latest `run` has ended between two blocks and between two bytes. `false` before the first `run` of a
  /// stream, and after one that had nothing to do.
  var isBetweenBlocks: Bool {
    // Safe: `init` has initialized the stream. zlib sets `data_type` on each return: 128 between blocks, plus the
    // number of bits that are left of the last byte.
    unsafe stream.pointee.data_type == 128
  }

  /// Inflates bytes from `consumed` on, and appends their output to `output`, as far as it fits.
  ///
  /// - Parameter bytesMax: Maximum number of bytes of output.
  mutating func run(
    _ input: Span<UInt8>, consumed: inout Int, into output: inout OutputRawSpan, atMost bytesMax: Int = .max
  ) throws(CodingError) -> Outcome {
    // zlib counts in 32 bits: the next call inflates the rest.
    let step = min(input.count - consumed, 1 << 30)
    var result = Z_OK
    let most = min(bytesMax, 1 << 30)
    // Safe: `count` grows by the number of bytes that zlib has written behind the bytes that were there.
    unsafe output.withUnsafeMutableBytes { room, count in
      guard let base = room.baseAddress, room.count > count, most > 0 else { return }
      let free = min(room.count - count, most)
      unsafe input.extracting(consumed..<consumed + step).withUnsafeBufferPointer { bytes in
        // Safe: zlib reads `avail_in` bytes only, and both buffers are lent for the call. zlib writes at
        // most `avail_out` bytes, behind the bytes that are there.
        unsafe stream.pointee.next_in = bytes.baseAddress
        unsafe stream.pointee.avail_in = UInt32(bytes.count)
        unsafe stream.pointee.next_out = (base + count).assumingMemoryBound(to: UInt8.self)
        unsafe stream.pointee.avail_out = UInt32(free)
        result = unsafe inflate(stream, Z_NO_FLUSH)
        consumed += unsafe bytes.count - Int(stream.pointee.avail_in)
        count += unsafe free - Int(stream.pointee.avail_out)
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
      }
    }
    switch result {
    // Z_BUF_ERROR: zlib could make no progress, for lack of input or of room.
    case Z_OK, Z_BUF_ERROR: return .going
    case Z_STREAM_END: return .ended
    // Z_NEED_DICT: the stream needs a preset dictionary. HTTP does not define one.
    case Z_DATA_ERROR, Z_NEED_DICT: return .invalid
    default: throw CodingError(zlib: result)
    }
  }
}
