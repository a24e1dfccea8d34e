import Foundation

extension Operation {
  /// Removes dependencies, so that these operations drop this one. Foundation's operations store their dependents by
  /// address, and look them up when they finish, under their own lock.
  ///
  /// A finished operation removes its dependencies at once, because it may be freed before these finish, for example
  /// after a cancellation, or while one of them holds that lock. The call in `deinit` is for operations that have never
  /// run.
  func leave(_ dependencies: [Operation]) { for dependency in dependencies { removeDependency(dependency) } }
}
