import LarkspurHTTP
import Testing

@Suite struct UploadResponseTests {
  static func response(
    _ fields: [(String, String)], _ version: ResumableUploadVersion = .interop8, url: String = "http://h/a/b?c"
  ) -> UploadResponse {
    UploadResponse(status: 204, url: url, version: version, now: 1000) { name in
      fields.filter { $0.0 == name }.map(\.1)
    }
  }

  @Test func everyField() {
    let fields = [
      ("upload-draft-interop-version", "8"), ("upload-offset", "5"), ("upload-complete", "?0"), ("upload-length", "9"),
      ("upload-limit", "max-size=10"), ("location", "/u/1#x"), ("retry-after", "3"), ("upload-incomplete", "?0"),
    ]
    var expected = UploadResponse(status: 204, url: "http://h/a/b?c")
    expected.interopVersion = 8
    expected.offset = 5
    expected.isComplete = false
    expected.length = 9
    expected.limits = UploadLimits(maxSize: 10)
    expected.location = "http://h/u/1"
    expected.retryAfter = 3
    #expect(Self.response(fields) == expected)
    // Draft 01 has neither lengths nor limits, and negates the completeness.
    expected.isComplete = true
    expected.length = nil
    expected.limits = nil
    #expect(Self.response(fields, .interop3) == expected)
  }

  @Test(arguments: [
    "-1", "1.0", "\"1\"", "?1", "a", "", "1, 2", "1000000000000000", "99999999999999999999999", "0x5", "5 5", "+5",
    "5\t",
  ])
  func hostileNumbers(text: String) {
    let response = Self.response([
      ("upload-offset", text), ("upload-length", text), ("upload-draft-interop-version", text),
    ])
    #expect(response == UploadResponse(status: 204, url: "http://h/a/b?c"))
    #expect(Self.response([("upload-offset", "1"), ("upload-offset", "1")]).offset == nil)
  }

  @Test(arguments: ["1", "true", "?2", "?", "\"?1\"", "?1, ?1", "?10", ""])
  func hostileBooleans(text: String) {
    #expect(Self.response([("upload-complete", text)]).isComplete == nil)
    #expect(Self.response([("upload-incomplete", text)], .interop3).isComplete == nil)
  }

  @Test func locations() {
    func location(_ text: String) -> String? { Self.response([("location", text)]).location }
    #expect(location("c") == "http://h/a/c" && location("//other/d") == "http://other/d")
    #expect(location("https://x/y?z#f") == "https://x/y?z" && location("") == nil)
    #expect(Self.response([("location", "/a"), ("location", "/a")]).location == nil)
  }

  @Test func requestFields() {
    func names(_ request: UploadRequest?) -> [String] { request?.fields.map { "\($0.name): \($0.value)" } ?? [] }
    for version in ResumableUploadVersion.allCases {
      var settings = ResumableUploadMachine.Settings()
      settings.version = version
      var machine = ResumableUploadMachine(settings: settings, url: "http://h/a", length: 10)
      guard case .send(let creation) = machine.start(now: 0) else {
        Issue.record("no creation")
        continue
      }
      let number = "Upload-Draft-Interop-Version: \(version.rawValue)"
      #expect(creation.kind == .creation && creation.content == 0..<10 && creation.url == nil && creation.method == nil)
      let point = UploadPoint(version: version, resource: "http://h/u", length: 10, sent: 6)
      var other = ResumableUploadMachine(url: "http://h/a", point: point)
      guard case .send(let retrieval) = other.start(now: 0) else {
        Issue.record("no retrieval")
        continue
      }
      #expect(names(retrieval) == [number] && retrieval.method == "HEAD" && retrieval.content.isEmpty)
      var response = UploadResponse(status: 204, url: "http://h/u")
      response.offset = 4
      guard case .send(let append) = other.responded(response, now: 0, fraction: 0) else {
        Issue.record("no append")
        continue
      }
      #expect(append.method == "PATCH" && append.content == 4..<10 && append.url == "http://h/u")
      guard case .send(let cancellation) = other.cancel() else {
        Issue.record("no cancellation")
        continue
      }
      #expect(names(cancellation) == [number] && cancellation.method == "DELETE")
      switch version {
      case .interop3:
        #expect(names(creation) == [number, "Upload-Incomplete: ?0"])
        #expect(names(append) == [number, "Upload-Incomplete: ?0", "Upload-Offset: 4"])
      case .interop8, .interop9, .interop10:
        #expect(names(creation) == [number, "Upload-Complete: ?1", "Upload-Length: 10"])
        #expect(
          names(append) == [
            number, "Upload-Complete: ?1", "Upload-Offset: 4", "Upload-Length: 10",
            "Content-Type: application/partial-upload",
          ])
      }
    }
  }
}
