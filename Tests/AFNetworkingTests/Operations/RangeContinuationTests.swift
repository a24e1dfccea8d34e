import Foundation
import Testing

@testable import AFNetworking

@Suite struct RangeContinuationTests {
  private func response(_ status: Int, _ fields: [String: String] = [:]) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://a.example/"))
    return try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }

  private func next(
    _ fields: [String: String] = ["ETag": "\"a\""], status: Int = 200, count: Int64 = 100,
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> URLRequest? {
    var request = URLRequest(url: try #require(URL(string: "http://a.example/")))
    change(&request)
    return RangeContinuation.request(request, after: try response(status, fields), count: count)
  }

  @Test func theRestIsAskedFor() throws {
    let request = try #require(try next(["ETag": "\"a\"", "Last-Modified": "then"]))
    #expect(request.value(forHTTPHeaderField: "Range") == "bytes=100-")
    #expect(request.value(forHTTPHeaderField: "If-Range") == "\"a\"")
    #expect(request.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
  }

  @Test func validators() throws {
    // RFC 9110 13.1.5: a weak entity tag cannot be used in `If-Range`.
    #expect(try next(["ETag": "W/\"a\"", "Last-Modified": "then"]) == nil)
    let date = try #require(try next(["Last-Modified": "then"]))
    #expect(date.value(forHTTPHeaderField: "If-Range") == "then")
    // Without a validator nothing shows whether the rest belongs to the received part.
    #expect(try next([:]) == nil)
  }

  @Test func rangesOfTheCaller() throws {
    let open = try next(status: 206) { $0.setValue("bytes=50-", forHTTPHeaderField: "Range") }
    #expect(open?.value(forHTTPHeaderField: "Range") == "bytes=150-")
    let closed = try next(status: 206) { $0.setValue("bytes=50-199", forHTTPHeaderField: "Range") }
    #expect(closed?.value(forHTTPHeaderField: "Range") == "bytes=150-199")
    for text in ["bytes=-50", "bytes=0-1,5-6", "lines=1-2", "bytes=9-3", "bytes", "bytes=a-b", "bytes=-"] {
      #expect(try next(status: 206) { $0.setValue(text, forHTTPHeaderField: "Range") } == nil, "\(text)")
    }
  }

  @Test func whatCannotBeContinued() throws {
    #expect(try next(count: 0) == nil)
    #expect(try next(status: 404) == nil)
    #expect(try next(["Content-Encoding": "gzip", "ETag": "\"a\""]) == nil)
    #expect(try next(["Content-Encoding": "identity", "ETag": "\"a\""]) != nil)
    #expect(try next { $0.httpMethod = "POST" } == nil)
    let url = try #require(URL(string: "http://a.example/"))
    #expect(RangeContinuation.request(URLRequest(url: url), after: nil, count: 5) == nil)
  }

  /// A 200 response has the content from its first byte, so the caller's own range says nothing about the received
  /// part.
  @Test func aRangeOfTheCallersThatWasNotHeeded() throws {
    #expect(try next(status: 200) { $0.setValue("bytes=50-", forHTTPHeaderField: "Range") } == nil)
    #expect(try next(status: 200) { $0.setValue("bytes=0-", forHTTPHeaderField: "Range") } != nil)
  }

  /// The decision about a response to a request for the bytes after the first 100.
  private func answer(
    _ status: Int, _ fields: [String: String], known: [String: String] = ["ETag": "\"a\""], knownStatus: Int = 200,
    asking range: String? = nil
  ) throws -> RangeContinuation.Classification {
    let request = try #require(
      try next(known, status: knownStatus) { if let range { $0.setValue(range, forHTTPHeaderField: "Range") } })
    return RangeContinuation.classify(
      try response(status, fields), to: request, after: try response(knownStatus, known))
  }

  @Test(arguments: rangeAnswers) func answers(status: Int, range: String?, answer: RangeContinuation.Classification)
    throws
  {
    #expect(try self.answer(status, range.map { ["Content-Range": $0] } ?? [:]) == answer)
  }

  @Test func aPartHasToFitWhatIsKnown() throws {
    let known = ["ETag": "\"a\"", "Content-Length": "200"]
    func rest(_ range: String, _ fields: [String: String] = [:]) throws -> RangeContinuation.Classification {
      try answer(206, fields.merging(["Content-Range": range]) { $1 }, known: known)
    }
    #expect(try rest("bytes 100-199/200", ["ETag": "\"a\"", "Content-Length": "100"]) == .rest(count: 100))
    #expect(try rest("bytes 100-199/*") == .rest(count: 100))
    // A 416 response would mean that the received part is everything, but the content is known to be longer.
    #expect(try answer(416, ["Content-Range": "bytes */100"], known: known) == .wrong)
    for range in ["bytes 100-149/200", "bytes 100-149/*", "bytes 100-249/250", "bytes 100-149/150"] {
      #expect(try rest(range) == .wrong, "\(range)")
    }
    let fields = [
      ["ETag": "\"b\""], ["Content-Length": "99"], ["Content-Encoding": "gzip"],
      ["Content-Type": "multipart/byteranges; boundary=x"],
    ]
    for fields in fields { #expect(try rest("bytes 100-199/200", fields) == .wrong, "\(fields)") }
  }

  @Test func aPartHasToFitTheCallersRange() throws {
    func rest(_ range: String) throws -> RangeContinuation.Classification {
      let known = ["ETag": "\"a\"", "Content-Range": "bytes 50-249/1000"]
      return try answer(206, ["Content-Range": range], known: known, knownStatus: 206, asking: "bytes=50-249")
    }
    #expect(try rest("bytes 150-249/1000") == .rest(count: 100))
    #expect(try rest("bytes 150-199/1000") == .wrong)
    #expect(try rest("bytes 150-299/1000") == .wrong)
    #expect(try rest("bytes 150-249/900") == .wrong)
  }

  @Test func aWholeHasToFitItsVersion() throws {
    let known = ["ETag": "\"a\"", "Content-Length": "200"]
    func whole(_ fields: [String: String]) throws -> RangeContinuation.Classification {
      try answer(200, fields, known: known)
    }
    #expect(try whole(["ETag": "\"b\"", "Content-Length": "100"]) == .whole(count: nil))
    #expect(try whole(["ETag": "\"a\""]) == .whole(count: 200))
    #expect(try whole(["ETag": "\"a\"", "Content-Length": "100"]) == .wrong)
    #expect(try whole(["ETag": "\"a\"", "Content-Length": "100", "Content-Range": "bytes 100-199/200"]) == .wrong)
    #expect(try whole(["Content-Length": "100", "Content-Range": "bytes 0-199/200"]) == .wrong)
    #expect(try whole(["Content-Range": "bytes 0-299/300"]) == .whole(count: 300))
  }
}

/// Each row has a status, a `Content-Range`, and the decision if 100 bytes have been received.
private let rangeAnswers: [(Int, String?, RangeContinuation.Classification)] = [
  (206, "bytes 100-199/200", .rest(count: 100)), (206, "bytes 100-199/*", .rest(count: 100)),
  (206, "bytes 0-199/200", .wrong), (206, "bytes 101-199/200", .wrong), (206, nil, .wrong), (206, "junk", .wrong),
  (206, "bytes 199-100/200", .wrong), (206, "bytes 100-149/200", .wrong), (206, "bytes 100-200/200", .wrong),
  (200, nil, .whole(count: nil)), (200, "bytes 100-199/200", .wrong), (200, "bytes 0-199/200", .whole(count: 200)),
  (416, "bytes */100", .complete), (416, "bytes */50", .whole(count: nil)), (416, nil, .whole(count: nil)),
  (404, nil, .whole(count: nil)),
]
