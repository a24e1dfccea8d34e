import Foundation
import LarkspurTestServer
import Testing

@testable import Larkspur

@Suite struct RedirectionTests {
  private func next(
    _ status: Int, _ location: String?, from url: String = "http://a.example/dir/page?query#part",
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> URLRequest? {
    var request = try TaskMachineTests.request(url)
    change(&request)
    let fields = location.map { ["Location": $0] } ?? [:]
    return Redirection.next(after: try TaskMachineTests.response(status, fields, url: url), to: request)
  }

  private func followed(
    _ status: Int, _ location: String?, from url: String = "http://a.example/dir/page?query#part",
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> URLRequest {
    guard let request = try next(status, location, from: url, change) else {
      throw NotFollowed(description: "\(status) \(location ?? "")")
    }
    return request
  }

  struct NotFollowed: Error, CustomStringConvertible {
    var description: String
  }

  @Test(arguments: [300, 304, 309, 399, 200, 201, 404])
  func otherStatusesAreNotFollowed(status: Int) throws {
    #expect(try next(status, "/next") == nil, "\(status) is followed")
  }

  /// RFC 9110 15.4 and the "HTTP-redirect fetch" of the Fetch standard. Statuses 305 and 306 behave as in Foundation.
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
    ("/search?filter[name]=J%C3%BCrgen", "http://a.example/search?filter%5Bname%5D=J%C3%BCrgen#part"),
    ("/a%20b[1]", "http://a.example/a%20b%5B1%5D#part"),
    ("?a[]=%5B%5d", "http://a.example/dir/page?a%5B%5D=%5B%5d#part"),
    ("#%5B[", "http://a.example/dir/page?query#%5B%5B"), ("//[::1]:81/[%20", "http://[::1]:81/%5B%20#part"),
    ("//[fe80::1%lo]/%20^", "http://[fe80::1%25lo]/%20%5E#part"), ("/100%/a%20b", "http://a.example/100%25/a%20b#part"),
    ("//us[er:p%40w@b.example/%20|", "http://us%5Ber:p%40w@b.example/%20%7C#part"),
    ("//b\u{fc}cher.example/[%20", "http://xn--bcher-kva.example/%5B%20#part"),
    ("//b\u{fc}ch%C3%A4.example/", "http://b%C3%BCch%C3%A4.example/#part"), ("//\u{fffd}/", "http://%EF%BF%BD/#part"),
    ("/caf\u{e9}%E9", "http://a.example/caf%C3%A9%E9#part"),
    ("/{a}`\"<b>%7b", "http://a.example/%7Ba%7D%60%22%3Cb%3E%7b#part"),
  ])
  func referencesAreResolved(location: String, expected: String) throws {
    #expect(try followed(302, location).url?.absoluteString == expected)
  }

  /// Bytes of a `Location` that are not ASCII are percent-encoded as they came over the wire, whatever text they mean.
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

  /// Two different `Location` fields are no redirection; two equal ones are a redirection.
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
    #expect(try next(302, location) == nil, "it is followed")
  }

  /// A redirection that cannot be loaded is still proposed to the delegate and to the program's protocols.
  @Test(arguments: [
    ("ftp://b.example/", "ftp://b.example/#part"), ("file:///etc/passwd", "file:///etc/passwd#part"),
    ("data:,x", "data:,x#part"), ("javascript:alert(1)", "javascript:alert(1)#part"),
    ("mailto:a@b.example#", "mailto:a@b.example#"), ("http://[oops/", "http://%5Boops/#part"),
    ("http://b.example:-1/#", "http://b.example%3A-1/#"),
  ])
  func placesThatCannotBeLoadedAreProposed(location: String, expected: String) throws {
    let next = try followed(302, location) {
      $0.setValue("Basic x", forHTTPHeaderField: "Authorization")
      $0.setValue("https://a.example/", forHTTPHeaderField: "Referer")
    }
    #expect(next.url?.absoluteString == expected)
    #expect(next.value(forHTTPHeaderField: "Authorization") == nil)
  }

  /// A server that answers `%5B` with `[` causes a circle of equal URLs, not of growing ones.
  @Test func aCircleDoesNotGrow() async throws {
    let server = try TestServer()
    server.enqueue([
      .repeat(
        21,
        [
          .expectRequest("GET", "/a%20%5B1%5D?%5B"),
          .send("HTTP/1.1 302 Found\r\nLocation: /a%20[1]?[\r\nContent-Length: 0\r\n\r\n"),
        ])
    ])
    let url = try #require(URL(string: server.url("/a%20%5B1%5D?%5B")))
    let error = await #expect(throws: URLError.self) {
      _ = try await URLSession(configuration: .ephemeral).data(from: url)
    }
    #expect(error?.code == .httpTooManyRedirects && server.failures.isEmpty)
  }

  @Test func theMainDocumentMovesWithIt() throws {
    let moved = try followed(302, "/next") { $0.mainDocumentURL = $0.url }
    #expect(moved.mainDocumentURL == moved.url)
    let other = URL(string: "http://document.example/")
    #expect(try followed(302, "/next") { $0.mainDocumentURL = other }.mainDocumentURL == other)
  }

  @Test func secureReferersAreNotSentToInsecureServers() throws {
    let referer: (inout URLRequest) -> Void = { $0.setValue("https://a.example/", forHTTPHeaderField: "Referer") }
    let open = try followed(302, "http://a.example/", from: "https://a.example/", referer)
    #expect(open.value(forHTTPHeaderField: "Referer") == nil)
    let unknown = try followed(302, "mock:a", from: "https://a.example/", referer)
    #expect(unknown.value(forHTTPHeaderField: "Referer") == nil)
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
