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
      let asked = AskedRange(request.value(forHTTPHeaderField: "Range")),
      // A 200 has the content from its first byte on, whatever was asked for.
      response.statusCode == 206 || asked == AskedRange(nil)
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
    /// The rest follows: so many bytes.
    case rest(count: Int64)
    /// All of it follows: so many bytes, if that is known.
    case whole(count: Int64?)
    /// There is no rest: the content is complete.
    case complete
    /// Something else follows than was asked for, or the answer contradicts itself.
    case wrong
  }

  /// - Parameters:
  ///   - request: The request for the rest.
  ///   - known: The response that has the content's first bytes.
  static func answer(_ response: URLResponse, to request: URLRequest, after known: URLResponse?) -> Answer {
    guard let response = response as? HTTPURLResponse else { return .whole(count: nil) }
    let asked = AskedRange(request.value(forHTTPHeaderField: "Range"))
    let known = known as? HTTPURLResponse
    let total = known.flatMap(total(of:))
    let field = response.value(forHTTPHeaderField: "Content-Range")
    let range = field.flatMap { ContentRange($0) }
    switch response.statusCode {
    case 206:
      guard let asked, let range, fits(range, asked, total: total), !isCoded(response), !isMultipart(response),
        let count = range.count, count == length(of: response) ?? count, let known,
        isSameVersion(response, known) != false
      else { return .wrong }
      return .rest(count: count)
    case 200, 203:
      // A 200 with a part contradicts itself (RFC 9110 14.4).
      if field != nil, range?.isWhole != true || isMultipart(response) { return .wrong }
      let ofVersion = known.flatMap { isSameVersion(response, $0) } == true ? total : nil
      guard !isCoded(response), let count = range?.total ?? ofVersion else { return .whole(count: nil) }
      guard count == ofVersion ?? count, count == length(of: response) ?? count else { return .wrong }
      return .whole(count: count)
    case 416:
      // The condition held, or the range would have been ignored: one version has one length.
      guard let first = asked?.first, range?.total == first else { return .whole(count: nil) }
      return total == nil || total == first ? .complete : .wrong
    default: return .whole(count: nil)
    }
  }

  /// Whether a part is just what was asked for. RFC 9110 15.3.7 allows others: to be put behind what is there a part must
  /// begin there, and what ends before the content does is not the rest of it.
  private static func fits(_ range: ContentRange, _ asked: AskedRange, total: Int64?) -> Bool {
    guard let last = range.last, range.first == asked.first else { return false }
    // What is left of a content whose length is not known, nothing tells.
    guard let whole = total ?? range.total else { return last <= asked.last ?? .max }
    return range.total ?? whole == whole && last == min(asked.last ?? .max, whole - 1)
  }

  /// How many bytes the whole has that a response has a part of, or all.
  private static func total(of response: HTTPURLResponse) -> Int64? {
    guard response.statusCode == 206 else { return length(of: response) }
    return response.value(forHTTPHeaderField: "Content-Range").flatMap { ContentRange($0) }?.total
  }

  private static func length(of response: HTTPURLResponse) -> Int64? {
    response.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
  }

  /// Whether two responses have the same validator, or `nil` if the first one has none: a 206 may leave it out.
  private static func isSameVersion(_ response: HTTPURLResponse, _ known: HTTPURLResponse) -> Bool? {
    let name = known.value(forHTTPHeaderField: "ETag") == nil ? "Last-Modified" : "ETag"
    return response.value(forHTTPHeaderField: name).map { $0 == known.value(forHTTPHeaderField: name) }
  }

  /// Whether the body has several ranges, each with a head of its own (RFC 9110 14.6).
  private static func isMultipart(_ response: HTTPURLResponse) -> Bool {
    response.value(forHTTPHeaderField: "Content-Type")?.lowercased().hasPrefix("multipart/byteranges") == true
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
  var last: Int64?
  /// Nil: unknown.
  var total: Int64?

  var count: Int64? {
    guard let first, let last else { return nil }
    return last - first + 1
  }

  var isWhole: Bool { first == 0 && count != nil && count == total }

  init?(_ field: String) {
    let words = field.split(separator: " ", maxSplits: 1)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    if parts[1] != "*" {
      guard let total = Self.number(parts[1]) else { return nil }
      self.total = total
    }
    guard parts[0] != "*" else { return }
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
      total.map({ last < $0 }) ?? true
    else { return nil }
    self.first = first
    self.last = last
  }

  /// - Returns: The number of 1 to 18 digits: sums of two do not overflow.
  private static func number(_ text: Substring) -> Int64? {
    1...18 ~= text.utf8.count && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }
}
