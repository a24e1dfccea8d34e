import Foundation
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Connections to sockets in the file system and in Linux's abstract namespace.
@Suite struct UnixSocketTests {
  /// Returns a path of `bytes` bytes, in a new directory.
  static func path(bytes: Int = 40) throws -> String {
    let directory = "/tmp/larkspur-\(String(UInt64.random(in: 0..<1 << 32), radix: 36))"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    return directory + "/" + String(repeating: "s", count: bytes - directory.utf8.count - 1)
  }

  static func abstractName(bytes: Int = 40) -> String {
    let name = "larkspur-\(UInt64.random(in: 0..<1 << 32))-"
    return "\0" + name + String(repeating: "s", count: bytes - name.utf8.count)
  }

  /// Makes one request to a server at `address`.
  static func get(from address: SocketAddress) async throws -> Outcome {
    let listener = try BlockingListener(address: address)
    #expect(listener.port == 0)
    let server = try SystemThread(name: "unix-server") {
      guard let socket = try? listener.accept(), let head = try? socket.receive(atMost: 4096) else { return }
      let body = head.starts(with: "GET / HTTP/1.1\r\n".utf8) ? "hello" : "what?"
      try? socket.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\(body)".utf8))
    }
    defer { server.join() }
    let loop = try ClientLoop()
    defer { loop.stop() }
    do {
      return try await loop.run {
        let connection = try await Connection.open(to: [address], on: loop)
        #expect(connection.address == address)
        return try await fetch(request(), over: connection)
      }
    } catch {
      listener.shutDown()
      throw error
    }
  }

  @Test(arguments: [40, SocketAddress.unixPathBytesMax]) func inTheFileSystem(bytes: Int) async throws {
    let path = try Self.path(bytes: bytes)
    defer { try? FileManager.default.removeItem(atPath: (path as NSString).deletingLastPathComponent) }
    #expect(path.utf8.count == bytes)
    #expect(try await Self.get(from: .unix(path: path)) == Outcome(status: 200, body: "hello"))
  }

  @Test(arguments: [40, SocketAddress.unixPathBytesMax]) func abstract(bytes: Int) async throws {
    let name = Self.abstractName(bytes: bytes)
    #expect(try await Self.get(from: .unix(path: name)) == Outcome(status: 200, body: "hello"))
  }

  /// A NUL in an abstract name is an ordinary byte, and does not end the name.
  @Test func aNulInAnAbstractName() async throws {
    let name = Self.abstractName()
    let listener = try BlockingListener(address: .unix(path: name))
    let address = SocketAddress.unix(path: name + "\0more")
    #expect(try await Self.failure(of: address) == .connectFailed([.init(address: address, error: .connectionRefused)]))
    listener.shutDown()
  }

  static func failure(of address: SocketAddress) async throws -> TransportError? {
    let loop = try ClientLoop()
    defer { loop.stop() }
    return await loop.run { () async -> TransportError? in
      do throws(TransportError) {
        try await Connection.open(to: [address], on: loop).close()
        return nil
      } catch {
        return error
      }
    }
  }

  @Test(
    arguments: [
      ("/tmp/larkspur-nothing-here/socket", .noSuchFile), ("", .invalidArgument), ("/tmp/a\0b", .invalidArgument),
      ("/" + String(repeating: "s", count: SocketAddress.unixPathBytesMax), .nameTooLong),
      ("\0" + String(repeating: "s", count: SocketAddress.unixPathBytesMax + 1), .nameTooLong),
    ] as [(String, Errno)])
  func failures(path: String, error: Errno) async throws {
    let address = SocketAddress.unix(path: path)
    #expect(try await Self.failure(of: address) == .connectFailed([.init(address: address, error: error)]))
  }

  @Test func nothingForTCPIsSet() throws {
    let world = try ScriptedWorld()
    let running = world.run { try await Connection.open(to: [.unix(path: "/a")], on: world.loop).close() }
    #expect(running.isOver && running.error == nil)
    #expect(world.kernel.peer().localCalls == [])
    #expect(world.leftovers == [])
  }

  @Test func descriptions() {
    #expect("\(SocketAddress.unix(path: "/run/a.socket"))" == "unix:/run/a.socket")
    #expect("\(SocketAddress.unix(path: "\0name"))" == "unix:@name")
    #expect(SocketAddress.unix(path: "/a").with(port: 80) == .unix(path: "/a"))
  }
}
