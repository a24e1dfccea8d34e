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
    // RFC 9110 13.1.5: not a weak tag.
    #expect(try next(["ETag": "W/\"a\"", "Last-Modified": "then"]) == nil)
    let date = try #require(try next(["Last-Modified": "then"]))
    #expect(date.value(forHTTPHeaderField: "If-Range") == "then")
    // Nobody could say whether the rest belongs to what is there.
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

  @Test(arguments: rangeAnswers) func answers(status: Int, range: String?, answer: RangeContinuation.Answer) throws {
    let request = try #require(try next())
    let response = try response(status, range.map { ["Content-Range": $0] } ?? [:])
    #expect(RangeContinuation.answer(response, to: request, after: 100) == answer)
  }

  @Test func aCodedPartIsWrong() throws {
    let request = try #require(try next())
    let response = try response(206, ["Content-Range": "bytes 100-199/200", "Content-Encoding": "gzip"])
    #expect(RangeContinuation.answer(response, to: request, after: 100) == .wrong)
  }
}

/// A status, a `Content-Range`, and what they say when 100 bytes are there.
private let rangeAnswers: [(Int, String?, RangeContinuation.Answer)] = [
  (206, "bytes 100-199/200", .rest), (206, "bytes 100-199/*", .rest),
  (206, "bytes 0-199/200", .wrong), (206, "bytes 101-199/200", .wrong), (206, nil, .wrong), (206, "junk", .wrong),
  (206, "bytes 199-100/200", .wrong), (200, nil, .whole), (200, "bytes 100-199/200", .whole),
  (416, "bytes */100", .complete), (416, "bytes */50", .whole), (416, nil, .whole), (404, nil, .whole),
]
