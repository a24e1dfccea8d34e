import Foundation
import Larkspur

/// The meaning of a response to a range request that continues a file (RFC 9110, sections 14 and 15.5.17).
enum RangeAnswer: Equatable {
  /// The response has the bytes behind the file's: this many.
  case rest(count: Int)
  /// The file is complete.
  case complete
  /// The server ignores the range and sends the whole.
  case whole
  /// The response has other bytes, described in words.
  case another(String)
  /// The response has no such bytes: an error page, or a redirection that is not followed.
  case other

  init(_ response: HTTPURLResponse, offset: Int) {
    let contentRange = response.value(forHTTPHeaderField: "Content-Range") ?? ""
    switch response.statusCode {
    case 206:
      let length = response.value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) }
      let count = Self.part(contentRange).flatMap { part in part.isTail && part.first == offset ? part.count : nil }
      guard let count, count == length ?? count, !Self.isCoded(response), !Self.isMultipart(response) else {
        self = .another("the server sends \(Self.message(response, contentRange))")
        return
      }
      self = .rest(count: count)
    // 203 is a 200 that a proxy has changed (RFC 9110, section 15.3.4).
    case 200, 203: self = .whole
    // Without a length the server says that no bytes come behind those of the file.
    case 416 where contentRange.isEmpty || contentRange.lowercased() == "bytes */\(offset)": self = .complete
    case 416: self = .another("the server has other bytes: \(contentRange)")
    default: self = .other
    }
  }

  /// Checks a response to a request for the whole. A 200 with a part contradicts itself (RFC 9110, section 14.4).
  ///
  /// - Returns: The part that the response says it sends, or `nil` if it sends the whole.
  static func part(in response: HTTPURLResponse) -> String? {
    guard [200, 203, 206].contains(response.statusCode),
      let contentRange = response.value(forHTTPHeaderField: "Content-Range"), let part = part(contentRange)
    else { return nil }
    let length = response.value(forHTTPHeaderField: "Content-Length").flatMap { Int($0) }
    return part.first == 0 && part.isTail && part.count == length ?? part.count ? nil : message(response, contentRange)
  }

  /// Reads `bytes 0-499/1234`. `isTail` is whether, as far as known, no bytes come behind these.
  private static func part(_ contentRange: String) -> (first: Int, count: Int, isTail: Bool)? {
    let tokens = contentRange.split(separator: " ")
    guard tokens.count == 2, tokens[0].lowercased() == "bytes" else { return nil }
    let halves = tokens[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = number(ends[0]), let last = number(ends[1]), first <= last else { return nil }
    guard halves[1] != "*" else { return (first, last - first + 1, true) }
    guard let total = number(halves[1]), last < total else { return nil }
    return (first, last - first + 1, last == total - 1)
  }

  /// - Returns: The number, or `nil` if it has not 1 to 18 digits. The sum of two such numbers does not overflow.
  private static func number(_ text: Substring) -> Int? {
    1...18 ~= text.utf8.count && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
  }

  private static func isCoded(_ response: HTTPURLResponse) -> Bool {
    let coding = response.value(forHTTPHeaderField: "Content-Encoding") ?? ""
    return !coding.isEmpty && coding.lowercased() != "identity"
  }

  /// Whether the body has several ranges, each with a head of its own (RFC 9110, section 14.6).
  private static func isMultipart(_ response: HTTPURLResponse) -> Bool {
    response.value(forHTTPHeaderField: "Content-Type")?.lowercased().hasPrefix("multipart/byteranges") == true
  }

  private static func message(_ response: HTTPURLResponse, _ contentRange: String) -> String {
    if isCoded(response) { return "a part in a content coding" }
    if isMultipart(response) { return "several ranges" }
    guard !contentRange.isEmpty else { return "no range" }
    guard let length = response.value(forHTTPHeaderField: "Content-Length") else { return contentRange }
    return "\(contentRange) in \(length) bytes"
  }
}
