import Foundation
import Larkspur

/// Continues a load that was stopped: with the rest of the content if the server can send it (RFC 9110 14), or else
/// from the beginning.
enum RangeContinuation {
  /// Creates the request for the rest.
  ///
  /// - Parameters:
  ///   - request: The first request.
  ///   - response: The response to that request, or to the one before.
  ///   - count: Number of bytes received so far.
  /// - Returns: The request, or `nil` if all of the content has to be loaded again.
  static func request(_ request: URLRequest, after response: URLResponse?, count: Int64) -> URLRequest? {
    // Range is defined for GET only (RFC 9110 14.2), and refers to the bytes before a content coding is decoded.
    guard count > 0, request.httpMethod == "GET", let response = response as? HTTPURLResponse,
      response.statusCode == 200 || response.statusCode == 206, !isCoded(response),
      let validator = validator(of: response),
      let asked = AskedRange(request.value(forHTTPHeaderField: "Range")),
      // A 200 response has the content from its first byte, regardless of the requested range.
      response.statusCode == 206 || asked == AskedRange(nil)
    else { return nil }
    var next = request
    next.setValue(asked.rest(after: count), forHTTPHeaderField: "Range")
    // The range counts the bytes of the content itself, so the response must not be coded.
    next.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    next.setValue(validator, forHTTPHeaderField: "If-Range")
    return next
  }

  /// The kind of response to a request for the rest.
  enum Classification: Equatable {
    /// The rest follows, with this number of bytes.
    case rest(count: Int64)
    /// All of the content follows, with this number of bytes, if it is known.
    case whole(count: Int64?)
    /// There is no rest: the content is complete.
    case complete
    /// The response is not what was requested, or contradicts itself.
    case wrong
  }

  /// Classifies the response to a request for the rest.
  ///
  /// - Parameters:
  ///   - request: The request for the rest.
  ///   - known: The response with the content's first bytes.
  static func classify(_ response: URLResponse, to request: URLRequest, after known: URLResponse?) -> Classification {
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
      // A 200 response with a part contradicts itself (RFC 9110 14.4).
      if field != nil, range?.isWhole != true || isMultipart(response) { return .wrong }
      let ofVersion = known.flatMap { isSameVersion(response, $0) } == true ? total : nil
      guard !isCoded(response), let count = range?.total ?? ofVersion else { return .whole(count: nil) }
      guard count == ofVersion ?? count, count == length(of: response) ?? count else { return .wrong }
      return .whole(count: count)
    case 416:
      // The condition in `If-Range` held, or the server would have ignored the range: this is the known version, and it
      // has one length.
      guard let first = asked?.first, range?.total == first else { return .whole(count: nil) }
      return total == nil || total == first ? .complete : .wrong
    default: return .whole(count: nil)
    }
  }

  /// Whether a part is the requested one. RFC 9110 15.3.7 allows others: but a part must start where the received bytes
  /// end, and a part that ends before the content does is not the rest.
  private static func fits(_ range: ContentRange, _ asked: AskedRange, total: Int64?) -> Bool {
    guard let last = range.last, range.first == asked.first else { return false }
    // The total length is unknown, and so is the length of the rest.
    guard let whole = total ?? range.total else { return last <= asked.last ?? .max }
    return range.total ?? whole == whole && last == min(asked.last ?? .max, whole - 1)
  }

  /// The total number of bytes of the content of which the response has a part, or all.
  private static func total(of response: HTTPURLResponse) -> Int64? {
    guard response.statusCode == 206 else { return length(of: response) }
    return response.value(forHTTPHeaderField: "Content-Range").flatMap { ContentRange($0) }?.total
  }

  private static func length(of response: HTTPURLResponse) -> Int64? {
    response.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
  }

  /// Whether two responses have the same validator, or `nil` if the first one has none: a 206 response may omit it.
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

  /// Returns the validator, or `nil` if none can show that the rest belongs to the same content. A weak tag cannot, and
  /// a date is used only if there is no tag (RFC 9110 13.1.5).
  private static func validator(of response: HTTPURLResponse) -> String? {
    guard let tag = response.value(forHTTPHeaderField: "ETag") else {
      return response.value(forHTTPHeaderField: "Last-Modified")
    }
    return tag.hasPrefix("W/") ? nil : tag
  }
}

/// One range of bytes in a request.
struct AskedRange: Equatable {
  var first: Int64
  /// The last byte, or `nil` for the end of the content.
  var last: Int64?

  /// Parses a `Range` field. No field stands for the whole content.
  ///
  /// - Returns: The range, or `nil` if it cannot be continued, such as several ranges, or the last bytes.
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
  /// The first byte, or `nil` if the range cannot be satisfied.
  var first: Int64?
  var last: Int64?
  /// The total number of bytes, or `nil` if it is unknown.
  var total: Int64?

  var count: Int64? {
    guard let first, let last else { return nil }
    return last - first + 1
  }

  var isWhole: Bool { first == 0 && count != nil && count == total }

  init?(_ field: String) {
    let tokens = field.split(separator: " ", maxSplits: 1)
    guard tokens.count == 2, tokens[0].lowercased() == "bytes" else { return nil }
    let parts = tokens[1].split(separator: "/", omittingEmptySubsequences: false)
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

  /// - Returns: The number, or `nil` if the text does not have 1 to 18 digits. Sums of two such numbers do not
  ///   overflow.
  private static func number(_ text: Substring) -> Int64? {
    1...18 ~= text.utf8.count && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }
}
