import Foundation
import LarkspurHTTP

/// Continues a load that was stopped with the rest of the content, if the server can send it. ``ResumePoint`` has the
/// rules. The first response determines the version, so the continuation is created when that response arrives.
package struct RangeContinuation: Sendable {
  /// `offset` is the next byte to request, counted from the start of the representation.
  private var point: ResumePoint
  /// The first byte of the content, which is not that of the representation if the program asks for a range.
  private let first: Int
  /// The last byte that the program asks for, or `nil` for the end.
  private let last: Int?

  /// - Returns: The continuation, or `nil` if all of the content has to be loaded again.
  package init?(of request: URLRequest, after response: URLResponse) {
    let field = request.value(forHTTPHeaderField: "Range")
    // Ranges are defined for GET only (RFC 9110 14.2). The last bytes, and several ranges, are not continued.
    guard request.httpMethod == "GET", let response = response as? HTTPURLResponse,
      case .from(let asked, let last)? = field.map(RequestedRange.init) ?? .from(0, through: nil),
      // A 206 is like a 200 if it begins where the program asked: see below.
      var point = ResumePoint(
        status: response.statusCode == 206 ? 200 : response.statusCode, now: Date().timeIntervalSince1970,
        fields: response.fieldValues),
      // The bytes are counted before a content coding is decoded.
      point.coding == nil
    else { return nil }
    switch response.bodyExtent {
    // A 200 has the content from its first byte, regardless of the requested range.
    case .whole where asked == 0 && last == nil: break
    case .part(let range) where range.bytes.lowerBound == asked: point.total = range.total
    default: return nil
    }
    (self.point, first, self.last) = (point, asked, last)
  }

  /// Returns the request for the rest, or `nil` if there is nothing to continue, or no rest.
  ///
  /// - Parameter count: Number of bytes of the content received so far.
  package mutating func request(_ request: URLRequest, after count: Int64) -> URLRequest? {
    let (offset, isTooLarge) = first.addingReportingOverflow(Int(clamping: count))
    guard count > 0, !isTooLarge, offset <= last ?? .max else { return nil }
    point.offset = offset
    var next = request
    for field in ResumePoint.conditions(from: offset, through: last, validator: point.validator) {
      next.setValue(field.value, forHTTPHeaderField: field.name)
    }
    // A range counts the bytes of the content itself.
    next.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    return next
  }

  /// The kind of response to a request for the rest.
  package enum Classification: Equatable {
    /// The rest follows, with this number of bytes.
    case rest(count: Int64)
    /// All of the content follows, or an error, with this number of bytes, if it is known.
    case whole(count: Int64?)
    /// There is no rest: the content is complete.
    case complete
    /// The response is not what was requested, or contradicts itself.
    case wrong
  }

  package mutating func classify(_ response: URLResponse) -> Classification {
    guard let response = response as? HTTPURLResponse else { return .whole(count: nil) }
    switch point.decide(asking: point.offset, status: response.statusCode, fields: response.fieldValues) {
    // RFC 9110 15.3.7 allows a part that ends before the requested range does, but such a part is not the rest.
    case .continueAt(let first, let end, let total):
      point.total = total
      let wanted = min(last.map { $0 + 1 } ?? .max, total ?? .max)
      return end == wanted || end < wanted && total == nil ? .rest(count: Int64(end - first)) : .wrong
    case .replace(let count): return .whole(count: count.map(Int64.init))
    case .confirmLast where response.bodyExtent == .nothing(total: point.offset): return .complete
    case .startOver where response.statusCode != 416: return .wrong
    case .confirmLast, .startOver, .deliver: return .whole(count: nil)
    }
  }
}

extension HTTPURLResponse {
  /// The bytes of the resource that the body has, as the head states them.
  package var bodyExtent: BodyExtent { BodyExtent(status: statusCode, fieldValues) }

  /// Returns the values of a field by its name.
  package var fieldValues: ResumePoint.Fields { { [fields] name in fields.values(of: name) } }
}
