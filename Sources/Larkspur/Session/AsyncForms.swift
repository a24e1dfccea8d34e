import Synchronization

/// The questions that a delegate may answer in an async function, in place of a method with a completion handler.
///
/// Where there is Objective-C the two are one method. Here they are two requirements, and the default implementations tie
/// them together: that of the method with a completion handler asks the async function, and that of the async function
/// says that the delegate has no word. A class is found to have neither once; from then on it costs it nothing.
struct AsyncForms: OptionSet, Sendable {
  let rawValue: UInt8

  static let sessionChallenge = Self(rawValue: 1 << 0)
  static let delayedRequest = Self(rawValue: 1 << 1)
  static let redirection = Self(rawValue: 1 << 2)
  static let challenge = Self(rawValue: 1 << 3)
  static let bodyStream = Self(rawValue: 1 << 4)
  static let response = Self(rawValue: 1 << 5)
  static let caching = Self(rawValue: 1 << 6)

  /// What has been found missing, by class. Classes never go away.
  private static let missing = Mutex<[ObjectIdentifier: AsyncForms]>([:])

  static func mayBe(_ form: Self, in delegate: AnyObject) -> Bool {
    missing.withLock { $0[ObjectIdentifier(type(of: delegate))]?.contains(form) } != true
  }

  static func isMissing(_ form: Self, in delegate: AnyObject) {
    missing.withLock { _ = $0[ObjectIdentifier(type(of: delegate)), default: []].insert(form) }
  }
}
