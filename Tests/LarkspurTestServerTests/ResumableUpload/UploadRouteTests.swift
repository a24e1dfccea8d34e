import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct UploadRouteTests {
  let server: TestServer
  let client: RawClient

  init() throws {
    server = try TestServer()
    client = try RawClient(server)
  }

  private static let version8 = "Upload-Draft-Interop-Version: 8\r\n"
  private static let version3 = "Upload-Draft-Interop-Version: 3\r\n"

  private func send(_ client: RawClient, _ line: String, _ fields: String, _ content: String) throws {
    try client.send(
      "\(line) HTTP/1.1\r\nHost: test\r\n\(fields)Content-Length: \(content.utf8.count)\r\n\r\n\(content)")
  }

  private func head(_ client: RawClient, _ target: String, _ version: String = Self.version8) throws
    -> RawClient.Response
  {
    try client.request("HEAD", target, version)
    return try client.response(hasBody: false)
  }

  @Test func aWholeUpload() throws {
    try send(client, "PUT /uploads", Self.version8 + "Upload-Complete: ?1\r\nUpload-Length: 5\r\n", "hello")
    let interim = try client.response()
    #expect(interim.head.hasPrefix("HTTP/1.1 104 Upload Resumption Supported\r\n"))
    #expect(interim.field("Location") == "/uploads/1" && interim.field("Upload-Draft-Interop-Version") == "8")
    let response = try client.response()
    #expect(response.status == 200 && response.field("Upload-Complete") == "?1")
    #expect(response.text.contains("\"count\":5"))
    let state = try head(client, "/uploads/1")
    #expect(state.status == 204 && state.field("Upload-Offset") == "5" && state.field("Upload-Complete") == "?1")
    #expect(state.field("Upload-Length") == "5" && state.field("Cache-Control") == "no-store")
    #expect(server.requests.map(\.bodyText) == ["hello", ""] && server.failures.isEmpty)
  }

  @Test func draft01() throws {
    try send(client, "POST /uploads", Self.version3 + "Upload-Incomplete: ?1\r\n", "he")
    #expect(try client.response().field("Upload-Draft-Interop-Version") == "3")
    let created = try client.response()
    #expect(created.status == 201 && created.field("Upload-Incomplete") == "?1")
    #expect(created.field("Upload-Offset") == "2" && created.field("Location") == "/uploads/1")
    #expect(try head(client, "/uploads/1", Self.version3).field("Upload-Incomplete") == "?1")
    try send(client, "PATCH /uploads/1", Self.version3 + "Upload-Offset: 2\r\n", "llo")
    let response = try client.response()
    #expect(response.status == 200 && response.field("Upload-Offset") == "5")
    #expect(response.field("Upload-Incomplete") == nil)
  }

  /// The bytes before the cut are kept, and another connection appends the rest.
  @Test func aCutUpload() throws {
    try send(client, "POST /uploads?cut=3", Self.version8 + "Upload-Complete: ?1\r\n", "hello")
    #expect(try client.response().status == 104)
    #expect(throws: (any Error).self) { _ = try client.response() }
    let other = try RawClient(server)
    let state = try head(other, "/uploads/1")
    #expect(state.field("Upload-Offset") == "3" && state.field("Upload-Complete") == "?0")
    let fields =
      Self.version8 + "Upload-Complete: ?1\r\nUpload-Offset: 3\r\nContent-Type: application/partial-upload\r\n"
    try send(other, "PATCH /uploads/1", fields, "lo")
    #expect(try other.response().field("Upload-Complete") == "?1")
  }

  /// A client that goes away in the middle of its content has uploaded what has come.
  @Test func theClientGoesAway() async throws {
    let uploads = server.resumableUploads("/files")
    try client.send(
      "POST /files HTTP/1.1\r\nHost: test\r\n" + Self.version8 + "Upload-Complete: ?1\r\nContent-Length: 9\r\n\r\nabc")
    #expect(try client.response().status == 104)
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(uploads.all.map(\.bytes) == [Array("abc".utf8)] && uploads.all[0].isComplete == false)
    #expect(uploads.all[0].length == 9)
  }

  @Test func chunkedContentAndProgress() throws {
    var upload = TestServer.ResumableUpload()
    upload.progressBytes = 4
    let uploads = server.resumableUploads("/files", upload)
    try client.send("POST /files HTTP/1.1\r\nHost: test\r\n" + Self.version8 + "Upload-Complete: ?1\r\n")
    try client.send("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    #expect(try client.response().field("Location") == "/files/1")
    #expect(try client.response().field("Upload-Offset") == "5")
    #expect(try client.response().status == 200)
    #expect(uploads.all[0].bytes == Array("hello".utf8) && uploads.all[0].length == nil)
  }

  @Test(arguments: [
    ("POST /uploads", "Upload-Complete: ?1\r\nUpload-Length: 6\r\n", 400),
    ("POST /uploads", "Upload-Complete: 1\r\n", 400),
    ("POST /uploads", "Upload-Complete: ?1\r\nUpload-Offset: 0\r\n", 400),
    ("POST /uploads?max-size=4", "Upload-Complete: ?1\r\n", 413),
    ("POST /uploads?max-append=4", "Upload-Complete: ?1\r\n", 413),
    ("PATCH /uploads/9", "Upload-Complete: ?1\r\nUpload-Offset: 0\r\n", 404), ("POST /uploads", "", 200),
    ("POST /uploads?announce=0", "Upload-Complete: ?1\r\n", 200),
  ])
  func answersWithoutAnnouncement(line: String, fields: String, status: Int) throws {
    try send(client, line, Self.version8 + fields, "hello")
    #expect(try client.response().status == status)
  }

  @Test func wrongRequestsToAnUploadResource() throws {
    try send(client, "POST /uploads", Self.version8 + "Upload-Complete: ?0\r\nUpload-Length: 5\r\n", "he")
    _ = try client.response()
    #expect(try client.response().status == 201)
    let type = "Content-Type: application/partial-upload\r\n"
    for (fields, status) in [
      ("Upload-Complete: ?1\r\nUpload-Offset: 2\r\n", 415), (type + "Upload-Complete: ?1\r\n", 400),
      (type + "Upload-Offset: 2\r\n", 400), (type + "Upload-Complete: ?1\r\nUpload-Offset: 1\r\n", 409),
      (type + "Upload-Complete: ?1\r\nUpload-Offset: 2\r\nUpload-Length: 6\r\n", 400),
      (type + "Upload-Complete: ?1\r\nUpload-Offset: 2\r\n", 400),
    ] {
      let other = try RawClient(server)
      try send(other, "PATCH /uploads/1", Self.version8 + fields, "ll")
      let response = try other.response()
      #expect(response.status == status, "\(fields)")
      if status == 409 { #expect(response.field("Upload-Offset") == "2") }
    }
    #expect(try head(client, "/uploads/1", Self.version3).status == 400)
    #expect(try head(client, "/uploads/1", Self.version8 + "Upload-Offset: 2\r\n").status == 400)
    try client.request("DELETE", "/uploads/1", Self.version8)
    #expect(try client.response().status == 204)
    #expect(try head(client, "/uploads/1").status == 410)
  }

  @Test func faults() throws {
    var upload = TestServer.ResumableUpload()
    upload.faults = [
      .field("Upload-Limit", "max-size=1"), .offset(99), .noOffset, .complete(true), .status(503, retryAfter: 7),
      .conflict, .redirect(status: 307, to: "/x"), .lose(bytes: 1), .forget(status: 404),
    ]
    let uploads = server.resumableUploads("/files", upload)
    try send(client, "POST /files", Self.version8 + "Upload-Complete: ?0\r\n", "abc")
    #expect(try client.response().field("Upload-Limit") == "max-size=1")
    #expect(try client.response().field("Upload-Limit") == "max-size=1")
    let states = try (0..<8).map { _ in try head(client, "/files/1") }
    #expect(states[0].field("Upload-Offset") == "99" && states[1].field("Upload-Offset") == nil)
    #expect(states[2].field("Upload-Complete") == "?1" && states[3].field("Retry-After") == "7")
    #expect(states.map(\.status) == [204, 204, 204, 503, 409, 307, 204, 404])
    #expect(states[5].field("Location") == "/x" && states[6].field("Upload-Offset") == "2")
    #expect(uploads.options.faults.isEmpty && uploads.all[0].isActive == false)
  }
}
