import Larkspur
import LarkspurConsole
import LarkspurIO
import Synchronization

/// The progress of several downloads: on a terminal a line for each that runs, and one for the sum; otherwise a line for
/// each that has ended. For any thread.
///
/// ```
/// a.bin                     37% [====>         ]  23.7 MiB of 64.0 MiB  4.3 MiB/s  0:07 left
/// b.bin                     12% [=>            ]  …
/// 3 of 12 files             402.1 MiB  8.1 MiB/s
/// ```
final class DownloadBoard: Sendable {
  /// A download that runs.
  private struct Row {
    var number: Int
    var name: String
    var download: Download
  }

  private struct State {
    var rows: [Row] = []
    /// The lines of downloads that have ended, which are not written yet.
    var news: [String] = []
    /// The number of lines that the next ones replace.
    var drawn = 0
    var endedCount = 0
    /// The bytes that ended downloads have received.
    var endedBytes = 0
    var isStopped = false
  }

  /// Limit of lines for downloads. The sum counts all.
  private static let rowsMax = 16
  private static let nameColumns = 24

  private let count: Int
  private let terminal: OpenFile?
  private let isSilent: Bool
  private let state = Mutex(State())

  /// - Parameters:
  ///   - count: The number of all downloads.
  ///   - terminal: The terminal, or `nil` if there is none.
  ///   - isSilent: Whether no progress is shown. Failures are.
  init(count: Int, on terminal: OpenFile?, isSilent: Bool) {
    self.count = count
    self.terminal = isSilent ? nil : terminal
    self.isSilent = isSilent
  }

  /// Adds a download that begins, and cancels it if no more may run.
  func begin(_ number: Int, _ name: String, _ download: Download) {
    let isStopped = state.withLock { state in
      state.rows.append(Row(number: number, name: name, download: download))
      return state.isStopped
    }
    if isStopped { download.cancel() }
  }

  /// Takes the end of a download.
  ///
  /// - Parameter message: The message of its failure, or `nil` for a success.
  func end(_ number: Int, _ file: Download.File?, failure message: String?) {
    let line: String? = state.withLock { state in
      guard let index = state.rows.firstIndex(where: { $0.number == number }) else { return nil }
      let row = state.rows.remove(at: index)
      let received = file?.received ?? 0
      state.endedCount += 1
      state.endedBytes += received
      guard let file, !isSilent, terminal != nil || count > 1 else { return nil }
      let line = Self.padded(row.name) + Format.bytes(file.size)
      if terminal != nil { state.news.append(line) }
      return terminal == nil ? line : nil
    }
    if let line { Console.note(line) }
    guard let message else { return }
    // Under the lines that are there, which the next ones do not replace.
    if terminal != nil { state.withLock { $0.drawn = 0 } }
    Console.complain(message)
  }

  /// Cancels all downloads, and those that begin later.
  func stop() {
    let downloads = state.withLock { state in
      state.isStopped = true
      return state.rows.map(\.download)
    }
    for download in downloads { download.cancel() }
  }

  /// Whether `stop` was called.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  // MARK: - The terminal

  /// Writes the current lines over the earlier ones.
  func draw() {
    guard let terminal else { return }
    let columns = (terminal.terminalColumns ?? 80) - 1
    let text = state.withLock { state in
      let states = state.rows.map { ($0.name, $0.download.state) }
      let rows = states.prefix(Self.rowsMax).map { name, state in
        let reading = ProgressBar.Reading(received: state.received, total: state.total, bytesPerSecond: state.rate)
        return Self.padded(name) + ProgressBar.line(reading, columns: columns - Self.nameColumns - 2)
      }
      let sum = ProgressBar.Reading(
        received: state.endedBytes + states.reduce(0) { $0 + $1.1.received }, total: nil,
        bytesPerSecond: states.reduce(0) { $0 + $1.1.rate })
      let total =
        count > 1
        ? [Self.padded("\(state.endedCount) of \(count) files") + ProgressBar.line(sum, columns: columns)] : []
      let lines = (state.news + rows + total).map { $0.prefix(columns) + "\u{1b}[K\n" }
      // ESC [ A goes up, and ESC [ J erases the rest of the screen.
      let up = state.drawn > 0 ? "\u{1b}[\(state.drawn)A" : ""
      state.news = []
      state.drawn = rows.count + total.count
      return "\r" + up + lines.joined() + "\u{1b}[J"
    }
    try? terminal.write(text)
  }

  /// Returns a name in a column, without characters that would change the terminal. A long one loses its beginning.
  private static func padded(_ name: String) -> String {
    let text = Format.visible(name.utf8)
    let short = text.count > nameColumns ? "…" + text.suffix(nameColumns - 1) : text
    return Format.padded(short, to: nameColumns) + "  "
  }
}
