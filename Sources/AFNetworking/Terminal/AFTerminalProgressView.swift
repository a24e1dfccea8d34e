import Foundation
import Larkspur
import Synchronization

/// A progress bar on a terminal, in the place of `UIProgressView` and its category of AFNetworking's.
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
/// It draws on a queue of its own, and leaves its line when the task is over. Keep it for as long as it is to draw.
open class AFTerminalProgressView: NSObject, @unchecked Sendable {
  /// How long a drawing stays, in seconds.
  public static let drawIntervalDefault = 0.1

  private struct State {
    var progress: Float = 0
    var label = ""
    var numbers = ""
    var isOver = false
    /// Counts the tasks that it was attached to: an earlier one draws no more.
    var attachment = 0
  }

  private let terminal: AFTerminal
  private let ticker: TaskTicker
  private let state = Mutex(State())
  /// Held while something is drawn: what was set first is drawn first. Whoever takes the text may call back.
  private let pen = NSRecursiveLock()

  /// - Parameters:
  ///   - terminal: Where it draws: standard error at first.
  ///   - label: Stands in front of the bar.
  ///   - drawInterval: How long a drawing stays, in seconds.
  public init(
    terminal: AFTerminal = AFTerminal(), label: String = "",
    drawInterval: TimeInterval = AFTerminalProgressView.drawIntervalDefault
  ) {
    self.terminal = terminal
    ticker = TaskTicker(label: "larkspur.terminal.progress", seconds: drawInterval)
    super.init()
    state.withLock { $0.label = label }
  }

  /// How much is done, from 0 to 1. Setting it draws.
  open var progress: Float {
    get { state.withLock { $0.progress } }
    set { setProgress(newValue, animated: false) }
  }

  /// What stands in front of the bar.
  open var label: String {
    get { state.withLock { $0.label } }
    set { state.withLock { $0.label = newValue } }
  }

  /// Sets how much is done, and draws. A terminal does not animate: `animated` is there for programs that have it.
  open func setProgress(_ progress: Float, animated: Bool) {
    pen.lock()
    defer { pen.unlock() }
    state.withLock { state in
      state.progress = progress.isNaN ? 0 : min(max(progress, 0), 1)
      state.numbers = ""
    }
    terminal.draw(line)
  }

  /// Shows how much of a task's body has been sent, until it is over.
  open func setProgressWithUploadProgressOf(_ task: URLSessionUploadTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesSent, $0.countOfBytesExpectedToSend) }
  }

  /// Shows how much of a download has come, until it is over.
  open func setProgressWithDownloadProgressOf(_ task: URLSessionDownloadTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesReceived, $0.countOfBytesExpectedToReceive) }
  }

  /// Shows how much of any task's response has come, until it is over. Only AFNetworking on Linux has it.
  open func setProgressWithDownloadProgressOf(_ task: URLSessionTask, animated: Bool) {
    attach(to: task) { ($0.countOfBytesReceived, $0.countOfBytesExpectedToReceive) }
  }

  /// The line as it stands.
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
      // The state first: what is counted then is all of it.
      let isOver = task.state == .completed
      let (done, expected) = counts(task)
      return self?.show(done, of: expected, isOver: isOver, attachment: attachment) ?? false
    }
  }

  /// Whether there is more to show.
  private func show(_ done: Int64, of expected: Int64, isOver: Bool, attachment: Int) -> Bool {
    pen.lock()
    defer { pen.unlock() }
    let isCurrent = state.withLock { state in
      guard state.attachment == attachment else { return false }
      state.progress = expected > 0 ? Float(min(Double(done) / Double(expected), 1)) : 0
      state.numbers = ProgressLine.numbers(done, of: expected)
      return true
    }
    guard isCurrent else { return false }
    if isOver { terminal.leave(line) } else { terminal.draw(line) }
    return !isOver
  }
}
