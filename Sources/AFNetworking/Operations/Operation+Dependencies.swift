import Foundation

extension Operation {
  /// For a `deinit`. Foundation's operations know those that depend on them by address, and tell them when they finish:
  /// one that goes earlier, as it may when it was cancelled or nobody ran it, has to be forgotten first.
  func leaveDependencies() { for dependency in dependencies { removeDependency(dependency) } }
}
