import Synchronization

/// The delegate methods that exist in two forms: with a completion handler, and as an async function.
///
/// With Objective-C the two forms are one method. Here they are two requirements, which the default implementations
/// connect: the default implementation of the form with a completion handler calls the async form, and that of the
/// async form reports that the delegate does not implement the method. The first such report for a class is stored, and
/// the next calls skip the async form.
struct ImplementedAsyncMethods: OptionSet, Sendable {
  let rawValue: UInt8

  static let sessionChallenge = Self(rawValue: 1 << 0)
  static let delayedRequest = Self(rawValue: 1 << 1)
  static let redirection = Self(rawValue: 1 << 2)
  static let challenge = Self(rawValue: 1 << 3)
  static let bodyStream = Self(rawValue: 1 << 4)
  static let response = Self(rawValue: 1 << 5)
  static let caching = Self(rawValue: 1 << 6)
  static let bodyStreamFromOffset = Self(rawValue: 1 << 7)

  /// The forms that a class does not implement. Classes live as long as the process.
  private static let missing = Mutex<[ObjectIdentifier: ImplementedAsyncMethods]>([:])

  static func mayBe(_ form: Self, in delegate: AnyObject) -> Bool {
    missing.withLock { $0[ObjectIdentifier(type(of: delegate))]?.contains(form) } != true
  }

  static func isMissing(_ form: Self, in delegate: AnyObject) {
    missing.withLock { _ = $0[ObjectIdentifier(type(of: delegate)), default: []].insert(form) }
  }
}
