import LarkspurBytes

/// A pipe through which bytes move from a socket to a file without passing through the program's memory.
///
/// One step fills and empties the pipe. When emptying fails, the bytes left in the pipe are lost with it.
public final class Pipe {
  private let reading: Descriptor
  private let writing: Descriptor
  public private(set) var count = 0

  public init(kernel: any Kernel) throws(Errno) {
    let ends = kernel.openPipe()
    reading = try Descriptor(ends.reading, kernel: kernel)
    writing = try Descriptor(ends.writing, kernel: kernel)
  }

  /// Moves bytes from the socket into the pipe, which must be empty.
  ///
  /// - Returns: Never `drained`. A pipe can be full with few bytes, so a short transfer does not mean that the socket
  ///   has nothing left.
  public func fill(from socket: borrowing ClientSocket, atMost limit: Int) throws(Errno) -> ClientSocket.Received {
    while true {
      let moved = socket.descriptor.kernel.splice(
        from: socket.descriptor.number, to: writing.number, count: limit)
      if moved > 0 {
        count += moved
        return .bytes(moved, drained: false)
      }
      if moved == 0 { return .endOfStream }
      switch Errno(rawValue: Int32(truncatingIfNeeded: -moved)) {
      case .interrupted: continue
      case .wouldBlock: return .wouldBlock
      case let error: throw error
      }
    }
  }

  /// Moves everything in the pipe into the file.
  public func empty(into file: OpenFile) throws(Errno) {
    while count > 0 {
      let moved = reading.kernel.splice(from: reading.number, to: file.number, count: count)
      if moved > 0 {
        count -= moved
        continue
      }
      guard moved < 0 else { throw .inputOutput }
      switch Errno(rawValue: Int32(truncatingIfNeeded: -moved)) {
      case .interrupted: continue
      // The file is open for appending, or its file system does not support `splice`.
      case .invalidArgument: try copy(into: file)
      case let error: throw error
      }
    }
  }

  private func copy(into file: OpenFile) throws(Errno) {
    var chunk = Chunk(capacity: min(count, 256 * 1024))
    while count > 0 {
      var result = 0
      chunk.withSpare { result = reading.kernel.readFile(reading.number, at: nil, into: &$0) }
      guard result > 0 else {
        if result == -Int(Errno.interrupted.rawValue) { continue }
        throw result == 0 ? .inputOutput : Errno(rawValue: Int32(truncatingIfNeeded: -result))
      }
      count -= result
      try file.write(chunk.bytes, by: reading.kernel)
      chunk.drop(result)
    }
  }
}

extension OpenFile {
  /// Writes all bytes, with blocking calls. A non-blocking descriptor that takes no more is an error.
  public func write(_ bytes: Span<UInt8>, by kernel: any Kernel) throws(Errno) {
    var offset = 0
    while offset < bytes.count {
      let written = kernel.writeFile(number, bytes.extracting(offset...))
      if written == -Int(Errno.interrupted.rawValue) { continue }
      guard written > 0 else {
        throw written == 0 ? .inputOutput : Errno(rawValue: Int32(truncatingIfNeeded: -written))
      }
      offset += written
    }
  }

  public func status(by kernel: any Kernel) throws(Errno) -> FileStatus {
    var status = FileStatus()
    let result = kernel.fileStatus(number, &status)
    guard result >= 0 else { throw Errno(rawValue: Int32(truncatingIfNeeded: -result)) }
    return status
  }

  /// Reads once into the chunk's spare room.
  ///
  /// - Returns: The number of bytes, 0 at the end of the file.
  public func read(at offset: Int, into chunk: inout Chunk, by kernel: any Kernel) throws(Errno) -> Int {
    while true {
      var result = 0
      chunk.withSpare { result = kernel.readFile(number, at: offset, into: &$0) }
      if result == -Int(Errno.interrupted.rawValue) { continue }
      guard result >= 0 else { throw Errno(rawValue: Int32(truncatingIfNeeded: -result)) }
      return result
    }
  }
}
