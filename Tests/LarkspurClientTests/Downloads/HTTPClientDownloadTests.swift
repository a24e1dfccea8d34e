import Foundation
import LarkspurClient
import LarkspurTLS
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Downloads in pieces by a client, against a server on this machine.
@Suite(.timeLimit(.minutes(1))) struct HTTPClientDownloadTests {
  let server: TestServer
  let client = HTTPClientTests.client()
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private static let total = 1_000_000
  private static let content = TestServer.content(count: total)

  private static func hash(_ bytes: [UInt8]) throws -> [UInt8] { try #require(MessageDigest.of(bytes, .sha256)) }

  /// A plan with pieces so small that several requests are worth it.
  private func plan(_ paths: String..., connections: Int = 4) -> DownloadPlan {
    var plan = DownloadPlan(paths.map { server.url($0) }, to: directory.path("file"))
    plan.connections = connections
    plan.smallestPiece = 50_000
    plan.retry.firstDelay = .milliseconds(1)
    return plan
  }

  private func file() -> [UInt8]? { FileManager.default.contents(atPath: directory.path("file")).map(Array.init) }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.url.path).sorted()
  }

  private func error(of download: Download) async -> DownloadError? {
    do {
      _ = try await download.value
      return nil
    } catch {
      return error
    }
  }

  /// Answers a request for a range of a file, with an entity tag.
  private static func answer(
    _ request: TestServer.Request, _ bytes: [UInt8] = content, tag: String = "\"1\""
  ) -> TestServer.Response {
    var response = TestServer.Response(fields: ["ETag": tag, "Accept-Ranges": "bytes"])
    let isCurrent = request.fields["If-Range"].map { $0 == tag } ?? true
    guard isCurrent, let range = range(request, of: bytes.count) else {
      response.body = .bytes(bytes)
      return response
    }
    response.status = 206
    response.fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"
    response.body = .bytes(Array(bytes[range]))
    return response
  }

  private static func range(_ request: TestServer.Request, of count: Int) -> Range<Int>? {
    guard let text = request.fields["Range"] else { return nil }
    let ends = text.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard ends.count == 2, let first = ends[0], first < count else { return nil }
    return first..<min(ends[1] ?? count - 1, count - 1) + 1
  }

  // MARK: - Whole files

  @Test(arguments: [1, 2, 4, 8]) func aWholeFile(connections: Int) async throws {
    let plan = plan("/range/\(Self.total)", connections: connections)
    let result = try await client.download(plan).value
    #expect(result.path == plan.destination && result.size == Self.total && result.received == Self.total)
    #expect(file() == Self.content)
    #expect(try names() == ["file"])
    let requests = server.requests
    #expect(connections == 1 ? requests.count == 1 : requests.count > 1)
    #expect(requests.allSatisfy { $0.fields.values("Accept-Encoding") == ["identity"] })
    #expect((requests[0].fields["Range"] == nil) == (connections == 1))
  }

  @Test func anEmptyFile() async throws {
    #expect(try await client.download(plan("/range/0")).value.size == 0)
    #expect(file() == [])
  }

  @Test(arguments: ["/bytes/\(total)", "/chunked/\(total)", "/close-delimited/\(total)"])
  func aFileWithoutRanges(path: String) async throws {
    #expect(try await client.download(plan(path)).value.size == Self.total)
    #expect(file() == Self.content)
    #expect(server.requests.count == 1)
  }

  @Test func fieldsAndRedirections() async throws {
    server.route("GET", "/moved") { [server] _ in .redirect(to: server.url("/range/\(Self.total)")) }
    var plan = plan("/moved")
    plan.fields = [Field("X-One", "1")]
    _ = try await client.download(plan).value
    #expect(file() == Self.content)
    #expect(server.requests.allSatisfy { $0.fields["X-One"] == "1" })
  }

  @Test func aFileOfTheNameIsReplaced() async throws {
    try Data("earlier".utf8).write(to: directory.file("file"))
    _ = try await client.download(plan("/range/\(Self.total)")).value
    #expect(file() == Self.content)
  }

  /// The link is replaced, and its target stays.
  @Test func aLinkIsNotFollowed() async throws {
    try Data("target".utf8).write(to: directory.file("target"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("file"), withDestinationPath: directory.path("target"))
    _ = try await client.download(plan("/range/\(Self.total)")).value
    #expect(file() == Self.content)
    #expect(FileManager.default.contents(atPath: directory.path("target")) == Data("target".utf8))
  }

  // MARK: - Mirrors and failures

  @Test func aMirrorWithoutTheFile() async throws {
    server.route("GET", "/mirror") { Self.answer($0, tag: "\"another\"") }
    _ = try await client.download(plan("/status/404", "/mirror")).value
    #expect(file() == Self.content)
  }

  @Test func mirrorsShareTheRequests() async throws {
    for path in ["/one", "/two"] { server.route("GET", path) { Self.answer($0, tag: "\"\(path)\"") } }
    _ = try await client.download(plan("/one", "/two")).value
    #expect(file() == Self.content)
    #expect(Set(server.requests.map(\.path)) == ["/one", "/two"])
  }

  @Test func aMirrorOfAnotherSizeIsLeftOut() async throws {
    server.route("GET", "/file") { Self.answer($0) }
    server.route("GET", "/mirror") { Self.answer($0, TestServer.content(count: 10), tag: "\"another\"") }
    _ = try await client.download(plan("/file", "/mirror")).value
    #expect(file() == Self.content)
  }

  @Test func aStatusEndsTheOnlyMirror() async throws {
    let error = try #require(await error(of: client.download(plan("/status/404"))))
    #expect(error.code == .status && error.status == 404 && error.url == server.url("/status/404"))
    #expect(error.description.contains("404"))
    #expect(try names() == [])
  }

  @Test func aServerThatIsNotThere() async throws {
    var plan = plan("/")
    plan.urls = ["http://127.0.0.1:1/"]
    plan.retry.attemptsMax = 2
    let error = try #require(await error(of: client.download(plan)))
    #expect(error.code == .requestFailed)
    #expect((error.underlying as? HTTPClientError)?.code == .unconnected)
  }

  /// Every second request gets a 503.
  @Test func aServerThatIsBusyNowAndThen() async throws {
    let count = Atomic(0)
    server.route("GET", "/file") { request in
      let number = count.wrappingAdd(1, ordering: .relaxed).oldValue
      return number.isMultiple(of: 2) ? TestServer.Response(status: 503) : Self.answer(request)
    }
    _ = try await client.download(plan("/file")).value
    #expect(file() == Self.content)
  }

  /// Each response breaks off, and the download continues with the next byte.
  @Test func aServerThatBreaksOff() async throws {
    server.route("GET", "/file") { request in
      var response = Self.answer(request)
      guard case .bytes(let bytes) = response.body else { return response }
      let sent = bytes.prefix(100_000)
      response.fields["Content-Length"] = "\(bytes.count)"
      response.body = .bytes(Array(sent))
      return response
    }
    var plan = plan("/file", connections: 2)
    plan.retry.attemptsMax = 30
    let result = try await client.download(plan).value
    #expect(file() == Self.content)
    #expect(result.received == Self.total)
  }

  @Test func anotherVersionBeginsAnew() async throws {
    let old = [UInt8](repeating: 1, count: Self.total)
    let count = Atomic(0)
    server.route("GET", "/file") { request in
      let number = count.wrappingAdd(1, ordering: .relaxed).oldValue
      guard number == 0 else { return Self.answer(request, tag: "\"2\"") }
      var response = Self.answer(request, old)
      response.fields["Content-Length"] = "\(Self.total)"
      response.body = .bytes(Array(old.prefix(300_000)))
      return response
    }
    _ = try await client.download(plan("/file")).value
    #expect(file() == Self.content)
  }

  /// The server has ranges for the first request only.
  @Test func theWholeInPlaceOfARange() async throws {
    let count = Atomic(0)
    server.route("GET", "/file") { request in
      var request = request
      if count.wrappingAdd(1, ordering: .relaxed).oldValue > 0 { request.fields["Range"] = nil }
      return Self.answer(request)
    }
    _ = try await client.download(plan("/file")).value
    #expect(file() == Self.content)
  }

  @Test func aDownloadThatMustBeResumable() async throws {
    var plan = plan("/bytes/\(Self.total)")
    plan.requiresResumable = true
    #expect(await error(of: client.download(plan))?.code == .notResumable)
    #expect(try names() == [])
  }

  @Test func anotherSizeThanThePlans() async throws {
    var plan = plan("/range/\(Self.total)")
    plan.size = 5
    let error = try #require(await error(of: client.download(plan)))
    #expect(error.code == .size && error.reason.contains("5") && error.reason.contains("\(Self.total)"))
  }

  // MARK: - Checksums

  @Test func aChecksum() async throws {
    var plan = plan("/range/\(Self.total)")
    plan.checksum = try DownloadChecksum(.sha256, Self.hash(Self.content))
    _ = try await client.download(plan).value
    #expect(file() == Self.content)
    let requests = server.requests.count
    // The file is there.
    #expect(try await client.download(plan).value.received == 0)
    #expect(server.requests.count == requests)
  }

  @Test func aWrongChecksum() async throws {
    var plan = plan("/range/\(Self.total)")
    plan.checksum = try DownloadChecksum(.sha256, Self.hash([1]))
    #expect(await error(of: client.download(plan))?.code == .checksum)
    #expect(try !names().contains("file"))
  }

  /// The first response has a wrong byte, and only its piece is fetched once more.
  @Test func aWrongPiece() async throws {
    let pieces = stride(from: 0, to: Self.total, by: 100_000).map { Array(Self.content[$0..<$0 + 100_000]) }
    var wrong = Self.content
    wrong[450_000] ^= 1
    let count = Atomic(0)
    server.route("GET", "/file") { [wrong] request in
      let isFirst = count.wrappingAdd(1, ordering: .relaxed).oldValue == 0
      return Self.answer(request, isFirst ? wrong : Self.content)
    }
    var plan = plan("/file", connections: 1)
    plan.pieceHashes = try DownloadPieceHashes(.sha256, pieceBytes: 100_000, hashes: pieces.map(Self.hash))
    let result = try await client.download(plan).value
    #expect(file() == Self.content)
    #expect(result.received == Self.total + 100_000)
  }

  // MARK: - Control

  /// Sends a part of the content, and then nothing until the client ends the connection.
  private func stall(_ path: String, after count: Int) {
    let stalls = Atomic(true)
    server.route("GET", path) { request in
      var response = Self.answer(request)
      guard stalls.exchange(false, ordering: .relaxed), case .bytes(let bytes) = response.body else { return response }
      response.body = .stream(count: bytes.count) { writer in
        try writer.write(Array(bytes.prefix(count)))
        try writer.pause(.seconds(120))
      }
      return response
    }
  }

  /// Waits until a download has received some bytes.
  private func wait(for count: Int, _ download: Download) async {
    for await state in download.states where state.received >= count { return }
  }

  @Test func aCancelledDownloadIsContinued() async throws {
    stall("/file", after: 400_000)
    let plan = plan("/file", connections: 1)
    let download = client.download(plan)
    await wait(for: 400_000, download)
    download.cancel()
    #expect(await error(of: download)?.code == .cancelled)
    #expect(download.state.phase == .failed)
    #expect(try names() == ["file.larkspur-download", "file.larkspur-part"])
    let result = try await client.download(plan).value
    #expect(result.received == Self.total - 400_000)
    #expect(server.requests.last?.fields["Range"] == "bytes=400000-\(Self.total - 1)")
    #expect(file() == Self.content)
    #expect(try names() == ["file"])
  }

  @Test func pauseAndResume() async throws {
    stall("/file", after: 400_000)
    let download = client.download(plan("/file", connections: 1))
    await wait(for: 400_000, download)
    download.pause()
    try await server.waitForClosedConnections(1)
    for await state in download.states where state.phase == .paused { break }
    download.resume()
    let result = try await download.value
    #expect(result.received == Self.total)
    #expect(file() == Self.content)
  }

  @Test func aDroppedDownloadIsCancelled() async throws {
    stall("/file", after: 400_000)
    do {
      let download = client.download(plan("/file", connections: 1))
      await wait(for: 400_000, download)
    }
    try await server.waitForClosedConnections(1)
  }

  @Test func aCancelledTaskCancelsItsDownload() async throws {
    stall("/file", after: 400_000)
    let download = client.download(plan("/file", connections: 1))
    let task = Task { await error(of: download) }
    await wait(for: 400_000, download)
    task.cancel()
    #expect(await task.value?.code == .cancelled)
  }

  @Test func oneDownloadForEachFile() async throws {
    stall("/file", after: 400_000)
    let plan = plan("/file", connections: 1)
    let download = client.download(plan)
    await wait(for: 400_000, download)
    #expect(await error(of: client.download(plan))?.code == .inUse)
    download.cancel()
    #expect(await error(of: download)?.code == .cancelled)
    _ = try await client.download(plan).value
    #expect(file() == Self.content)
  }

  // MARK: - States and bytes

  @Test func theLastState() async throws {
    let download = client.download(plan("/range/\(Self.total)"))
    var last: Download.State?
    for await state in download.states { last = state }
    #expect(last?.phase == .complete && last?.received == Self.total && last?.pieces == [0..<Self.total])
    #expect(last == download.state && last?.lanes == [])
    #expect(try await download.value.size == Self.total)
  }

  @Test func aStateOfALane() async throws {
    stall("/file", after: 400_000)
    let download = client.download(plan("/file", connections: 1))
    for await state in download.states where state.received == 400_000 {
      #expect(state.phase == .loading && state.total == Self.total && state.pieces == [0..<400_000])
      #expect(state.lanes.map(\.url) == [server.url("/file")])
      #expect(state.lanes.map(\.position) == [400_000] && state.lanes.map(\.end) == [Self.total])
      break
    }
  }

  @Test(arguments: [1, 4]) func bytesInOrder(connections: Int) async throws {
    let download = client.download(plan("/range/\(Self.total)", connections: connections))
    var bytes: [UInt8] = []
    for try await piece in download.bytes { bytes += piece }
    #expect(bytes == Self.content)
    #expect(try await download.value.size == Self.total)
    // After the end they come from the file.
    bytes = []
    for try await piece in download.bytes { bytes += piece }
    #expect(bytes == Self.content)
  }

  @Test func bytesOfADownloadThatFails() async throws {
    let download = client.download(plan("/status/404"))
    await #expect(throws: DownloadError.self) { for try await _ in download.bytes {} }
  }

  // MARK: - Bad plans

  private static let bad: [(String, @Sendable (inout DownloadPlan) -> Void)] = [
    ("urls", { $0.urls = [] }), ("urls", { $0.urls = ["ftp://example.org/a"] }), ("urls", { $0.urls = ["http://"] }),
    ("destination", { $0.destination = "" }), ("destination", { $0.destination += "/" }),
    ("destination", { $0.destination += "/.." }), ("destination", { $0.destination += "\0" }),
    ("destination", { $0.destination += String(repeating: "n", count: 250) }),
    ("destination", { $0.destination = "/nowhere/in/this/file-system/file" }),
    ("destination", { $0.destination = "/tmp" }), ("destination", { $0.destination += ".larkspur-part" }),
    ("destination", { $0.destination += ".larkspur-download.new" }),
    ("connections", { $0.connections = 0 }), ("connections", { $0.connections = 1_000 }),
    ("smallestPiece", { $0.smallestPiece = 0 }), ("size", { $0.size = -1 }),
    ("lowestRate", { $0.lowestRate = -1 }), ("bytesToLeave", { $0.bytesToLeave = -1 }),
    ("fields", { $0.fields = [Field("Range", "bytes=0-")] }), ("fields", { $0.fields = [Field("A", "b\r\nC: d")] }),
  ]

  @Test(arguments: bad)
  func badPlans(part: String, change: @Sendable (inout DownloadPlan) -> Void) async throws {
    var plan = plan("/range/10")
    change(&plan)
    let error = try #require(await error(of: client.download(plan)))
    #expect(error.code == .invalidPlan && error.reason.hasPrefix(part), "\(error)")
    #expect(server.requests.isEmpty)
    #expect(try names() == [])
  }

  @Test func aDirectoryInPlaceOfTheFile() async throws {
    try FileManager.default.createDirectory(at: directory.file("file"), withIntermediateDirectories: false)
    let error = try #require(await error(of: client.download(plan("/range/10"))))
    #expect(error.code == .invalidPlan && error.reason.contains("a directory"))
    #expect(server.requests.isEmpty)
  }

  @Test func aFullDisk() async throws {
    var plan = plan("/range/\(Self.total)")
    plan.bytesToLeave = .max
    #expect(await error(of: client.download(plan))?.code == .diskFull)
    #expect(file() == nil)
  }
}
