import Foundation
import LarkspurTestServer
import Testing

@testable import Larkspur

@Suite struct RedirectionTests {
  private func next(
    _ status: Int, _ location: String?, from url: String = "http://a.example/dir/page?query#part",
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> Redirection.Outcome {
    var request = try TaskMachineTests.request(url)
    change(&request)
    let fields = location.map { ["Location": $0] } ?? [:]
    return Redirection.next(after: try TaskMachineTests.response(status, fields, url: url), to: request)
  }

  private func followed(
    _ status: Int, _ location: String?, from url: String = "http://a.example/dir/page?query#part",
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> URLRequest {
    guard case .follow(let request) = try next(status, location, from: url, change) else {
      throw NotFollowed(description: "\(status) \(location ?? "")")
    }
    return request
  }

  struct NotFollowed: Error, CustomStringConvertible {
    var description: String
  }

  @Test(arguments: [300, 304, 309, 399, 200, 201, 404])
  func otherStatusesAreNotFollowed(status: Int) throws {
    guard case .none = try next(status, "/next") else {
      Issue.record("\(status) is followed")
      return
    }
  }

  /// RFC 9110 15.4, and the fetch standard's HTTP-redirect fetch; 305 and 306 as Foundation has them.
  @Test(arguments: [
    ("GET", [301: "GET", 302: "GET", 303: "GET", 305: "GET", 306: "GET", 307: "GET", 308: "GET"]),
    ("HEAD", [301: "HEAD", 302: "HEAD", 303: "HEAD", 305: "HEAD", 306: "HEAD", 307: "HEAD", 308: "HEAD"]),
    ("POST", [301: "GET", 302: "GET", 303: "GET", 305: "POST", 306: "POST", 307: "POST", 308: "POST"]),
    ("PUT", [301: "PUT", 302: "PUT", 303: "GET", 305: "PUT", 306: "PUT", 307: "PUT", 308: "PUT"]),
    ("PATCH", [301: "PATCH", 302: "PATCH", 303: "GET", 305: "PATCH", 306: "PATCH", 307: "PATCH", 308: "PATCH"]),
    ("DELETE", [301: "DELETE", 302: "DELETE", 303: "GET", 305: "DELETE", 306: "DELETE", 307: "DELETE", 308: "DELETE"]),
    (
      "OPTIONS",
      [301: "OPTIONS", 302: "OPTIONS", 303: "GET", 305: "OPTIONS", 306: "OPTIONS", 307: "OPTIONS", 308: "OPTIONS"]
    ),
  ])
  func theMethodAfterAStatus(method: String, expected: [Int: String]) throws {
    for (status, wanted) in expected {
      let next = try followed(status, "/next") {
        $0.httpMethod = method
        $0.httpBody = Data("body".utf8)
        $0.setValue("text/plain", forHTTPHeaderField: "Content-Type")
      }
      #expect(next.httpMethod == wanted, "\(method) after \(status)")
      let keepsBody = wanted == method
      #expect((next.httpBody != nil) == keepsBody, "\(method) after \(status)")
      #expect((next.value(forHTTPHeaderField: "Content-Type") != nil) == keepsBody, "\(method) after \(status)")
    }
  }

  @Test(arguments: [
    ("/next", "http://a.example/next#part"), ("next", "http://a.example/dir/next#part"),
    ("../next", "http://a.example/next#part"), ("./", "http://a.example/dir/#part"),
    ("?other", "http://a.example/dir/page?other#part"), ("//b.example/x", "http://b.example/x#part"),
    ("#new", "http://a.example/dir/page?query#new"), ("/next#own", "http://a.example/next#own"),
    ("https://b.example:8443/x?y", "https://b.example:8443/x?y#part"), ("  /next \t", "http://a.example/next#part"),
    ("/a b", "http://a.example/a%20b#part"), ("/caf\u{e9}", "http://a.example/caf%C3%A9#part"),
    ("\\\\b.example\\x", "http://b.example/x#part"), ("/100%", "http://a.example/100%25#part"),
    ("/%41", "http://a.example/%41#part"), ("HTTP://B.EXAMPLE/", "HTTP://B.EXAMPLE/#part"),
  ])
  func referencesAreResolved(location: String, expected: String) throws {
    #expect(try followed(302, location).url?.absoluteString == expected)
  }

  /// Those of the wire count, whatever they may mean.
  @Test func bytesThatAreNoTextAreEncoded() async throws {
    let server = try TestServer()
    server.enqueue([
      .expectRequest, .send(latin1: "HTTP/1.1 302 Found\r\nLocation: /\u{fc}\r\nContent-Length: 0\r\n\r\n"),
      .expectRequest("GET", "/%FC"), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ])
    let url = try #require(URL(string: server.url("/")))
    let (_, response) = try await URLSession(configuration: .ephemeral).data(from: url)
    #expect(response.url?.absoluteString == server.url("/%FC"))
    #expect(server.failures.isEmpty)
  }

  /// Two that differ say nothing, and two that are equal say it once.
  @Test(arguments: [("/x", "/redirected"), ("/get", "/get")])
  func severalLocations(second: String, end: String) async throws {
    let server = try TestServer()
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 302 Found\r\nLocation: /get\r\nlocation: \(second)\r\nContent-Length: 0\r\n\r\n"),
      .serveRoutes,
    ])
    let url = try #require(URL(string: server.url("/redirected")))
    let (_, response) = try await URLSession(configuration: .ephemeral).data(from: url)
    #expect(response.url?.path == end)
  }

  @Test(arguments: ["", "  ", "\t"])
  func anEmptyLocationSaysNothing(location: String) throws {
    guard case .none = try next(302, location) else {
      Issue.record("it is followed")
      return
    }
  }

  @Test(arguments: ["ftp://b.example/", "file:///etc/passwd", "data:,x", "javascript:alert(1)", "mailto:a@b.example"])
  func noRedirectionLeavesHTTP(location: String) throws {
    guard case .refuse(let code, let words) = try next(302, location) else {
      Issue.record("\(location) is followed")
      return
    }
    #expect(code == .unsupportedURL)
    #expect(words.contains(location.prefix(4)))
  }

  @Test func theMainDocumentMovesWithIt() throws {
    let moved = try followed(302, "/next") { $0.mainDocumentURL = $0.url }
    #expect(moved.mainDocumentURL == moved.url)
    let other = URL(string: "http://document.example/")
    #expect(try followed(302, "/next") { $0.mainDocumentURL = other }.mainDocumentURL == other)
  }

  @Test func whereSomebodyComesFromInSecretIsNotToldInTheOpen() throws {
    let referer: (inout URLRequest) -> Void = { $0.setValue("https://a.example/", forHTTPHeaderField: "Referer") }
    let open = try followed(302, "http://a.example/", from: "https://a.example/", referer)
    #expect(open.value(forHTTPHeaderField: "Referer") == nil)
    let secret = try followed(302, "https://b.example/", from: "https://a.example/", referer)
    #expect(secret.value(forHTTPHeaderField: "Referer") == "https://a.example/")
  }

  @Test func otherSettingsStay() throws {
    let next = try followed(307, "http://b.example/") {
      $0.timeoutInterval = 3
      $0.cachePolicy = .reloadIgnoringLocalCacheData
      $0.httpShouldHandleCookies = false
      $0.setValue("1", forHTTPHeaderField: "X-Own")
    }
    #expect(next.timeoutInterval == 3)
    #expect(next.cachePolicy == .reloadIgnoringLocalCacheData)
    #expect(!next.httpShouldHandleCookies)
    #expect(next.value(forHTTPHeaderField: "x-own") == "1")
  }
}
