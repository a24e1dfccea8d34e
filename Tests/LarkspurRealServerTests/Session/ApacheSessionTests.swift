import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A session and Apache httpd.
@Suite(.serialized, .ownThread) struct ApacheSessionTests {
  private let session = URLSession(configuration: .ephemeral)

  private static let secrets = """
    <Location /secret/basic>
      AuthType Basic
      AuthName larkspur
      AuthUserFile FOLDER/users
      Require valid-user
    </Location>
    <Location /secret/digest>
      AuthType Digest
      AuthName larkspur
      AuthDigestProvider file
      AuthUserFile FOLDER/digest-users
      Require valid-user
    </Location>
    Alias /secret/basic FOLDER/www
    ScriptAlias /secret/digest/echo FOLDER/cgi/echo
    Alias /secret/digest FOLDER/www
    """

  @Test func basic() async throws {
    let server = try SessionServer(.apache, Self.secrets)
    #expect(try await session.load(server.url("/secret/basic/small")).status == 401)
    let recorder = SessionRecorder("wrong", "secret")
    let (status, data, _) = try await session.load(server.url("/secret/basic/small"), delegate: recorder)
    #expect(status == 200)
    #expect(data == Data("Hello, world!".utf8))
    let method = NSURLAuthenticationMethodHTTPBasic
    #expect(
      recorder.challenges.withLock { $0 } == [
        .init(method: method, realm: "larkspur", isProxy: false, failures: 0),
        .init(method: method, realm: "larkspur", isProxy: false, failures: 1),
      ])
    // The credential is known now, so there is no further challenge.
    #expect(try await session.load(server.url("/secret/basic/100k"), delegate: recorder).data.count == 102_400)
    #expect(recorder.challenges.withLock { $0.count } == 2)
  }

  /// The storage's credential is used without a question to the delegate.
  @Test func theStoragesCredential() async throws {
    let server = try SessionServer(.apache, Self.secrets)
    let configuration = URLSessionConfiguration.ephemeral
    for method in [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest] {
      configuration.urlCredentialStorage?.setDefaultCredential(
        URLCredential(user: "me", password: "secret", persistence: .forSession),
        for: URLProtectionSpace(
          host: "127.0.0.1", port: Int(server.port), protocol: "http", realm: "larkspur", authenticationMethod: method))
    }
    let session = URLSession(configuration: configuration)
    #expect(try await session.load(server.url("/secret/basic/small")).status == 200)
    #expect(try await session.load(server.url("/secret/digest/small")).status == 200)
  }

  /// Digest with MD5, which is what `mod_auth_digest` supports.
  @Test func digest() async throws {
    let server = try SessionServer(.apache, Self.secrets)
    let recorder = SessionRecorder("wrong", "secret")
    #expect(try await session.load(server.url("/secret/digest/small"), delegate: recorder).status == 200)
    #expect(
      recorder.challenges.withLock { $0.map(\.method) }
        == Array(repeating: NSURLAuthenticationMethodHTTPDigest, count: 2))
    for _ in 0..<10 {
      #expect(try await session.load(server.url("/secret/digest/100k?a=b&c"), delegate: recorder).status == 200)
    }
    var request = URLRequest(url: try server.url("/secret/digest/echo"))
    request.httpMethod = "POST"
    request.httpBody = Data(SessionServer.text.utf8)
    #expect(try await session.load(request, delegate: recorder).data == request.httpBody)
    #expect(recorder.challenges.withLock { $0.count } == 2)
    let stranger = URLSession(configuration: .ephemeral)
    let refused = SessionRecorder("wrong")
    #expect(try await stranger.load(server.url("/secret/digest/small"), delegate: refused).status == 401)
  }

  @Test func compressed() async throws {
    let server = try SessionServer(.apache, "SetOutputFilter DEFLATE")
    let (status, data, response) = try await session.load(server.url("/text.txt"))
    #expect(status == 200)
    #expect(data == Data(SessionServer.text.utf8))
    #expect(response.value(forHTTPHeaderField: "Vary")?.contains("Accept-Encoding") == true)
    // A request with its own Accept-Encoding gets the body undecoded.
    var request = URLRequest(url: try server.url("/text.txt"))
    request.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
    let raw = try await session.load(request)
    #expect(raw.data.prefix(2) == Data([0x1f, 0x8b]))
    #expect(raw.data.count < data.count / 10)
    #expect(raw.response.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
  }

  @Test func ranges() async throws {
    let server = try SessionServer(.apache, "")
    let content = Data(RealServer.hundredKiB)
    let whole = try await session.load(server.url("/100k"))
    let tag = try #require(whole.response.value(forHTTPHeaderField: "ETag"))
    var request = URLRequest(url: try server.url("/100k"))
    request.setValue("bytes=1000-1999", forHTTPHeaderField: "Range")
    request.setValue(tag, forHTTPHeaderField: "If-Range")
    let part = try await session.load(request)
    #expect(part.status == 206)
    #expect(part.data == content[1000..<2000])
    #expect(part.response.value(forHTTPHeaderField: "Content-Range") == "bytes 1000-1999/102400")
    request.setValue("\"another\"", forHTTPHeaderField: "If-Range")
    let instead = try await session.load(request)
    #expect(instead.status == 200)
    #expect(instead.data == content)
    request.setValue(nil, forHTTPHeaderField: "If-Range")
    request.setValue("bytes=200000-", forHTTPHeaderField: "Range")
    #expect(try await session.load(request).status == 416)
    request.setValue("bytes=0-9,100-109", forHTTPHeaderField: "Range")
    let parts = try await session.load(request)
    #expect(parts.status == 206)
    #expect(parts.response.mimeType == "multipart/byteranges")
    #expect(parts.data.firstRange(of: content[100..<110]) != nil)
  }

  @Test func continues() async throws {
    let server = try SessionServer(.apache, "<Location /small>\nRequire all denied\n</Location>")
    var request = URLRequest(url: try server.url("/cgi/echo"))
    request.httpMethod = "POST"
    request.setValue("100-continue", forHTTPHeaderField: "Expect")
    let body = Data(TestServer.content(count: 300_000))
    let recorder = SessionRecorder()
    let (data, response) = try await session.upload(for: request, from: body, delegate: recorder)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(data == body)
    #expect(recorder.informational.withLock { $0 } == [100])
    // The server refuses before the body is sent.
    request.url = try server.url("/small")
    request.httpMethod = "PUT"
    let (_, refusal) = try await session.upload(for: request, from: body, delegate: recorder)
    #expect((refusal as? HTTPURLResponse)?.statusCode == 403)
    #expect(recorder.informational.withLock { $0.count } == 1)
  }
}
