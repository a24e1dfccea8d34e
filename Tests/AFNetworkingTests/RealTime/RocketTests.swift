import AFNetworking
import Dispatch
import LarkspurTestServer
import Testing

/// Tests subscriptions to the changes of a resource, by managers and by clients of their own.
@Suite(.timeLimit(.minutes(1))) struct RocketTests {
  typealias Fixture = EventFixture

  /// A document that changes by patches. Blocks use it, one at a time.
  private final class Library: @unchecked Sendable {
    var document: Any?
    var source: AFEventSource?

    func apply(_ operations: [AFJSONPatchOperation]?) {
      guard let operations, let document else { return }
      self.document = try? AFJSONPatchOperation.apply(operations, to: document)
    }

    var resources: String {
      ((document as? [String: Any])?["resources"] as? [String])?.joined(separator: ", ") ?? "nothing"
    }
  }

  private static func list(_ names: TestServer.JSON) -> TestServer.Step {
    var response = TestServer.Response.json(["resources": names])
    response.closesConnection = true
    return .respond(response)
  }

  /// The program of the articles about AFNetworking 2: `GET`, then `SUBSCRIBE`, and the operations applied.
  @Test func theProgramOfTheArticles() async throws {
    let fixture = try Fixture(
      [.expectRequest("GET", "/resources"), Self.list(["dawn"]), .close],
      [
        .expectRequest("SUBSCRIBE", "/resources"), Fixture.head,
        Fixture.patch("1", #"{"op": "add", "path": "/resources/-", "value": "noon"}"#), Fixture.lastChunk, .close,
      ],
      [
        .expectRequest("SUBSCRIBE", "/resources"), Fixture.head,
        Fixture.patch("2", #"{"op": "remove", "path": "/resources/0"}"#), .expectClose,
      ])
    let manager = fixture.manager()
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let (library, journal) = (Library(), fixture.journal)

    manager.get(
      "/resources", parameters: nil,
      success: { task, responseObject in
        library.document = responseObject
        library.source = try? manager.subscribe("/resources") { operations, error in
          library.apply(operations)
          let place = MainQueue.isCurrent ? "main" : "other"
          journal.note("\(library.resources) \(error.map { "\($0)" } ?? "-") \(place)")
        }
        library.source?.retryInterval = 0
      }, failure: { task, error in journal.note("failure \(error)") })

    await journal.wait { $0.count == 2 }
    #expect(journal.lines == ["dawn, noon - main", "noon - main"])
    #expect(fixture.server.requests.map(\.method) == ["GET", "SUBSCRIBE", "SUBSCRIBE"])
    #expect(fixture.values("Last-Event-ID") == [nil, nil, "1"])
    #expect(Array(fixture.values("Accept").dropFirst()) == ["text/event-stream", "text/event-stream"])
    #expect(fixture.values("Content-Type") == [nil, nil, nil])
    #expect(library.source?.lastResponse?.statusCode == 200 && library.source?.isOpen == true)
    try library.source?.close()
    #expect(try await fixture.failures(afterConnections: 3) == [])
  }

  @Test func whatTheBlockGets() async throws {
    let ready = TestServer.Signal()
    let fixture = try Fixture(
      [
        .expectRequest, Fixture.head, Fixture.patch("1", #"{"op": "fly", "path": ""}"#),
        Fixture.chunk("event: patch\ndata: no JSON\n\n"), Fixture.chunk("event: other\ndata: []\n\n"),
        Fixture.chunk("data: hello\n\n"), Fixture.chunk("data: [{\"op\": \"remove\", \"path\": \"/a\"}]\n\n"),
        .wait(ready), Fixture.lastChunk, .close,
      ], [.expectRequest, Fixture.status(403), .close])
    let manager = fixture.manager()
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    manager.completionQueue = DispatchQueue(label: "patches")
    let results = Results<(operations: [AFJSONPatchOperation]?, error: (any Error)?)>()
    let source = try manager.subscribe("events") { results.add(($0, $1)) }
    source.retryInterval = 0
    ready.fire()
    let first = try await results.next()
    #expect(first.operations == nil)
    #expect((first.error as NSError?)?.domain == AFJSONPatchErrorDomain)
    #expect(first.error?.localizedDescription.contains("fly") == true)
    let second = try await results.next()
    #expect(second.operations == nil && second.error != nil)
    // An event without a type counts if its data is a patch; other events do not.
    let third = try await results.next()
    let operation = try #require(third.operations?.first)
    #expect(third.operations?.count == 1 && third.error == nil)
    #expect(operation.type == .removeOperationType && operation.path == "/a")
    let last = try await results.next()
    #expect(last.operations == nil && (last.error as? URLError)?.code == .badServerResponse)
    #expect(source.isClosed && source.lastResponse?.statusCode == 403)
  }

  /// The subscription is a listener for `patch`, and can be removed like any other.
  @Test func aRemovedSubscription() async throws {
    let ready = TestServer.Signal()
    let fixture = try Fixture([
      .expectRequest, .wait(ready), Fixture.head, Fixture.patch("1", #"{"op": "remove", "path": "/a"}"#),
      Fixture.chunk("event: end\ndata: x\n\n"), .expectClose,
    ])
    let client = AFRocketClient()
    let journal = fixture.journal
    let source = try client.subscribe(fixture.server.url("/events")) { _, _ in journal.note("patch") }
    source.removeAllListeners(forEvent: "patch")
    source.addListener(forEvent: "end") { _ in journal.note("end") }
    ready.fire()
    await journal.wait(for: "end")
    #expect(journal.lines == ["end"])
    try source.close()
  }

  // MARK: - Managers

  @Test func aSessionThatEnds() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, .expectClose])
    let manager = fixture.manager()
    let results = Results<(any Error)?>()
    let source = try manager.subscribe("events") { results.add($1) }
    _ = try await fixture.server.waitForRequests(1)
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
    #expect((try await results.next() as? URLError)?.code == .cancelled)
    #expect(source.isClosed)
  }

  @Test func aRefusedPolicy() throws {
    let fixture = try Fixture()
    let manager = fixture.manager()
    manager.securityPolicy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [])
    #expect(throws: URLError.self) { try manager.subscribe("events") { _, _ in } }
    let url = try #require(URL(string: fixture.server.url("/events")))
    #expect(throws: URLError.self) {
      try manager.openEventSource(with: URLRequest(url: url), serializer: AFJSONPatchResponseSerializer()) { _, _ in }
    }
    #expect(throws: NSError.self) { try AFRocketClient().subscribe("http://[") { _, _ in } }
    #expect(fixture.server.connectionsAccepted == 0)
  }

  /// The manager's policy decides about the stream's server, and the error says so.
  @Test func aServerThatIsNotTrusted() async throws {
    let certificate = try TestCA().issue()
    let fixture = try ManagerFixture(tls: TestServer.TLS(certificate: certificate))
    let results = Results<(any Error)?>()
    try fixture.manager.subscribe("events") { results.add($1) }
    #expect((try await results.next() as? URLError)?.code == .serverCertificateUntrusted)
    #expect(fixture.server.requestsReceived == 0)
  }

  // MARK: - Clients of their own

  @Test func aClientWithItsSerializer() async throws {
    let fixture = try Fixture([
      .expectRequest("SUBSCRIBE", "/v1/songs"), Fixture.head,
      Fixture.patch("1", #"{"op": "add", "path": "/-", "value": null}"#), .expectClose,
    ])
    let client = AFRocketClient(baseURL: URL(string: fixture.server.url("/v1")))
    #expect(client.requestSerializer is AFEventSourceRequestSerializer && AFRocketClient().baseURL == nil)
    client.requestSerializer.setValue("token", forHTTPHeaderField: "X-Token")
    client.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
    client.completionQueue = DispatchQueue(label: "patches")
    let results = Results<AFJSONPatchOperation?>()
    let source = try client.subscribe("songs") { operations, _ in results.add(operations?.first) }
    let operation = try #require(try await results.next())
    #expect(operation.type == .addOperationType && operation.path == "/-" && operation.value is NSNull)
    #expect(fixture.values("X-Token") == ["token"] && fixture.values("Accept") == ["text/event-stream"])
    #expect(fixture.values("Authorization") == ["Basic dXNlcjpwYXNzd29yZA=="])
    try source.close()
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  /// A secret for the base URL's server does not go to another one.
  @Test func anotherOrigin() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, .expectClose])
    let client = AFRocketClient(baseURL: URL(string: "https://api.example.com/v1"))
    client.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
    let source = try client.subscribe(fixture.server.url("/events"), using: nil)
    _ = try await fixture.server.waitForRequests(1)
    #expect(fixture.values("Authorization") == [nil])
    try source.close()
  }

  @Test func aRequestOfTheProgram() async throws {
    let fixture = try Fixture([
      .expectRequest("GET", "/events?from=1"), Fixture.head, Fixture.patch("1", #"{"op": "remove", "path": "/a"}"#),
      .expectClose,
    ])
    let url = try #require(URL(string: fixture.server.url("/events?from=1")))
    let results = Results<Int?>()
    let source = try AFRocketClient().openEventSource(
      with: URLRequest(url: url), serializer: AFJSONPatchResponseSerializer()
    ) { operations, _ in results.add(operations?.count) }
    #expect(try await results.next() == 1)
    try source.close()
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }
}
