/// Where a method of Objective-C leaves its error: the place of a variable, or nil if the caller does not want to know.
///
/// Foundation on Linux does not have it. A call says `&error`, as on Darwin; a subclass writes `error?.pointee = ...`.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// Errors by way of pointers. Whoever needs them goes through here, and needs no pointer of its own.
package enum ErrorPlace {
  /// Leaves `error` at the place, if there is one.
  @safe package static func leave(_ error: NSError?, at place: NSErrorPointer) {
    // Safe: the caller has lent the variable for the call that this is part of.
    unsafe place?.pointee = error
  }

  /// What has been left there. Nil: nothing, or there is no place.
  @safe package static func error(at place: NSErrorPointer) -> NSError? {
    // Safe: as above.
    unsafe place?.pointee
  }
}
