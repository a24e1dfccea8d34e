import Foundation
import Larkspur

/// A view that turns while a task runs, as `UIActivityIndicatorView` with its AFNetworking category.
///
/// The methods are called on the thread of the view. See <doc:Views>.
public protocol AFActivityTarget: AnyObject {
  /// Starts the animation.
  func startAnimating()

  /// Stops the animation. Does nothing if there is none.
  func stopAnimating()

  /// The view's slot: a constant that the view creates with itself.
  var taskSlot: AFTaskSlot { get }

  /// Animates while a task runs, and not while it is suspended or after its end. Stops the animation if `task` is `nil`.
  /// There is a default implementation.
  func setAnimatingWithStateOf(_ task: URLSessionTask?)
}

extension AFActivityTarget {
  /// Animates while a task runs, and not while it is suspended or after its end. Stops the animation if `task` is `nil`.
  public func setAnimatingWithStateOf(_ task: URLSessionTask?) {
    guard let task else {
      taskSlot.cancel()
      return stopAnimating()
    }
    taskSlot.follow(task) {
      $0.state == .running
    } show: { [weak self] isRunning in
      if isRunning { self?.startAnimating() } else { self?.stopAnimating() }
    }
  }
}

/// A control that shows that a list is being renewed, as `UIRefreshControl` with its AFNetworking category.
///
/// The methods are called on the thread of the view. See <doc:Views>.
public protocol AFRefreshTarget: AnyObject {
  /// Starts the animation.
  func beginRefreshing()

  /// Stops the animation. Does nothing if there is none.
  func endRefreshing()

  /// The control's slot: a constant that the control creates with itself.
  var taskSlot: AFTaskSlot { get }

  /// Animates while a task runs, and not while it is suspended or after its end. There is a default implementation.
  func setRefreshingWithStateOf(_ task: URLSessionTask)
}

extension AFRefreshTarget {
  /// Animates while a task runs, and not while it is suspended or after its end.
  public func setRefreshingWithStateOf(_ task: URLSessionTask) {
    taskSlot.follow(task) {
      $0.state == .running
    } show: { [weak self] isRunning in
      if isRunning { self?.beginRefreshing() } else { self?.endRefreshing() }
    }
  }
}
