import Foundation
import Synchronization
import Testing

@testable import Larkspur

/// Tests `Stream.getBoundStreams` without a session.
@Suite(.timeLimit(.minutes(1))) struct BoundStreamTests {
  /// A pair of bound streams. Unchecked `Sendable`, since Foundation declares streams as not sendable, although these
  /// can be used on any thread.
  struct Pair: @unchecked Sendable {
    let input: InputStream
    let output: OutputStream

    init(_ size: Int, isOpen: Bool = true) throws {
      var input: InputStream?
      var output: OutputStream?
      Stream.getBoundStreams(withBufferSize: size, inputStream: &input, outputStream: &output)
      (self.input, self.output) = (try #require(input), try #require(output))
      guard isOpen else { return }
      self.input.open()
      self.output.open()
    }

    func write(_ bytes: [UInt8]) -> Int { output.write(bytes, maxLength: bytes.count) }

    /// Writes all bytes.
    ///
    /// - Returns: Whether all of them were written.
    func writeAll(_ bytes: [UInt8]) -> Bool {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = write(Array(rest))
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }

    /// Reads up to `max` bytes.
    ///
    /// - Returns: The bytes, or `nil` on an error.
    func read(_ max: Int) -> [UInt8]? {
      var bytes = [UInt8](repeating: 0, count: max)
      let count = input.read(&bytes, maxLength: max)
      return count < 0 ? nil : Array(bytes[..<count])
    }
  }

  /// Runs a closure that may block on a thread of its own.
  static func onAThread<T: Sendable>(_ body: @escaping @Sendable () -> T) async -> T {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: body()) }
    }
  }

  @Test func bytesComeInOrderAndThenTheEnd() throws {
    let pair = try Pair(4)
    #expect(!pair.input.hasBytesAvailable && pair.output.hasSpaceAvailable)
    #expect(pair.write([1, 2, 3]) == 3 && pair.input.hasBytesAvailable)
    // Writes only the byte that fits.
    #expect(pair.write([4, 5, 6]) == 1 && !pair.output.hasSpaceAvailable)
    #expect(pair.read(2) == [1, 2] && pair.output.hasSpaceAvailable)
    #expect(pair.write([5, 6, 7]) == 2)
    #expect(pair.read(100) == [3, 4, 5, 6])
    #expect(pair.write([8]) == 1)
    pair.output.close()
    #expect(pair.output.streamStatus == .closed && pair.input.streamStatus == .open && pair.input.hasBytesAvailable)
    #expect(pair.read(100) == [8])
    #expect(pair.input.streamStatus == .atEnd && !pair.input.hasBytesAvailable && pair.read(100) == [])
    #expect(pair.input.streamError == nil && pair.output.streamError == nil)
    pair.input.close()
    #expect(pair.input.streamStatus == .closed && pair.read(1) == nil && pair.write([1]) == -1)
  }

  @Test func nothingIsReadOrWrittenBeforeTheyAreOpen() throws {
    let pair = try Pair(4, isOpen: false)
    #expect(pair.input.streamStatus == .notOpen && pair.output.streamStatus == .notOpen)
    #expect(pair.read(1) == nil && pair.write([1]) == -1)
    #expect(!pair.input.hasBytesAvailable && !pair.output.hasSpaceAvailable)
    pair.output.open()
    // A reader that opens later finds the bytes written before.
    #expect(pair.write([1, 2]) == 2 && !pair.input.hasBytesAvailable)
    pair.output.close()
    pair.output.open()
    #expect(pair.output.streamStatus == .closed)
    pair.input.open()
    #expect(pair.read(10) == [1, 2] && pair.read(10) == [])
  }

  @Test(arguments: [Int.min, -1, 0, 1]) func aBufferHasRoomForOneByte(size: Int) throws {
    let pair = try Pair(size)
    #expect(pair.write([1, 2]) == 1 && pair.read(2) == [1])
  }

  @Test func nothingIsAskedFor() throws {
    let pair = try Pair(1)
    // Calls with a length of zero or less return at once.
    #expect(pair.output.write([], maxLength: 0) == 0 && pair.read(0) == [])
    #expect(pair.write([1]) == 1)
    #expect(pair.output.write([1], maxLength: 0) == 0 && pair.read(0) == [])
    #expect(pair.output.write([1], maxLength: -1) == 0 && pair.read(1) == [1])
  }

  @Test(arguments: [true, false]) func aWriterLearnsThatItsReaderHasGone(isClosed: Bool) throws {
    var input: InputStream?
    var output: OutputStream?
    Stream.getBoundStreams(withBufferSize: 8, inputStream: &input, outputStream: &output)
    let writer = try #require(output)
    input?.open()
    writer.open()
    #expect(writer.write([1], maxLength: 1) == 1)
    if isClosed { input?.close() } else { input = nil }
    #expect(writer.streamStatus == .error && !writer.hasSpaceAvailable && writer.write([1], maxLength: 1) == -1)
    let error = try #require(writer.streamError as NSError?)
    #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(EPIPE))
    writer.close()
    #expect(writer.streamStatus == .closed && writer.streamError == nil)
  }

  @Test func aReaderLearnsThatItsWriterHasGone() throws {
    var input: InputStream?
    var output: OutputStream?
    Stream.getBoundStreams(withBufferSize: 8, inputStream: &input, outputStream: &output)
    let reader = try #require(input)
    reader.open()
    output?.open()
    #expect(output?.write([7], maxLength: 1) == 1)
    output = nil
    var bytes: [UInt8] = [0, 0]
    #expect(reader.read(&bytes, maxLength: 2) == 1 && bytes[0] == 7 && reader.streamStatus == .atEnd)
    #expect(reader.read(&bytes, maxLength: 2) == 0)
  }

  // MARK: - Waiting

  enum WaitEnd: CaseIterable { case bytes, ownClose, otherClose }

  @Test(arguments: WaitEnd.allCases) func aReadWaits(for ending: WaitEnd) async throws {
    let pair = try Pair(4)
    async let read = Self.onAThread { pair.read(4) }
    await Task.yield()
    switch ending {
    case .bytes: #expect(pair.write([1]) == 1)
    case .ownClose: pair.input.close()
    case .otherClose: pair.output.close()
    }
    #expect(await read == (ending == .bytes ? [1] : ending == .ownClose ? nil : []))
  }

  @Test(arguments: WaitEnd.allCases) func aWriteWaits(for ending: WaitEnd) async throws {
    let pair = try Pair(2)
    #expect(pair.write([1, 2]) == 2)
    async let written = Self.onAThread { pair.write([3, 4, 5]) }
    await Task.yield()
    switch ending {
    case .bytes: #expect(pair.read(2)?.isEmpty == false)
    case .ownClose: pair.output.close()
    case .otherClose: pair.input.close()
    }
    let count = await written
    #expect(ending == .bytes ? count > 0 : count == -1)
    #expect((pair.output.streamError != nil) == (ending == .otherClose))
  }

  @Test(arguments: [1, 7, 4096, 1 << 20]) func aMillionBytesGoThrough(size: Int) async throws {
    let pair = try Pair(size)
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let count = size == 1 ? 20_000 : bytes.count
    async let written = Self.onAThread {
      let isWritten = pair.writeAll(Array(bytes[..<count]))
      pair.output.close()
      return isWritten
    }
    let read = await Self.onAThread {
      var all: [UInt8] = []
      while let piece = pair.read(5_000), !piece.isEmpty { all += piece }
      return all
    }
    #expect(await written && read == Array(bytes[..<count]))
  }

  /// Many threads at both ends neither lose nor duplicate a byte.
  @Test func manyThreads() async throws {
    let pair = try Pair(16)
    let counts = await withTaskGroup(of: [Int].self) { group in
      for value in UInt8(0)..<4 {
        group.addTask {
          _ = await Self.onAThread { pair.writeAll([UInt8](repeating: value, count: 5_000)) }
          return []
        }
      }
      for _ in 0..<3 {
        group.addTask {
          await Self.onAThread {
            var counts = [Int](repeating: 0, count: 4)
            while let piece = pair.read(11), !piece.isEmpty { for byte in piece { counts[Int(byte)] += 1 } }
            return counts
          }
        }
      }
      var (writers, sums) = (0, [Int](repeating: 0, count: 4))
      for await counts in group {
        if counts.isEmpty { writers += 1 }
        if writers == 4 { pair.output.close() }
        for (index, count) in counts.enumerated() { sums[index] += count }
      }
      return sums
    }
    #expect(counts == [5_000, 5_000, 5_000, 5_000])
  }

  // MARK: - Run loops

  /// A delegate that writes or reads when an event permits it, as programs for Darwin do.
  private final class Events: NSObject, StreamDelegate {
    var seen: [Stream.Event] = []
    var rest: ArraySlice<UInt8> = []
    var read: [UInt8] = []
    let thread = Thread.current
    var isOver = false

    func stream(_ stream: Stream, handle event: Stream.Event) {
      #expect(Thread.current === thread)
      seen.append(event)
      switch event {
      case .hasSpaceAvailable:
        guard let output = stream as? OutputStream else { return }
        rest = rest.dropFirst(max(output.write(Array(rest), maxLength: rest.count), 0))
        if rest.isEmpty {
          output.close()
          isOver = true
        }
      case .hasBytesAvailable:
        var piece = [UInt8](repeating: 0, count: 3)
        let count = (stream as? InputStream)?.read(&piece, maxLength: 3) ?? -1
        read += piece[..<max(count, 0)]
      case .endEncountered, .errorOccurred:
        stream.close()
        isOver = true
      default: break
      }
    }

    /// Runs the run loop as programs for Darwin do: `run(mode:before:)` returns after each event.
    func run() { while !isOver, RunLoop.current.run(mode: .default, before: .distantFuture) {} }
  }

  @Test func aWriterOnARunLoop() async throws {
    let pair = try Pair(4, isOpen: false)
    pair.input.open()
    async let events = Self.onAThread { () -> [UInt] in
      let events = Events()
      events.rest = (0..<50)[...].map { UInt8($0) }[...]
      pair.output.delegate = events
      #expect(pair.output.delegate === events)
      pair.output.schedule(in: .current, forMode: .default)
      pair.output.open()
      events.run()
      return events.seen.map(\.rawValue)
    }
    let read = await Self.onAThread {
      var all: [UInt8] = []
      while let piece = pair.read(5), !piece.isEmpty { all += piece }
      return all
    }
    #expect(read == Array(0..<50))
    let seen = await events
    #expect(seen.first == Stream.Event.openCompleted.rawValue)
    #expect(seen.count > 12 && seen.dropFirst().allSatisfy { $0 == Stream.Event.hasSpaceAvailable.rawValue })
  }

  @Test func aReaderOnARunLoop() async throws {
    let pair = try Pair(8, isOpen: false)
    pair.output.open()
    async let isWritten = Self.onAThread {
      defer { pair.output.close() }
      return pair.writeAll(Array(0..<40))
    }
    let (read, seen) = await Self.onAThread { () -> ([UInt8], [UInt]) in
      let events = Events()
      pair.input.delegate = events
      pair.input.schedule(in: .current, forMode: .default)
      pair.input.open()
      events.run()
      return (events.read, events.seen.map(\.rawValue))
    }
    #expect(await isWritten && read == Array(0..<40))
    #expect(seen.first == Stream.Event.openCompleted.rawValue && seen.last == Stream.Event.endEncountered.rawValue)
    #expect(seen.count { $0 == Stream.Event.endEncountered.rawValue } == 1)
  }

  @Test func aWriterOnARunLoopHearsOfTheEnd() async throws {
    let pair = try Pair(1)
    #expect(pair.write([1]) == 1)
    async let seen = Self.onAThread { () -> [UInt] in
      let events = Events()
      pair.output.delegate = events
      pair.output.schedule(in: .current, forMode: .default)
      events.run()
      return events.seen.map(\.rawValue)
    }
    await Task.yield()
    pair.input.close()
    #expect(await seen == [Stream.Event.openCompleted.rawValue, Stream.Event.errorOccurred.rawValue])
  }

  /// A stream that is removed from a run loop, or closed, does not keep the run loop waiting.
  @Test(arguments: [true, false]) func aRunLoopIsLeft(byClosing: Bool) async throws {
    let pair = try Pair(1)
    let events = await Self.onAThread { () -> Int in
      let events = Events()
      pair.input.schedule(in: .current, forMode: .default)
      pair.input.delegate = events
      if byClosing { pair.input.close() } else { pair.input.remove(from: .current, forMode: .default) }
      _ = RunLoop.current.run(mode: .default, before: Date())
      return events.seen.count
    }
    #expect(events == 0)
  }

  @Test func nothingBesides() throws {
    let pair = try Pair(1)
    #expect(pair.input.delegate == nil && pair.output.delegate == nil)
    #expect(pair.input.property(forKey: .fileCurrentOffsetKey) == nil)
    #expect(pair.output.property(forKey: .dataWrittenToMemoryStreamKey) == nil)
    #expect(!pair.output.setProperty(1 as NSNumber, forKey: .fileCurrentOffsetKey))
    // A stream made by an initializer of `OutputStream` has no reader.
    let lonely = BoundOutputStream(toMemory: ())
    lonely.open()
    #expect(lonely.write([1], maxLength: 1) == -1 && lonely.streamStatus == .error)
  }
}
