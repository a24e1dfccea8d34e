import Foundation
import Larkspur

/// An activity indicator on a terminal with the names of `UIRefreshControl`, in place of that class and its
/// AFNetworking category.
open class AFTerminalRefreshControl: AFTerminalActivityIndicatorView, AFRefreshTarget, @unchecked Sendable {
  /// Whether the indicator turns.
  open var isRefreshing: Bool { isAnimating }

  /// Starts the animation, which lasts until ``endRefreshing()``.
  open func beginRefreshing() { startAnimating() }

  /// Stops the animation, and erases the line.
  open func endRefreshing() { stopAnimating() }

  /// Animates while the task runs.
  open func setRefreshingWithStateOf(_ task: URLSessionTask) { setAnimatingWithStateOf(task) }
}
