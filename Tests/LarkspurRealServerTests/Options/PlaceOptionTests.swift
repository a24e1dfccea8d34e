import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// The options for where connections lead and begin, for connections before the first request, and for the time of a
/// session, with nginx, which reports what it sees of them.
@Suite(.serialized, .ownThread, .timeLimit(.minutes(1))) struct PlaceOptionTests {
  private let server: SessionServer

  init() throws {
    server = try SessionServer(
      .nginx,
      """
      location = /host { return 200 "$http_host $server_port"; }
      location = /client { return 200 $remote_addr; }
      location = /connections { return 200 $connections_active; }
      location = /moved { return 307 /uploads/moved; }
      location /uploads/ { dav_methods PUT DELETE; client_max_body_size 10m; }
      """)
  }

  private func text(_ url: String, _ change: (URLSessionConfiguration) throws -> Void) async throws -> String {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    try change(configuration)
    return try await URLSession.withSession(configuration: configuration) { session in
      String(decoding: try await session.load(try #require(URL(string: url))).data, as: UTF8.self)
    }
  }

  // MARK: - Overrides

  /// Without the override, the name has no address.
  @Test func otherAddresses() async throws {
    let text = try await text("http://a.invalid:\(server.port)/host") {
      $0.hostOverrides.set("a.invalid", to: .addresses(["127.0.0.1"]))
    }
    #expect(text == "a.invalid:\(server.port) \(server.port)")
  }

  @Test func anotherHostAndPort() async throws {
    let text = try await text("http://a.invalid/host") {
      $0.hostOverrides.set("a.invalid", port: 80, to: .host("localhost", port: server.port))
    }
    #expect(text == "a.invalid \(server.port)")
  }

  /// TLS asks for the URL's name, and verifies that.
  @Test func anotherHostOverTLS() async throws {
    let authorities = try TLSAuthorities.get()
    let secure = try NginxServer(try TLSPlan(authorities, .tls1_3))
    let text = try await text("https://a.test/name") {
      $0.hostOverrides.set("*", to: .host("127.0.0.1", port: secure.tcpPort))
      $0.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(authorities.root.rootCertificateDER)))])
    }
    #expect(text == "a.test")
  }

  // MARK: - The local end

  @Test func aLocalAddress() async throws {
    let url = "http://127.0.0.1:\(server.port)/client"
    #expect(try await text(url) { $0.localEndpoint = try LocalEndpoint(address: "127.0.0.9") } == "127.0.0.9")
    #expect(try await text(url) { _ in } == "127.0.0.1")
  }

  // MARK: - Connections and sessions

  /// nginx accepts connections in their order, so the one that asks is counted last.
  private func countConnections() async throws -> String {
    try await text("http://127.0.0.1:\(server.port)/connections") { _ in }
  }

  @Test func connectionsBeforeTheFirstRequest() async throws {
    #expect(try await countConnections() == "1")
    try await URLSession.withSession(configuration: .ephemeral) { session in
      #expect(try await session.prepareConnections(to: server.url("/small"), count: 3) == 3)
      try await Wait.until("the earlier session's connection is closed") { try await countConnections() == "4" }
      #expect(try await session.load(server.url("/small")).status == 200)
      #expect(try await countConnections() == "4")
    }
  }

  /// The session outlives the scope, and its connections do not.
  @Test func aScopeClosesItsConnections() async throws {
    let session = try await URLSession.withSession(configuration: .ephemeral) { session in
      try await session.prepareConnections(to: server.url("/small"), count: 2)
      return session
    }
    try await Wait.until("only the connection that asks is open") { try await countConnections() == "1" }
    await #expect(throws: URLError.self) { try await session.load(server.url("/small")) }
  }

  // MARK: - Streams

  private final class StreamDelegate: NSObject, URLSessionTaskDelegate {
    let offsets = Mutex<[Int64]>([])
    let ended = Event()
    private let body: Data

    init(_ body: Data) { self.body = body }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
      completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      offsets.withLock { $0.append(offset) }
      completionHandler(InputStream(data: body))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      ended.fire()
    }
  }

  /// A redirection that keeps the body needs a second stream, which Darwin's younger method provides.
  @Test func aNewStreamFromAnOffset() async throws {
    let delegate = StreamDelegate(Data(RealServer.hundredKiB))
    try await URLSession.withSession(configuration: .ephemeral, delegate: delegate) { session in
      var request = URLRequest(url: try server.url("/moved"))
      request.httpMethod = "PUT"
      let task = session.uploadTask(withStreamedRequest: request)
      task.resume()
      await Wait.until("the task ends") { delegate.ended.count > 0 }
      #expect((task.response as? HTTPURLResponse)?.statusCode == 201 && delegate.offsets.withLock { $0 } == [0, 0])
      #expect(try await session.load(server.url("/uploads/moved")).data == Data(RealServer.hundredKiB))
    }
  }
}
