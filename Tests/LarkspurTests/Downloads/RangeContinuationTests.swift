import Foundation
import Larkspur
import Testing

@Suite struct RangeContinuationTests {
  private func response(_ status: Int, _ fields: [String: String] = [:]) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://a.example/"))
    return try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }

  private static let then = "Sat, 05 Nov 1994 08:49:37 GMT"

  private func continuation(
    _ fields: [String: String] = ["ETag": "\"a\""], status: Int = 200, _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> (RangeContinuation?, URLRequest) {
    var request = URLRequest(url: try #require(URL(string: "http://a.example/")))
    change(&request)
    return (RangeContinuation(of: request, after: try response(status, fields)), request)
  }

  private func next(
    _ fields: [String: String] = ["ETag": "\"a\""], status: Int = 200, count: Int64 = 100,
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> URLRequest? {
    var (continuation, request) = try continuation(fields, status: status, change)
    return continuation?.request(request, after: count)
  }

  @Test func theRestIsAskedFor() throws {
    let request = try #require(try next(["ETag": "\"a\"", "Last-Modified": Self.then]))
    #expect(request.value(forHTTPHeaderField: "Range") == "bytes=100-")
    #expect(request.value(forHTTPHeaderField: "If-Range") == "\"a\"")
    #expect(request.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
  }

  @Test func validators() throws {
    // RFC 9110 13.1.5: a weak entity tag cannot be used in `If-Range`.
    #expect(try next(["ETag": "W/\"a\"", "Last-Modified": Self.then]) == nil)
    let date = try #require(try next(["Last-Modified": Self.then]))
    #expect(date.value(forHTTPHeaderField: "If-Range") == Self.then)
    // RFC 9110 8.8.2.2: the file may have changed twice within the second of the response.
    #expect(try next(["Last-Modified": Self.then, "Date": Self.then]) == nil)
    #expect(try next(["Last-Modified": "then"]) == nil)
    // Without a validator nothing shows whether the rest belongs to the received part.
    #expect(try next([:]) == nil)
    #expect(try next(["ETag": "\"a\"", "Accept-Ranges": "none"]) == nil)
  }

  @Test func rangesOfTheCaller() throws {
    func range(_ asked: String, _ known: String, count: Int64 = 100) throws -> String? {
      try next(["ETag": "\"a\"", "Content-Range": known], status: 206, count: count) {
        $0.setValue(asked, forHTTPHeaderField: "Range")
      }?.value(forHTTPHeaderField: "Range")
    }
    #expect(try range("bytes=50-", "bytes 50-999/1000") == "bytes=150-")
    #expect(try range("bytes=50-199", "bytes 50-199/1000") == "bytes=150-199")
    // The server may send another range than the requested one (RFC 9110 15.3.7).
    #expect(try range("bytes=50-", "bytes 60-999/1000") == nil)
    #expect(try range("bytes=50-", "junk") == nil)
    // All bytes of the range have arrived: there is no rest to request.
    #expect(try range("bytes=50-199", "bytes 50-199/1000", count: 150) == nil)
    for text in ["bytes=-50", "bytes=0-1,5-6", "lines=1-2", "bytes=9-3", "bytes", "bytes=a-b", "bytes=-"] {
      #expect(try range(text, "bytes 0-99/100") == nil, "\(text)")
    }
  }

  @Test func whatCannotBeContinued() throws {
    #expect(try next(count: 0) == nil)
    #expect(try next(count: .max) { $0.setValue("bytes=5-", forHTTPHeaderField: "Range") } == nil)
    #expect(try next(status: 404) == nil && next(status: 203) == nil)
    #expect(try next(["Content-Encoding": "gzip", "ETag": "\"a\""]) == nil)
    #expect(try next(["Content-Encoding": "identity", "ETag": "\"a\""]) != nil)
    // Such a 200 may have a part only.
    #expect(try next(["Content-Range": "bytes 5-9/10", "ETag": "\"a\""]) == nil)
    #expect(try next { $0.httpMethod = "POST" } == nil)
  }

  /// A 200 response has the content from its first byte, so the caller's own range says nothing about the received
  /// part.
  @Test func aRangeOfTheCallersThatWasNotHeeded() throws {
    #expect(try next(status: 200) { $0.setValue("bytes=50-", forHTTPHeaderField: "Range") } == nil)
    #expect(try next(status: 200) { $0.setValue("bytes=0-", forHTTPHeaderField: "Range") } != nil)
  }

  /// A later response to a request for the rest may omit the validator, and may be the first one with a total.
  @Test func aSecondPause() throws {
    var (known, request) = try continuation(["Last-Modified": Self.then])
    _ = known?.request(request, after: 100)
    #expect(try known?.classify(response(206, ["Content-Range": "bytes 100-199/200"])) == .rest(count: 100))
    let next = known?.request(request, after: 150)
    #expect(next?.value(forHTTPHeaderField: "Range") == "bytes=150-")
    #expect(next?.value(forHTTPHeaderField: "If-Range") == Self.then)
    #expect(try known?.classify(response(206, ["Content-Range": "bytes 150-199/*"])) == .rest(count: 50))
    #expect(try known?.classify(response(206, ["Content-Range": "bytes 150-179/*"])) == .wrong)
  }

  /// The decision about a response to a request for the bytes after the first 100.
  private func answer(
    _ status: Int, _ fields: [String: String], known: [String: String] = ["ETag": "\"a\""], knownStatus: Int = 200,
    asking range: String? = nil
  ) throws -> RangeContinuation.Classification {
    let (continuation, request) = try continuation(known, status: knownStatus) {
      if let range { $0.setValue(range, forHTTPHeaderField: "Range") }
    }
    var known = try #require(continuation)
    #expect(known.request(request, after: 100) != nil)
    return known.classify(try response(status, fields))
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
    #expect(try answer(416, ["Content-Range": "bytes */100"], known: known) == .whole(count: nil))
    #expect(try answer(416, ["Content-Range": "bytes */100", "ETag": "\"b\""]) == .whole(count: nil))
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
    #expect(try whole(["Content-Type": "multipart/byteranges; boundary=x"]) == .wrong)
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
