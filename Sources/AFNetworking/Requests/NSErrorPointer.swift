import Foundation

/// A variable for a result that a method returns in addition to its return value. It replaces Objective-C's pointer to
/// a pointer, and has its name: code that writes `error?.pointee = ...`, passes `error` on or passes `nil` compiles
/// unchanged. It is a class, so no pointer can dangle.
///
/// Use it on one thread, during one call.
public final class AutoreleasingUnsafeMutablePointer<Pointee> {
  /// The current value.
  public var pointee: Pointee

  /// Creates a variable with an initial value.
  public init(_ pointee: Pointee) { self.pointee = pointee }
}

/// A variable for a method's error, or `nil` if the caller does not want it. Both `error: nil` and `error: &error` are
/// accepted for this type.
public typealias NSErrorPointer = AutoreleasingUnsafeMutablePointer<NSError?>?

extension AutoreleasingUnsafeMutablePointer where Pointee == NSError? {
  /// Calls a function that reports its error through a pointer, and throws that error.
  static func thrown<Result>(by body: (NSErrorPointer) -> Result) throws -> Result {
    let error = AutoreleasingUnsafeMutablePointer(nil)
    let result = body(error)
    if let error = error.pointee { throw error }
    return result
  }

  /// Calls a function that throws, and reports its error through a pointer.
  ///
  /// - Returns: The result, or `nil` if `body` throws.
  static func reported<Result>(to error: NSErrorPointer, by body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch let problem {
      error?.pointee = problem as NSError
      return nil
    }
  }

  /// Calls a function that reports its error through a pointer, for callers that write `error: &error`. Without an
  /// error, `error` stays unchanged.
  static func copied<Result>(to error: inout NSError?, by body: (NSErrorPointer) -> Result) -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer(nil)
    let result = body(pointer)
    if let problem = pointer.pointee { error = problem }
    return result
  }
}
