import Foundation
import Larkspur

/// How a load that was stopped goes on: with the rest of the content, where that can be had (RFC 9110 14), or else from
/// its beginning.
enum RangeContinuation {
  /// The request for the rest. Nil: all of it has to be loaded again.
  ///
  /// - Parameters:
  ///   - request: The first request.
  ///   - response: What has been answered to it, or to the one before.
  ///   - count: How many bytes of the content are there.
  static func request(_ request: URLRequest, after response: URLResponse?, count: Int64) -> URLRequest? {
    // Range is defined for GET only (RFC 9110 14.2), and bytes are counted before a coding is undone.
    guard count > 0, request.httpMethod == "GET", let response = response as? HTTPURLResponse,
      response.statusCode == 200 || response.statusCode == 206, !isCoded(response),
      let validator = validator(of: response),
      let asked = AskedRange(request.value(forHTTPHeaderField: "Range"))
    else { return nil }
    var next = request
    next.setValue(asked.rest(after: count), forHTTPHeaderField: "Range")
    // What is counted is the content itself, so it must come as it is.
    next.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    next.setValue(validator, forHTTPHeaderField: "If-Range")
    return next
  }

  /// What has to be done with the answer to such a request.
  enum Answer: Equatable {
    /// The rest follows.
    case rest
    /// All of it follows.
    case whole
    /// There is no rest: the content is complete.
    case complete
    /// Something else follows than was asked for.
    case wrong
  }

  static func answer(_ response: URLResponse, to request: URLRequest, after count: Int64) -> Answer {
    guard let response = response as? HTTPURLResponse else { return .whole }
    let start = AskedRange(request.value(forHTTPHeaderField: "Range"))?.first
    let range = response.value(forHTTPHeaderField: "Content-Range").flatMap { ContentRange($0) }
    switch response.statusCode {
    case 206:
      // The part may be another one than was asked for (RFC 9110 15.3.7): to be put after what is there it must begin
      // there.
      return range?.first == start && start != nil && !isCoded(response) ? .rest : .wrong
    case 416: return range?.total == start && start != nil ? .complete : .whole
    default: return .whole
    }
  }

  private static func isCoded(_ response: HTTPURLResponse) -> Bool {
    guard let coding = response.value(forHTTPHeaderField: "Content-Encoding") else { return false }
    return !coding.isEmpty && coding.caseInsensitiveCompare("identity") != .orderedSame
  }

  /// Nil: nothing would say whether the rest is of the same content. A weak tag does not, and a date serves only where there
  /// is no tag (RFC 9110 13.1.5).
  private static func validator(of response: HTTPURLResponse) -> String? {
    guard let tag = response.value(forHTTPHeaderField: "ETag") else {
      return response.value(forHTTPHeaderField: "Last-Modified")
    }
    return tag.hasPrefix("W/") ? nil : tag
  }
}

/// One range of bytes, as a request asks for it.
struct AskedRange: Equatable {
  var first: Int64
  /// Nil: to the end.
  var last: Int64?

  /// No field asks for all. Nil: something that cannot be continued, such as several ranges, or the last bytes.
  init?(_ field: String?) {
    guard let field else {
      first = 0
      return
    }
    let parts = field.split(separator: "=", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let ends = parts[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int64(ends[0].trimmingCharacters(in: .whitespaces)), first >= 0 else {
      return nil
    }
    let end = ends[1].trimmingCharacters(in: .whitespaces)
    self.first = first
    guard !end.isEmpty else { return }
    guard let last = Int64(end), last >= first else { return nil }
    self.last = last
  }

  func rest(after count: Int64) -> String {
    "bytes=\(first.addingReportingOverflow(count).partialValue)-" + (last.map(String.init) ?? "")
  }
}

/// The value of `Content-Range` (RFC 9110 14.4).
struct ContentRange: Equatable {
  /// Nil: the range cannot be satisfied.
  var first: Int64?
  /// Nil: unknown.
  var total: Int64?

  init?(_ field: String) {
    let words = field.split(separator: " ", maxSplits: 1)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    total = Int64(parts[1])
    guard parts[0] != "*" else { return }
    let ends = parts[0].split(separator: "-")
    guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), first <= last else { return nil }
    self.first = first
  }
}
