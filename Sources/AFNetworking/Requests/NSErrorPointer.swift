import Foundation

/// Where a method puts what it returns beside its result. It takes the place of Objective-C's pointer to a pointer, whose
/// name it has: code that writes `error?.pointee = ...`, hands `error` on or passes nil is the same. It is an object, so
/// that nothing can point where nothing is.
///
/// It is for one thread, and for as long as the call lasts.
public final class AutoreleasingUnsafeMutablePointer<Pointee> {
  /// What has been put here.
  public var pointee: Pointee

  /// With what stands here until somebody puts something else.
  public init(_ pointee: Pointee) { self.pointee = pointee }
}

/// Where a method puts its error, if somebody wants it. `error: nil` and `error: &error` are both right where one is asked
/// for.
public typealias NSErrorPointer = AutoreleasingUnsafeMutablePointer<NSError?>?

extension AutoreleasingUnsafeMutablePointer where Pointee == NSError? {
  /// Calls what reports its error beside its result, and throws that error.
  static func thrown<Result>(by body: (NSErrorPointer) -> Result) throws -> Result {
    let error = AutoreleasingUnsafeMutablePointer(nil)
    let result = body(error)
    if let error = error.pointee { throw error }
    return result
  }

  /// Calls what throws, and reports its error beside the result. Nil: it has thrown.
  static func reported<Result>(to error: NSErrorPointer, by body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch let problem {
      error?.pointee = problem as NSError
      return nil
    }
  }

  /// For `error: &error`: what is reported by `body` lands in `error`, which stays as it is if nothing is.
  static func copied<Result>(to error: inout NSError?, by body: (NSErrorPointer) -> Result) -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer(nil)
    let result = body(pointer)
    if let problem = pointer.pointee { error = problem }
    return result
  }
}
