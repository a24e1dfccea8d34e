import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A session and nginx.
@Suite(.serialized, .ownThread) struct NginxSessionTests {
  private let session = URLSession(configuration: .ephemeral)

  @Test func compressed() async throws {
    let server = try SessionServer(.nginx, "gzip on; gzip_types *; gzip_min_length 1;")
    let (status, data, response) = try await session.load(server.url("/text.txt"))
    #expect(status == 200)
    #expect(data == Data(SessionServer.text.utf8))
    #expect(response.expectedContentLength == -1)
    let (bytes, _) = try await session.bytes(from: server.url("/text.txt"))
    var count = 0
    for try await byte in bytes where byte == UInt8(ascii: "\n") { count += 1 }
    #expect(count == 4000)
    let (file, _) = try await session.download(from: server.url("/text.txt"))
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == data)
  }

  @Test func ranges() async throws {
    let server = try SessionServer(.nginx, "")
    var request = URLRequest(url: try server.url("/100k"))
    request.setValue("bytes=-100", forHTTPHeaderField: "Range")
    let part = try await session.load(request)
    #expect(part.status == 206)
    #expect(part.data == Data(RealServer.hundredKiB.suffix(100)))
    request.setValue("bytes=102400-", forHTTPHeaderField: "Range")
    #expect(try await session.load(request).status == 416)
  }

  /// Connections that end after three requests cause no failure.
  @Test func connectionsThatEnd() async throws {
    let server = try SessionServer(.nginx, "keepalive_requests 3;")
    for _ in 0..<30 { #expect(try await session.load(server.url("/small")).status == 200) }
    let url = try server.url("/100k")
    let session = session
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<40 { group.addTask { try await session.load(url).data.count } }
      return try await group.reduce(into: [Int]()) { $0.append($1) }
    }
    #expect(counts == Array(repeating: 102_400, count: 40))
  }

  /// Connections that the server closes after each response cause no failure.
  @Test func connectionsThatAreNotKept() async throws {
    let server = try SessionServer(.nginx, "keepalive_timeout 0;")
    for _ in 0..<10 { #expect(try await session.load(server.url("/small")).status == 200) }
  }

  private static let redirections = """
    location = /moved { return 301 /small; }
    location = /absolute { return 302 http://$http_host/moved?x=1#part; }
    location = /relative/one { return 303 ../small; }
    location = /kept { return 307 /uploads/kept; }
    location = /forever { return 308 /uploads/forever; }
    location = /loop { return 302 /loop; }
    location /uploads/ { dav_methods PUT DELETE; client_max_body_size 100m; }
    location /directory { return 301 /directory/; }
    """

  @Test func redirections() async throws {
    let server = try SessionServer(.nginx, Self.redirections)
    for path in ["/moved", "/absolute", "/relative/one"] {
      let (status, data, response) = try await session.load(server.url(path))
      #expect(status == 200, "\(path)")
      #expect(data == Data("Hello, world!".utf8))
      #expect(response.url?.path == "/small")
    }
    let error = await #expect(throws: URLError.self) { try await session.load(server.url("/loop")) }
    #expect(error?.code == .httpTooManyRedirects)
  }

  @Test func bodiesThatAreSentAgain() async throws {
    let server = try SessionServer(.nginx, Self.redirections)
    let body = Data(TestServer.content(count: 1_000_000))
    for name in ["kept", "forever"] {
      var request = URLRequest(url: try server.url("/" + name))
      request.httpMethod = "PUT"
      let (_, response) = try await session.upload(for: request, from: body)
      #expect((response as? HTTPURLResponse)?.statusCode == 201)
      #expect(try await session.load(server.url("/uploads/" + name)).data == body)
    }
  }

  @Test func chunkedUploads() async throws {
    let server = try SessionServer(.nginx, Self.redirections)
    let body = Data(TestServer.content(count: 3_000_000))
    var request = URLRequest(url: try server.url("/uploads/stream"))
    request.httpMethod = "PUT"
    request.httpBodyStream = InputStream(data: body)
    #expect(try await session.load(request).status == 201)
    #expect(try await session.load(server.url("/uploads/stream")).data == body)
  }

  // MARK: - Memory

  /// A body of 256 MiB through a delegate that drops its pieces does not increase the memory. In a process of its own.
  @Test func memoryOfALongTransfer() async throws {
    let server = try SessionServer(.nginx, "")
    try server.makeFile("long", count: 256 << 20)
    let figures = try SiblingProcess("session", ["discard", server.url("/long").absoluteString]).numbers()
    print("256 MiB through a delegate: \(figures[1]) KiB more resident")
    try #require(figures.count == 2)
    #expect(figures[0] == 256 << 20)
    #expect(figures[1] < 8 * 1024)
  }

  /// `data(from:)` needs the memory of the body, and little more.
  @Test func memoryOfALargeBody() async throws {
    let server = try SessionServer(.nginx, "")
    try server.makeFile("large", count: 128 << 20)
    let figures = try SiblingProcess("session", ["collect", server.url("/large").absoluteString]).numbers()
    print("128 MiB in one piece: \(figures[1]) KiB more resident")
    try #require(figures.count == 2)
    #expect(figures[0] == 128 << 20)
    #expect(Double(figures[1]) <= 1.1 * Double(128 << 10))
  }

  // MARK: - TLS

  @Test func clientCertificate() async throws {
    let authorities = try TLSAuthorities.get()
    var plan = try TLSPlan(authorities, .tls1_3)
    plan.clients = .required
    try plan.presentLeaf { $0 = .init(names: ["localhost"], ipAddresses: []) }
    let server = try NginxServer(plan)
    let url = try #require(URL(string: "https://localhost:\(server.tcpPort)/small"))
    let issued = try authorities.clients.issue(.init(names: [], ipAddresses: []))
    let identity = try ClientIdentity(
      certificates: Data(issued.certificateDER), key: Data(issued.privateKeyDER))
    let recorder = SessionRecorder { challenge in
      let space = challenge.protectionSpace
      if let trust = space.serverTrust { return URLCredential(trust: trust) }
      guard space.authenticationMethod == NSURLAuthenticationMethodClientCertificate else { return nil }
      return URLCredential(identity: identity, certificates: nil, persistence: .forSession)
    }
    let loaded = try await session.load(url, delegate: recorder)
    #expect(loaded.status == 200)
    #expect(loaded.data == Data("Hello, world!".utf8))
    #expect(
      recorder.challenges.withLock { Set($0.map(\.method)) } == [
        NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
      ])
    // nginx answers a client without a certificate with 400.
    let anonymous = SessionRecorder { $0.protectionSpace.serverTrust.map { URLCredential(trust: $0) } }
    #expect(try await URLSession(configuration: .ephemeral).load(url, delegate: anonymous).status == 400)

    // Default handling uses the storage's default identity, and so does a load without a delegate.
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: "localhost", port: Int(server.tcpPort), protocol: NSURLProtectionSpaceHTTPS, realm: nil,
      authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    configuration.urlCredentialStorage?.setDefaultCredential(
      URLCredential(identity: identity, certificates: nil, persistence: .forSession), for: space)
    let stored = URLSession(configuration: configuration)
    #expect(try await stored.load(url, delegate: anonymous).status == 200)
    configuration.tlsTrustSettings.roots = .only([
      try #require(TLSCertificate(Data(authorities.root.rootCertificateDER)))
    ])
    #expect(try await URLSession(configuration: configuration).load(url).status == 200)
  }
}
