import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// A server's response.
struct Reply: Sendable {
  var status: Int
  var minorVersion: Int
  var fields: String
  var body: [UInt8]
  /// Whether the connection could be used again.
  var isIdle: Bool

  func has(_ line: String) -> Bool { fields.lowercased().contains("\r\n" + line.lowercased() + "\r\n") }

  func value(of name: String) -> String? {
    fields.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
      .map { String($0.drop { $0 != ":" }.dropFirst().drop { $0 == " " }) }
  }
}

/// A request to make.
struct Ask: Sendable {
  var method = "GET"
  var target: String
  var fields: [(String, String)] = []
  var body: [UInt8] = []

  init(_ target: String, fields: [(String, String)] = []) {
    self.target = target
    self.fields = fields
  }

  init(_ method: String, _ target: String, body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.body = body
  }

  func send(over connection: Connection) async throws -> Reply {
    var writer = try RequestWriter(method: method, target: target, host: "a.example")
    for (name, value) in fields { try writer.field(name, value) }
    let exchange = try await connection.send(
      writer.finish(body: body.isEmpty ? .none : .length(UInt(body.count))), body: body,
      // A server that never answers fails its own test, and does not stop the others.
      deadline: LinuxKernel.shared.now().advanced(by: .seconds(60)))
    let head = String(decoding: exchange.headBytes, as: UTF8.self)
    let minorVersion = exchange.head.minorVersion
    let status = exchange.status
    let received = try await exchange.collectBody(bytesMax: 1 << 26)
    return Reply(status: status, minorVersion: minorVersion, fields: head, body: received, isIdle: connection.isIdle)
  }
}

/// Requests to real servers over real sockets.
@Suite(.serialized, .ownThread) struct RealServerTests {
  /// Makes the requests over one connection, in order.
  func ask(_ server: RealServer, _ asks: Ask...) async throws -> [Reply] { try await ask(server, asks) }

  func ask(_ server: RealServer, _ asks: [Ask]) async throws -> [Reply] {
    let loop = try ClientLoop()
    defer { loop.stop() }
    let port = server.port
    return try await loop.run {
      let connection = try await Connection.open(to: [.loopback(port: port)], on: loop)
      var replies: [Reply] = []
      for ask in asks { replies.append(try await ask.send(over: connection)) }
      connection.close()
      return replies
    }
  }

  static let small = Array("Hello, world!".utf8)

  @Test(arguments: RealServer.Kind.allCases) func files(kind: RealServer.Kind) async throws {
    let replies = try await ask(
      RealServer(kind), Ask("/small"), Ask("HEAD", "/100k"), Ask("/100k"), Ask("/nothing"), Ask("/directory"),
      Ask("/empty".apache(kind, "/cgi/empty")), Ask("/small"))
    #expect(replies.map(\.status) == [200, 200, 200, 404, 301, 204, 200])
    #expect(replies.allSatisfy { $0.isIdle && $0.minorVersion == 1 })
    #expect(replies[0].body == Self.small)
    #expect(replies[1].body.isEmpty)
    #expect(replies[1].has("Content-Length: 102400"))
    #expect(replies[2].body == RealServer.hundredKiB)
    #expect(replies[4].value(of: "Location")?.hasSuffix("/directory/") == true)
    #expect(replies[5].body.isEmpty)
    #expect(replies[6].body == Self.small)
  }

  @Test(arguments: RealServer.Kind.allCases) func manyRequestsOnOneConnection(kind: RealServer.Kind) async throws {
    let replies = try await ask(RealServer(kind), Array(repeating: Ask("/small"), count: 500))
    #expect(replies.count == 500)
    #expect(replies.allSatisfy { $0.status == 200 && $0.body == Self.small && $0.isIdle })
  }

  @Test(arguments: RealServer.Kind.allCases) func conditionsAndRanges(kind: RealServer.Kind) async throws {
    let server = try RealServer(kind)
    let tag = try #require(try await ask(server, Ask("/100k"))[0].value(of: "ETag"))
    let replies = try await ask(
      server, Ask("/100k", fields: [("If-None-Match", tag)]), Ask("/100k", fields: [("Range", "bytes=1000-1999")]),
      Ask("/100k", fields: [("Range", "bytes=200000-")]), Ask("/small"))
    #expect(replies.map(\.status) == [304, 206, 416, 200])
    #expect(replies.allSatisfy { $0.isIdle })
    #expect(replies[0].body.isEmpty)
    #expect(replies[1].body == Array(RealServer.hundredKiB[1000..<2000]))
    #expect(replies[1].has("Content-Range: bytes 1000-1999/102400"))
    #expect(replies[3].body == Self.small)
  }

  @Test(arguments: RealServer.Kind.allCases) func chunked(kind: RealServer.Kind) async throws {
    let target = "/page.shtml".apache(kind, "/cgi/long")
    let replies = try await ask(RealServer(kind), Ask(target), Ask("HEAD", target), Ask("/small"))
    #expect(replies[0].status == 200)
    #expect(replies[0].has("Transfer-Encoding: chunked"))
    #expect(
      replies[0].body
        == (kind == .nginx ? Array("included".utf8) : Array(repeating: UInt8(ascii: "x"), count: 200_000)))
    #expect(replies[1].body.isEmpty)
    #expect(replies[2].body == Self.small)
  }

  @Test(arguments: RealServer.Kind.allCases) func aLargeDownload(kind: RealServer.Kind) async throws {
    let server = try RealServer(kind)
    let port = server.port
    let loop = try ClientLoop()
    defer { loop.stop() }
    let (count, checksum) = try await loop.run {
      let connection = try await Connection.open(to: [.loopback(port: port)], on: loop)
      let exchange = try await connection.send(request("GET", "/large"))
      var count = 0
      var checksum = TestServer.Checksum()
      while try await exchange.receiveData({ piece in
        count += piece.count
        checksum.update(piece)
      }) {}
      return (count, checksum)
    }
    #expect(count == RealServer.largeCount)
    #expect(checksum == TestServer.contentChecksum(count: RealServer.largeCount))
  }

  @Test func nginxTakesBodies() async throws {
    let body = TestServer.content(count: 3_000_000)
    let replies = try await ask(
      RealServer(.nginx), Ask("PUT", "/uploads/new", body: body), Ask("/uploads/new"),
      Ask("POST", "/small", body: Self.small), Ask("DELETE", "/uploads/new"), Ask("/uploads/new"))
    #expect(replies.map(\.status) == [201, 200, 405, 204, 404])
    #expect(replies[1].body == body)
  }

  @Test func apacheTakesBodies() async throws {
    let body = TestServer.content(count: 3_000_000)
    let replies = try await ask(
      RealServer(.apache), Ask("POST", "/cgi/echo", body: Self.small), Ask("PUT", "/cgi/echo", body: body),
      Ask("PUT", "/small", body: Self.small), Ask("/small"))
    #expect(replies.map(\.status) == [200, 200, 405, 200])
    #expect(replies[0].body == Self.small)
    #expect(replies[1].body == body)
  }

  /// The response arrives if the server refuses a body before it has read it, whatever happens to the connection.
  @Test func nginxRefusesABody() async throws {
    let body = TestServer.content(count: 32 << 20)
    let replies = try await ask(RealServer(.nginx), Ask("PUT", "/uploads/new", body: body))
    #expect(replies[0].status == 413)
    #expect(!replies[0].isIdle)
  }

  @Test func nginxEndsAConnectionAfterThreeRequests() async throws {
    let server = try RealServer(.nginx)
    let replies = try await ask(server, Array(repeating: Ask("/three"), count: 3))
    #expect(replies.map(\.status) == [200, 200, 200])
    #expect(replies.map(\.isIdle) == [true, true, false])
    await #expect(throws: TransportError.connectionClosed) {
      try await ask(server, Array(repeating: Ask("/three"), count: 4))
    }
  }

  @Test(arguments: RealServer.Kind.allCases) func connectionClose(kind: RealServer.Kind) async throws {
    let replies = try await ask(RealServer(kind), Ask("/small"), Ask("/100k", fields: [("Connection", "close")]))
    #expect(replies.map(\.status) == [200, 200])
    #expect(replies[1].has("Connection: close"))
    #expect(replies.map(\.isIdle) == [true, false])
    #expect(replies[1].body == RealServer.hundredKiB)
  }

  /// HTTP/1.0 responses: with a length, and with a body that the end of the connection ends.
  @Test(arguments: ["/small", "/cgi/long"]) func apacheAsOfOld(target: String) async throws {
    let replies = try await ask(RealServer(.apache), Ask(target, fields: [("User-Agent", "old")]))
    #expect(replies[0].status == 200)
    #expect(replies[0].minorVersion == 0)
    #expect(!replies[0].isIdle)
    #expect(replies[0].value(of: "Transfer-Encoding") == nil)
    #expect(replies[0].body.count == (target == "/small" ? Self.small.count : 200_000))
  }

  /// Sixteen connections on one loop at once, each with its own responses.
  @Test(arguments: RealServer.Kind.allCases) func manyConnections(kind: RealServer.Kind) async throws {
    let server = try RealServer(kind)
    let port = server.port
    let loop = try ClientLoop()
    defer { loop.stop() }
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<16 {
        group.addTask {
          try await loop.run {
            let connection = try await Connection.open(to: [.loopback(port: port)], on: loop)
            var count = 0
            for round in 0..<20 {
              let isLong = (number + round) % 2 == 0
              let reply = try await Ask(isLong ? "/100k" : "/small").send(over: connection)
              if reply.body == (isLong ? RealServer.hundredKiB : Self.small) { count += 1 }
            }
            connection.close()
            return count
          }
        }
      }
      return try await group.reduce(into: [Int]()) { $0.append($1) }
    }
    #expect(counts == Array(repeating: 20, count: 16))
  }
}

extension String {
  /// Returns this text for nginx, and `target` for Apache.
  func apache(_ kind: RealServer.Kind, _ target: String) -> String { kind == .apache ? target : self }
}
