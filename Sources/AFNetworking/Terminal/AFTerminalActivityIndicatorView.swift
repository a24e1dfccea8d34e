import Foundation
import Larkspur
import Synchronization

/// An activity indicator on a terminal, in place of `UIActivityIndicatorView` and its AFNetworking category.
///
/// ```swift
/// let indicator = AFTerminalActivityIndicatorView(label: "Loading")
/// indicator.setAnimatingWithStateOf(task)
/// task.resume()
/// ```
///
/// The indicator turns while the task runs, and is hidden while the task is suspended and after its end. Drawing
/// happens on a private queue. Keep a reference to the view for as long as it should draw.
open class AFTerminalActivityIndicatorView: NSObject, AFActivityTarget, @unchecked Sendable {
  /// The default interval between two drawings, in seconds.
  public static let drawIntervalDefault = 0.1
  static let pictures = ["|", "/", "-", "\\"]

  private struct State {
    var label = ""
    var isAnimating = false
    var picture = 0
    /// Number of attachments. Callbacks of an earlier attachment draw nothing.
    var attachment = 0
  }

  private let terminal: AFTerminal
  private let ticker: TaskTicker
  private let state = Mutex(State())
  /// Held while drawing, so that drawings appear in the order of their decisions, and not after the end. Recursive,
  /// because the terminal's `write` closure may call the view.
  private let pen = NSRecursiveLock()

  /// Creates an indicator.
  ///
  /// - Parameters:
  ///   - terminal: The output: standard error by default.
  ///   - label: The text after the indicator.
  ///   - drawInterval: The interval between two drawings, in seconds.
  public init(
    terminal: AFTerminal = AFTerminal(), label: String = "",
    drawInterval: TimeInterval = AFTerminalActivityIndicatorView.drawIntervalDefault
  ) {
    self.terminal = terminal
    ticker = TaskTicker(label: "larkspur.terminal.activity", seconds: drawInterval)
    super.init()
    state.withLock { $0.label = label }
  }

  /// The slot of ``AFActivityTarget`` and ``AFRefreshTarget``. The view does not use it: it follows a task by itself.
  public let taskSlot = AFTaskSlot()

  /// Whether the indicator turns.
  open var isAnimating: Bool { state.withLock { $0.isAnimating } }

  /// The text after the indicator.
  open var label: String {
    get { state.withLock { $0.label } }
    set { state.withLock { $0.label = newValue } }
  }

  /// Starts the animation, which lasts until ``stopAnimating()``.
  open func startAnimating() {
    let attachment = attach()
    ticker.start { [weak self] in self?.show(.running, attachment: attachment) ?? false }
  }

  /// Stops the animation, and erases the line.
  open func stopAnimating() {
    _ = attach()
    ticker.stop()
    pen.withLock {
      let wasAnimating = state.withLock { state in
        defer { state.isAnimating = false }
        return state.isAnimating
      }
      if wasAnimating { terminal.clear() }
    }
  }

  /// Animates while the task runs. Stops the animation if `task` is `nil`.
  open func setAnimatingWithStateOf(_ task: URLSessionTask?) {
    guard let task else { return stopAnimating() }
    let attachment = attach()
    ticker.start { [weak self] in self?.show(task.state, attachment: attachment) ?? false }
  }

  private func attach() -> Int {
    state.withLock { state in
      state.attachment += 1
      return state.attachment
    }
  }

  /// Draws the task's state.
  ///
  /// - Returns: Whether to call this again after the interval.
  private func show(_ task: URLSessionTask.State, attachment: Int) -> Bool {
    enum Drawing {
      case line(String)
      case clear
      case nothing
    }
    pen.lock()
    defer { pen.unlock() }
    let (drawing, continues) = state.withLock { state -> (Drawing, Bool) in
      guard state.attachment == attachment else { return (.nothing, false) }
      let wasAnimating = state.isAnimating
      state.isAnimating = task == .running
      guard state.isAnimating else { return (wasAnimating ? .clear : .nothing, task == .suspended) }
      state.picture = (state.picture + 1) % Self.pictures.count
      let picture = Self.pictures[state.picture]
      return (.line(state.label.isEmpty ? picture : "\(picture) \(state.label)"), true)
    }
    switch drawing {
    case .line(let line): terminal.draw(line)
    case .clear: terminal.clear()
    case .nothing: break
    }
    return continues
  }
}
