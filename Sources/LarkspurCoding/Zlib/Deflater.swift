/// Makes one deflate stream with its wrapping, in constant memory.
@safe
struct Deflater: ~Copyable {
  /// A heap allocation, because zlib keeps a pointer to it.
  private let stream: UnsafeMutablePointer<z_stream>

  /// The part of the output that is complete when the input is used up.
  enum Flush: Hashable {
    /// Possibly nothing: zlib collects input for larger blocks.
    case none
    /// All input so far, followed by an empty stored block, which ends with `00 00 ff ff` on a byte boundary.
    case sync
    /// The whole stream, which ends here.
    case finish

    fileprivate var zlib: Int32 {
      switch self {
      case .none: Z_NO_FLUSH
      case .sync: Z_SYNC_FLUSH
      case .finish: Z_FINISH
      }
    }
  }

  /// The repetitions that the output refers back to.
  enum Strategy: Hashable {
    /// All within the window.
    case window
    /// Runs of one byte only: no reference goes back by more than one byte.
    case runs

    fileprivate var zlib: Int32 { self == .window ? Z_DEFAULT_STRATEGY : Z_RLE }
  }

  /// Creates a deflater.
  ///
  /// - Parameter level: The level, from 0 (stored) to 9 (smallest).
  init(_ format: CompressionFormat, level: Int) throws(CodingError) {
    try self.init(zlibWindowBits: format.windowBits, level: level, .window)
  }

  /// Creates a deflater of raw streams with a window of 2^`bits` bytes, where `bits` is 9...15.
  init(rawWindowBits bits: Int, level: Int, _ strategy: Strategy) throws(CodingError) {
    try self.init(zlibWindowBits: -Int32(clamping: bits), level: level, strategy)
  }

  private init(zlibWindowBits bits: Int32, level: Int, _ strategy: Strategy) throws(CodingError) {
    // Safe: `deinit` frees the memory, or the branch below if the initialization fails.
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    // Safe: the structure is zero, as deflateInit2 requires.
    let result = unsafe deflateInit2_(
      stream, Int32(clamping: level), Z_DEFLATED, bits, 8, strategy.zlib, zlibVersion,
      Int32(MemoryLayout<z_stream>.size))
    guard result == Z_OK else {
      unsafe stream.deallocate()
      throw CodingError(zlib: result)
    }
  }

  deinit {
    // Safe: this value owns the stream, and nothing uses it after this.
    unsafe deflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Starts a new stream and keeps the memory.
  mutating func reset() throws(CodingError) {
    // Safe: `init` has initialized the stream.
    let result = unsafe deflateReset(stream)
    guard result == Z_OK else { throw CodingError(zlib: result) }
  }

  /// Deflates bytes from `consumed` on, and appends the output that is ready to `output`, as far as it fits.
  ///
  /// - Parameter flush: The same value until the result is `true`.
  /// - Returns: Whether the input is used up and all that `flush` requires has been written.
  mutating func run(
    _ input: Span<UInt8>, consumed: inout Int, flush: Flush, into output: inout OutputRawSpan
  ) throws(CodingError) -> Bool {
    // zlib counts in 32 bits: the next call deflates the rest.
    let step = min(input.count - consumed, 1 << 30)
    let isLast = consumed + step == input.count
    var result = Z_OK
    var isFull = true
    // Safe: `count` grows by the number of bytes that zlib has written behind the bytes that were there.
    unsafe output.withUnsafeMutableBytes { room, count in
      guard let base = room.baseAddress, room.count > count else { return }
      let free = min(room.count - count, 1 << 30)
      unsafe input.extracting(consumed..<consumed + step).withUnsafeBufferPointer { bytes in
        // Safe: zlib reads `avail_in` bytes only, and both buffers are lent for the call. zlib writes at
        // most `avail_out` bytes, behind the bytes that are there.
        unsafe stream.pointee.next_in = bytes.baseAddress
        unsafe stream.pointee.avail_in = UInt32(bytes.count)
        unsafe stream.pointee.next_out = (base + count).assumingMemoryBound(to: UInt8.self)
        unsafe stream.pointee.avail_out = UInt32(free)
        result = unsafe deflate(stream, isLast ? flush.zlib : Z_NO_FLUSH)
        // Safe: the stream no longer refers to the buffers after this.
        consumed += unsafe bytes.count - Int(stream.pointee.avail_in)
        count += unsafe free - Int(stream.pointee.avail_out)
        isFull = unsafe stream.pointee.avail_out == 0
        unsafe stream.pointee.next_in = nil
        unsafe stream.pointee.next_out = nil
      }
    }
    // Z_BUF_ERROR: zlib had nothing to do.
    guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else { throw CodingError(zlib: result) }
    // Room that is left means that zlib has no more output.
    return result == Z_STREAM_END || isLast && !isFull
  }

  /// Deflates all of `input`, and appends the output that is ready, if any.
  mutating func run(_ input: Span<UInt8>, flush: Flush, into output: inout [UInt8]) throws(CodingError) {
    var consumed = 0
    var isDone = false
    while !isDone {
      // Output is rarely longer than its input, and is then longer by a few bytes.
      let room = min(max(input.count - consumed, 1 << 8), 1 << 16) + 16
      try output.append(adding: room) { room throws(CodingError) in
        isDone = try run(input, consumed: &consumed, flush: flush, into: &room)
      }
    }
  }
}
