import LarkspurTestServer
import Synchronization

private final class Counter: Sendable {
  private let count = Mutex(0)

  func next() -> Int {
    count.withLock {
      $0 += 1
      return $0
    }
  }
}

/// Servers with the routes and scripts of the scenarios, besides the ordinary routes.
enum UserReportServer {
  static func make(for scenario: String) throws -> TestServer {
    let server = try TestServer()
    server.route("GET", "/loop") { _ in .redirect(to: "/loop") }
    server.route("PUT", "/count") { request in .text("\(request.bodyCount)") }
    server.route("GET", "/hawk") { _ in refusal("Hawk ts=\"1\"") }
    server.route("GET", "/basic") { request in
      request.fields["Authorization"] == "Basic dXNlcjpwYXNz" ? .text("come in") : refusal("Basic realm=\"here\"")
    }
    // Other tests check that the digest itself is right.
    server.route("GET", "/digest") { request in
      let answer = request.fields["Authorization"] ?? ""
      return answer.hasPrefix("Digest ") && answer.contains("username=\"user\"")
        ? .text("come in") : refusal("Digest realm=\"here\", nonce=\"abc\", qop=\"auth\", algorithm=SHA-256")
    }
    server.route("GET", "/set-cookies") { _ in
      var response = TestServer.Response.text("")
      for cookie in ["here=1; Path=/", "elsewhere=1; Path=/elsewhere", "secret=1; Path=/; Secure"] {
        response.fields.add("Set-Cookie", cookie)
      }
      return response
    }
    server.route("GET", "/cacheable") { request in
      var response = TestServer.Response.text(request.target)
      response.fields["Cache-Control"] = "max-age=1000"
      return response
    }
    let loads = Counter()
    server.route("GET", "/counted") { _ in
      var response = TestServer.Response.text("\(loads.next())")
      response.fields["Cache-Control"] = "max-age=1000"
      return response
    }
    server.route("GET", "/moved-behind-basic") { request in
      request.fields["Authorization"] == "Basic dXNlcjpwYXNz"
        ? .redirect(to: "/anything/there") : refusal("Basic realm=\"here\"")
    }
    addBreaking(to: server)
    server.defaultScript = scripts[scenario]
    return server
  }

  private static func refusal(_ challenge: String) -> TestServer.Response {
    var response = TestServer.Response.text("who are you?", status: 401)
    response.fields["WWW-Authenticate"] = challenge
    return response
  }

  /// The server's actions on each connection, for scenarios without a regular response.
  private static let scripts: [String: TestServer.Script] = [
    "post-without-a-response": [
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .expectRequest, .close,
    ],
    "cut-head": [.expectRequest, .send("HTTP/1.1 200 OK\r\n"), .close],
    "longest-length": [
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx"), .close,
    ],
  ]

  /// Adds a route that breaks off in the middle of the body, and that sends the rest to a request for that range.
  private static func addBreaking(to server: TestServer) {
    server.route("GET", "/breaks-once") { request in
      var response = TestServer.Response.content(count: 300_000)
      response.fields["ETag"] = "\"one\""
      if request.fields["Range"] == "bytes=100000-", request.fields["If-Range"] == "\"one\"" {
        response.status = 206
        response.body = .content(100_000..<300_000)
        response.fields["Content-Range"] = "bytes 100000-299999/300000"
      } else {
        response.body = .content(0..<100_000)
        response.fields["Content-Length"] = "300000"
        response.closesConnection = true
      }
      return response
    }
  }
}
