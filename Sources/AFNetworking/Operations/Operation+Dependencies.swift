import Foundation

extension Operation {
  /// Has those that this one depends on forget it. Foundation's operations know who depends on them by address, look for them
  /// when they finish, and hold their own lock meanwhile.
  ///
  /// So who has finished takes its leave at once: it may be freed before they finish, as when it was cancelled, or within
  /// that lock. In a `deinit` it is for those that have never run.
  func leave(_ dependencies: [Operation]) { for dependency in dependencies { removeDependency(dependency) } }
}
