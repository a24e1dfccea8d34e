import Foundation
import Larkspur
import Synchronization
import Testing

@testable import AFNetworking

/// Tests the stream of a form.
@Suite struct MultipartBodyStreamTests {
  let serializer = AFHTTPRequestSerializer()
  let directory: FormDirectory

  init() throws { directory = try FormDirectory() }

  private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

  @Test(arguments: [1, 2, 3, 7, 64, 1_000, 1 << 20])
  func everySizeOfReadGivesTheSame(size: Int) throws {
    let content = bytes(5_000)
    let file = try directory.file("file", content)
    let request = try serializer.form { form in
      form.appendPart(withForm: Data("a".utf8), name: "a")
      try? form.appendPart(withFileURL: file, name: "file")
      form.appendPart(with: InputStream(data: Data(content)), name: "s", fileName: "s", length: 5_000, mimeType: "a/b")
    }
    #expect(try request.readForm(by: size).parts.map(\.body) == [Array("a".utf8), content, content])
  }

  @Test func aCopyBeginsAnew() throws {
    let content = bytes(1_000)
    let file = try directory.file("file", content)
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "file") }
    let stream = try #require(request.httpBodyStream)
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 500)
    #expect(stream.read(&buffer, maxLength: 500) == 500)
    let copy = try #require((stream as? any NSCopying)?.copy(with: nil) as? InputStream)
    #expect(copy.streamStatus == .notOpen)
    let whole = try readAll(copy)
    #expect(Array(whole.prefix(500)) == buffer)
    #expect(request.value(forHTTPHeaderField: "Content-Length") == "\(whole.count)")
  }

  @Test func aStreamWithinIsReadOnce() throws {
    let request = try serializer.form {
      $0.appendPart(with: InputStream(data: Data([1])), name: "s", fileName: "s", length: 1, mimeType: "a/b")
    }
    let stream = try #require(request.httpBodyStream as? SegmentedBodyStream)
    let copy = try #require(stream.copy() as? SegmentedBodyStream)
    _ = try readAll(stream)
    let error = #expect(throws: NSError.self) { try readAll(copy) }
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    #expect(error?.code == URLError.Code.requestBodyStreamExhausted.rawValue)
    #expect(copy.streamStatus == .closed)
  }

  @Test func aStreamWithinThatCanBeCopiedIsReadAsOftenAsNeedBe() throws {
    let content = bytes(100)
    let request = try serializer.form {
      $0.appendPart(with: SlowStream(content), name: "s", fileName: "s", length: 100, mimeType: "a/b")
    }
    let stream = try #require(request.httpBodyStream as? SegmentedBodyStream)
    for copy in [stream, stream.copy(), stream.copy()] {
      let stream = try #require(copy as? SegmentedBodyStream)
      stream.open()
      var result: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 64)
      while stream.streamStatus == .open {
        let count = stream.read(&buffer, maxLength: 64)
        #expect(count > 0 || stream.streamStatus != .open || stream.hasBytesAvailable)
        result += buffer[..<max(count, 0)]
      }
      let form = try ReadForm(result, contentType: request.value(forHTTPHeaderField: "Content-Type"))
      #expect(form.parts.map(\.body) == [content])
    }
  }

  @Test func anOpenStreamWithoutBytesIsNotAtItsEnd() throws {
    let request = try serializer.form {
      $0.appendPart(with: SlowStream([1]), name: "s", fileName: "s", length: 1, mimeType: "a/b")
    }
    let stream = try #require(request.httpBodyStream)
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 1_000)
    #expect(stream.read(&buffer, maxLength: 1_000) > 0)
    #expect(stream.streamStatus == .open)
  }

  @Test func aStreamIsReadToItsDeclaredLength() throws {
    let request = try serializer.form {
      $0.appendPart(with: InputStream(data: Data(bytes(50))), name: "s", fileName: "s", length: 20, mimeType: "a/b")
      $0.appendPart(withForm: Data([9]), name: "after")
    }
    #expect(try request.readForm().parts.map(\.body) == [bytes(20), [9]])
  }

  @Test func aStreamShorterThanDeclaredFails() throws {
    let request = try serializer.form {
      $0.appendPart(with: InputStream(data: Data(bytes(20))), name: "s", fileName: "s", length: 21, mimeType: "a/b")
    }
    let stream = try #require(request.httpBodyStream)
    let error = #expect(throws: NSError.self) { try readAll(stream) }
    #expect(error?.code == URLError.Code.requestBodyStreamExhausted.rawValue)
  }

  /// A file that has become a named pipe fails the stream: opening it would wait for a writer.
  @Test func aFileThatHasBecomeAPipeFails() throws {
    let file = try directory.file("log", bytes(100))
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "log") }
    try FileManager.default.removeItem(at: file)
    #expect(mkfifo(file.path, 0o600) == 0)
    let stream = try #require(request.httpBodyStream)
    let error = #expect(throws: NSError.self) { try readAll(stream) }
    #expect(error?.code == URLError.Code.requestBodyStreamExhausted.rawValue)
  }

  @Test func ofAFileThatGrowsWhatWasThereIsSent() throws {
    let file = try directory.file("log", bytes(100))
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "log") }
    let handle = try FileHandle(forWritingTo: file)
    try handle.seekToEnd()
    try handle.write(contentsOf: Data([1, 2, 3]))
    #expect(try request.readForm().parts.map(\.body) == [bytes(100)])
  }

  @Test(arguments: [true, false])
  func aFileThatShrinksOrGoesAwayFails(goes: Bool) throws {
    let file = try directory.file("file", bytes(100))
    let request = try serializer.form { try? $0.appendPart(withFileURL: file, name: "file") }
    if goes {
      try FileManager.default.removeItem(at: file)
    } else {
      try FileHandle(forWritingTo: file).truncate(atOffset: 99)
    }
    let stream = try #require(request.httpBodyStream)
    let error = #expect(throws: NSError.self) { try readAll(stream) }
    #expect(error?.code == URLError.Code.requestBodyStreamExhausted.rawValue)
  }

  @Test func aBodyHoldsOneFileOpenAtATime() throws {
    let descriptors = { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") }
    let link = { (name: String) in try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)") }
    let directory = directory.url.path
    let open = { try descriptors().count { link($0)?.hasPrefix(directory) == true } }
    let files = try (0..<20).map { try self.directory.file("\($0)", bytes(100)) }
    let request = try serializer.form { form in for file in files { try? form.appendPart(withFileURL: file, name: "f") }
    }
    #expect(try open() == 0)
    let stream = try #require(request.httpBodyStream)
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 50)
    var mostOpen = 0
    while stream.read(&buffer, maxLength: 50) > 0 { mostOpen = max(mostOpen, try open()) }
    #expect(mostOpen == 1)
    #expect(try open() == 0)
  }

  @Test func statusesFollowTheReading() throws {
    let stream = SegmentedBodyStream(SegmentedBody(segments: [.bytes([1, 2, 3])]))
    var buffer = [UInt8](repeating: 0, count: 2)
    #expect(stream.streamStatus == .notOpen && !stream.hasBytesAvailable)
    #expect(stream.read(&buffer, maxLength: 2) == 0)
    stream.open()
    #expect(stream.streamStatus == .open && stream.hasBytesAvailable)
    #expect(stream.read(&buffer, maxLength: 2) == 2)
    #expect(stream.read(&buffer, maxLength: 2) == 1)
    #expect(stream.streamStatus == .atEnd && !stream.hasBytesAvailable)
    #expect(stream.read(&buffer, maxLength: 2) == 0)
    stream.close()
    #expect(stream.streamStatus == .closed)
    stream.open()
    #expect(stream.read(&buffer, maxLength: 2) == 0)
    #expect(stream.streamError == nil)
  }

  // MARK: - Throttling

  /// A throttled stream whose pauses are recorded.
  private func throttled(_ count: Int, packet: UInt, delay: TimeInterval) throws -> (InputStream, Pauses) {
    let form = MultipartForm()
    form.appendPart(withForm: Data(bytes(count)), name: "a")
    form.throttleBandwidth(withPacketSize: packet, delay: delay)
    let pauses = Pauses()
    return (SegmentedBodyStream(try #require(form.body())) { pauses.add($0) }, pauses)
  }

  private final class Pauses: Sendable {
    let all = Mutex<[TimeInterval]>([])

    func add(_ seconds: TimeInterval) { all.withLock { $0.append(seconds) } }
  }

  @Test func packetsAreSmallAndWaitedFor() throws {
    let (stream, pauses) = try throttled(1_000, packet: 100, delay: 0.25)
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    var sizes: [Int] = []
    while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 { sizes.append(count) }
    #expect(sizes.dropLast().allSatisfy { $0 == 100 })
    #expect(sizes.reduce(0, +) > 1_000)
    #expect(pauses.all.withLock { $0 } == [TimeInterval](repeating: 0.25, count: sizes.count))
  }

  @Test func aCopyIsAsSlow() throws {
    let (stream, pauses) = try throttled(10, packet: 1 << 20, delay: 1.5)
    let copy = try #require(stream.copy() as? InputStream)
    _ = try readAll(copy)
    #expect(pauses.all.withLock { $0 } == [1.5])
  }

  @Test(arguments: [(0, 0.0), (0, -1), (7, .nan), (7, .infinity)])
  func sizesAndDelaysThatAreNoneDoNotStop(packet: UInt, delay: TimeInterval) throws {
    let (stream, pauses) = try throttled(50, packet: packet, delay: delay)
    #expect(try readAll(stream).count > 50)
    #expect(pauses.all.withLock { $0 } == [])
  }

  @Test func aPacketOfAnySizeIsPossible() throws {
    let (stream, pauses) = try throttled(50, packet: .max, delay: 0)
    #expect(try readAll(stream).count > 50)
    #expect(pauses.all.withLock { $0 } == [])
  }
}
