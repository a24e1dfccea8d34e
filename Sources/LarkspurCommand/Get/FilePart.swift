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
  private var count = 0

  /// - Parameter policy: The policy, or `nil` if the bytes cannot be taken back or continued.
  init(_ policy: URLSession.RetryPolicy?) { self.policy = policy }

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

  /// What a response means for the bytes of the file.
  enum Step {
    /// The body has so many bytes, which follow those of the file.
    case append(Int)
    /// The body is a new whole, if it is one that counts at all.
    case replace
    case startOver
    case refuse
  }

  /// Takes a response's head.
  mutating func take(_ response: HTTPURLResponse) -> Step {
    var step = Step.replace
    if let point, point.offset > 0 {
      switch point.decide(asking: point.offset, status: response.statusCode, fields: response.fieldValues) {
      case .continueAt(let offset, let end, let total):
        self.point?.total = total
        return .append(end - offset)
      case .replace: break
      case .startOver, .confirmLast: step = .startOver
      case .deliver: return .refuse
      }
    }
    count = 0
    point = ResumePoint(
      status: response.statusCode, now: MachineClock.wallSeconds, fields: response.fieldValues)
    if point?.coding != nil { point = nil }
    return step
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
