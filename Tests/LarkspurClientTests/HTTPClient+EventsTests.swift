import LarkspurClient
import LarkspurTestServer
import Synchronization
import Testing

/// The observer of a client's requests.
@Suite struct ClientEventTests {
  private final class Events: HTTPEventObserver {
    let bodyBytesMax = 4
    private let seen = Mutex<[String]>([])

    var all: [String] { seen.withLock { $0 } }

    func observe(_ event: HTTPEvent) {
      let word: String? =
        switch event.kind {
        case .started(let method, _): "started \(method)"
        case .request(let method, _): "request \(method)"
        case .ended(let error): error == nil ? "ended" : "failed"
        case .connection(.requestStarted(_, _, let isReused)): isReused ? "reused" : "new"
        case .connection(.requestContent(let bytes)): "sends \(String(decoding: bytes, as: UTF8.self))"
        case .connection(.responseContent(let bytes)): "gets \(String(decoding: bytes, as: UTF8.self))"
        case .connection(.completed): "completed"
        case .connection, .cache, .retry: nil
        }
      if let word { seen.withLock { $0.append("\(event.task ?? 0).\(event.connection ?? 0) \(word)") } }
    }
  }

  @Test func requests() async throws {
    let server = try TestServer()
    server.route("POST", "/") { _ in .text("answer") }
    let events = Events()
    var options = HTTPClient.Options()
    options.proxy = .none
    options.eventObserver = events
    let client = HTTPClient(options)
    try await client.post(server.url("/"), .text("question"), contentType: "text/plain") { response in
      _ = try await response.body.collect(upTo: 100)
    }
    // The length of this body is not known beforehand.
    try await client.post(server.url("/"), .produced { try await $0.write(Array("question".utf8)) }, contentType: "a/b")
    { _ in
    }
    await #expect(throws: HTTPClientError.self) { try await client.get("http://127.0.0.1:1/") { _ in } }
    #expect(
      events.all == [
        "1.0 started POST", "1.0 request POST", "1.1 new", "1.1 sends ques", "1.1 gets answ", "1.1 completed",
        "1.0 ended",
        "2.0 started POST", "2.0 request POST", "2.1 reused", "2.1 sends ques", "2.1 gets answ", "2.1 completed",
        "2.0 ended", "3.0 started GET", "3.0 request GET", "3.0 failed",
      ])
  }

  private final class Errors: HTTPEventObserver {
    let texts = Mutex<[String]>([])

    func observe(_ event: HTTPEvent) {
      if case .ended(let error?) = event.redacted.kind { texts.withLock { $0.append(error) } }
    }
  }

  /// The description of an error names the URL, whose parameters may be secrets.
  @Test func errorsNameNoURL() async throws {
    let errors = Errors()
    var options = HTTPClient.Options()
    options.proxy = .none
    options.eventObserver = errors
    let client = HTTPClient(options)
    await #expect(throws: HTTPClientError.self) {
      try await client.get("http://127.0.0.1:1/?access_token=pearl") { _ in }
    }
    let texts = errors.texts.withLock { $0 }
    #expect(texts.count == 1 && !texts[0].contains("pearl"))
  }
}
