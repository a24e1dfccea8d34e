import Foundation
import Larkspur
import Synchronization

/// A progress bar on a terminal, in place of `UIProgressView` and its AFNetworking category.
///
/// ```swift
/// let bar = AFTerminalProgressView()
/// bar.setProgressWithDownloadProgressOf(task, animated: true)
/// task.resume()
/// ```
///
/// ```
/// photo.jpg  37% [===========>                  ] 23.7 MiB of 64.0 MiB
/// ```
///
/// Drawing happens on a private queue. The last line stays when the task is over. Keep a reference to the view for as
/// long as it should draw.
open class AFTerminalProgressView: NSObject, AFProgressTarget, @unchecked Sendable {
  /// The default interval between two drawings, in seconds.
  public static let drawIntervalDefault = 0.1

  private struct State {
    var progress: Float = 0
    var label = ""
    var numbers = ""
    var isOver = false
    /// Number of attached tasks so far. Callbacks of an earlier task draw nothing.
    var attachment = 0
  }

  private let terminal: AFTerminal
  private let ticker: TaskTicker
  private let state = Mutex(State())
  /// Held while drawing, so that drawings appear in the order of the changes. Recursive, because the terminal's `write`
  /// closure may call the view.
  private let pen = NSRecursiveLock()

  /// Creates a progress bar.
  ///
  /// - Parameters:
  ///   - terminal: The output: standard error by default.
  ///   - label: The text before the bar.
  ///   - drawInterval: The interval between two drawings, in seconds.
  public init(
    terminal: AFTerminal = AFTerminal(), label: String = "",
    drawInterval: TimeInterval = AFTerminalProgressView.drawIntervalDefault
  ) {
    self.terminal = terminal
    ticker = TaskTicker(label: "larkspur.terminal.progress", seconds: drawInterval)
    super.init()
    state.withLock { $0.label = label }
  }

  /// The slot of ``AFProgressTarget``. The view does not use it: it follows a task by itself.
  public let taskSlot = AFTaskSlot()

  /// The completed share, from 0 to 1. Setting this property draws the bar.
  open var progress: Float {
    get { state.withLock { $0.progress } }
    set { setProgress(newValue, animated: false) }
  }

  /// The text before the bar.
  open var label: String {
    get { state.withLock { $0.label } }
    set { state.withLock { $0.label = newValue } }
  }

  /// Sets the completed share, and draws the bar. A terminal does not animate: the parameter `animated` only keeps the
  /// signature of AFNetworking.
  open func setProgress(_ progress: Float, animated: Bool) {
    pen.lock()
    defer { pen.unlock() }
    state.withLock { state in
      state.progress = progress.isNaN ? 0 : min(max(progress, 0), 1)
      state.numbers = ""
    }
    terminal.draw(line)
  }

  /// Shows the share of a task's request body that has been sent, until the task is over.
  open func setProgressWithUploadProgressOf(_ task: URLSessionUploadTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesSent, $0.countOfBytesExpectedToSend) }
  }

  /// Shows the share of a download that has been received, until the task is over.
  open func setProgressWithDownloadProgressOf(_ task: URLSessionDownloadTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesReceived, $0.countOfBytesExpectedToReceive) }
  }

  /// Shows the share of any task's response that has been received, until the task is over. Only AFNetworking on Linux
  /// has this method.
  open func setProgressWithDownloadProgressOf(_ task: URLSessionTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesReceived, $0.countOfBytesExpectedToReceive) }
  }

  /// The text of the line.
  var line: String {
    let (label, progress, numbers) = state.withLock { ($0.label, $0.progress, $0.numbers) }
    return ProgressLine.text(label: label, share: progress, numbers: numbers, columns: terminal.columns - 1)
  }

  private func attach(to task: URLSessionTask, _ counts: @escaping @Sendable (URLSessionTask) -> (Int64, Int64)) {
    let attachment = state.withLock { state in
      state.attachment += 1
      return state.attachment
    }
    ticker.start { [weak self] in
      // Read the state first: if the task is over, the counts that follow are final.
      let isOver = task.state == .completed
      let (done, expected) = counts(task)
      return self?.show(done, of: expected, isOver: isOver, attachment: attachment) ?? false
    }
  }

  /// Draws the progress.
  ///
  /// - Returns: Whether to call this again after the interval.
  private func show(_ done: Int64, of expected: Int64, isOver: Bool, attachment: Int) -> Bool {
    pen.lock()
    defer { pen.unlock() }
    let isCurrent = state.withLock { state in
      guard state.attachment == attachment else { return false }
      state.progress = transferShare(done, of: expected)
      state.numbers = ProgressLine.numbers(done, of: expected)
      return true
    }
    guard isCurrent else { return false }
    if isOver { terminal.leave(line) } else { terminal.draw(line) }
    return !isOver
  }
}
