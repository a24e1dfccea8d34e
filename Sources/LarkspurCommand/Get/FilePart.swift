import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The bytes of a response that a file has, and the way to the rest after the connection breaks.
struct FilePart {
  /// What happens after a break.
  private let policy: URLSession.RetryPolicy?
  /// The version that the bytes belong to, or `nil` if the download can only start over.
  private var point: ResumePoint?
  private var breaks = 0
  /// The number of bytes in the file.
  private(set) var count = 0

  /// - Parameters:
  ///   - policy: The policy, or `nil` if the bytes cannot be taken back or continued.
  ///   - kept: The bytes that an earlier command has left in the file.
  init(_ policy: URLSession.RetryPolicy?, continuing kept: FileOutput.Kept?) {
    self.policy = policy
    guard let kept, let version = kept.version else { return }
    count = kept.count
    if count > 0, version != "" { point = ResumePoint(validator: version, offset: count, total: nil, coding: nil) }
  }

  /// The fields that ask for the rest. Empty if the request asks for the whole.
  var conditions: FieldList {
    point.map { ResumePoint.conditions(from: $0.offset, validator: $0.validator) } ?? []
  }

  mutating func add(_ bytes: Int) { count += bytes }

  /// Returns the delay before a request for the rest, or `nil` if there is none.
  ///
  /// - Parameter error: The error of the connection, or `nil` after a response that does not fit the bytes.
  mutating func delay(after error: URLError?) -> Duration? {
    breaks += 1
    let isOfConnection = error.map { $0.transportError?.isOfConnection ?? false } ?? true
    guard
      let delay = policy?.delay(
        after: .init(number: breaks, method: "GET", failure: .error(isOfConnection: isOfConnection)))
    else { return nil }
    if error == nil || count == 0 { point = nil } else { point?.offset = count }
    return error == nil ? .zero : delay
  }

  /// Takes a response's head, and decides what its body is to the bytes of the file. Other bytes than a continuation begin
  /// a new part.
  mutating func take(_ response: HTTPURLResponse) -> ResumePoint.Decision {
    let (status, fields) = (response.statusCode, response.fieldValues)
    if let point, point.offset > 0 {
      let decision = point.decide(asking: point.offset, status: status, fields: fields)
      guard case .replace = decision else { return decision }
      // A server without ranges sends the whole resource, which the file already has.
      if response.expectedContentLength == count, Self.version(of: response) == point.validator { return .confirmLast }
    }
    (count, point) = (0, ResumePoint(status: status, now: MachineClock.wallSeconds, fields: fields))
    if point?.coding != nil { point = nil }
    return .replace(count: nil)
  }

  /// Returns the strong validator of a response, or `nil` if the bytes are coded, or a proxy has changed them (203).
  static func version(of response: HTTPURLResponse) -> String? {
    let fields = response.fieldValues
    guard [200, 206].contains(response.statusCode), ResumePoint.coding(of: fields) == nil else { return nil }
    return ResumePoint.validator(now: MachineClock.wallSeconds, fields: fields)
  }
}

extension GetOptions {
  /// Whether the response is loaded into a file, and can be loaded again.
  private var isDownload: Bool {
    (output != nil || usesRemoteName) && !sendsContent && method ?? "GET" == "GET"
  }

  /// The policy of `--retry` and `--retry-all`: the standard one, up to the number of all retries. `nil` for no retries.
  var retryPolicy: URLSession.RetryPolicy? {
    var rules = URLSession.RetryPolicy.Rules()
    if let retriesMax { rules.attemptsMax = retriesMax + 1 }
    guard rules.attemptsMax > 1, retriesMax != nil || retriesAllMethods || isDownload else { return nil }
    rules.repeatsAllMethods = retriesAllMethods
    return .init(rules: rules, budget: .init(share: 0, reserve: Double(rules.attemptsMax - 1)))
  }
}
