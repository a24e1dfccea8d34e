import Foundation
import Larkspur

/// A sign on a terminal that something is fetched anew, in the place of `UIRefreshControl` and its category of AFNetworking's:
/// an activity indicator under the names of that class.
open class AFTerminalRefreshControl: AFTerminalActivityIndicatorView, @unchecked Sendable {
  /// Whether it turns.
  open var isRefreshing: Bool { isAnimating }

  /// Turns until ``endRefreshing()``.
  open func beginRefreshing() { startAnimating() }

  /// Ends it, and takes the line away.
  open func endRefreshing() { stopAnimating() }

  /// Turns while the task runs.
  open func setRefreshingWithStateOf(_ task: URLSessionTask) { setAnimatingWithStateOf(task) }
}
