import Foundation
import Larkspur
import Synchronization

/// A sign on a terminal that something is going on, in the place of `UIActivityIndicatorView` and its category of
/// AFNetworking's.
///
/// ```swift
/// let indicator = AFTerminalActivityIndicatorView(label: "Loading")
/// indicator.setAnimatingWithStateOf(task)
/// task.resume()
/// ```
///
/// It turns while the task runs, stands still while it is suspended, and is gone when it is over. It draws on a queue of its own.
/// Keep it for as long as it is to draw.
open class AFTerminalActivityIndicatorView: NSObject, @unchecked Sendable {
  /// How long a drawing stays, in seconds.
  public static let drawIntervalDefault = 0.1
  static let pictures = ["|", "/", "-", "\\"]

  private struct State {
    var label = ""
    var isAnimating = false
    var picture = 0
    /// Counts what it was attached to: an earlier task draws no more.
    var attachment = 0
  }

  private let terminal: AFTerminal
  private let ticker: TaskTicker
  private let state = Mutex(State())
  /// Held while something is drawn: what was decided first is drawn first, and nothing behind the end. Whoever takes the
  /// text may call back.
  private let pen = NSRecursiveLock()

  /// - Parameters:
  ///   - terminal: Where it draws: standard error at first.
  ///   - label: Stands behind the sign.
  ///   - drawInterval: How long a drawing stays, in seconds.
  public init(
    terminal: AFTerminal = AFTerminal(), label: String = "",
    drawInterval: TimeInterval = AFTerminalActivityIndicatorView.drawIntervalDefault
  ) {
    self.terminal = terminal
    ticker = TaskTicker(label: "larkspur.terminal.activity", seconds: drawInterval)
    super.init()
    state.withLock { $0.label = label }
  }

  /// Whether it turns.
  open var isAnimating: Bool { state.withLock { $0.isAnimating } }

  /// What stands behind the sign.
  open var label: String {
    get { state.withLock { $0.label } }
    set { state.withLock { $0.label = newValue } }
  }

  /// Turns until ``stopAnimating()``.
  open func startAnimating() {
    let attachment = attach()
    ticker.start { [weak self] in self?.show(.running, attachment: attachment) ?? false }
  }

  /// Ends it, and takes the line away.
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

  /// Turns while the task runs. Nil: it stops.
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

  /// Whether there is more to show.
  private func show(_ task: URLSessionTask.State, attachment: Int) -> Bool {
    enum Drawing {
      case line(String)
      case clear
      case nothing
    }
    pen.lock()
    defer { pen.unlock() }
    let (drawing, goesOn) = state.withLock { state -> (Drawing, Bool) in
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
    return goesOn
  }
}
