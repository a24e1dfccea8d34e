import Foundation

/// The output of a progress bar or an activity indicator: one line of a terminal, drawn repeatedly.
///
/// An output that is not a terminal, such as a file, receives only the final line.
public struct AFTerminal: Sendable {
  private let write: @Sendable (String) -> Void

  /// Whether the line can be redrawn.
  public let isInteractive: Bool
  /// Number of columns of a line.
  public let columns: Int

  /// Creates an output from a closure.
  ///
  /// - Parameters:
  ///   - isInteractive: Whether the output interprets a carriage return and `ESC [ K` as a terminal does.
  ///   - columns: Number of columns of a line; at least 10.
  ///   - write: Receives each piece of text. It is called on any thread, one call at a time for each view that draws.
  public init(isInteractive: Bool = true, columns: Int = 80, write: @escaping @Sendable (String) -> Void) {
    self.isInteractive = isInteractive
    self.columns = max(columns, 10)
    self.write = write
  }

  /// Creates an output for a file that may be a terminal. The width is the value of the environment variable `COLUMNS`,
  /// or 80.
  ///
  /// - Parameter file: Standard error by default, so that the output stays apart from the program's own.
  public init(_ file: FileHandle = .standardError) {
    let columns = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) } ?? 80
    let descriptor = file.fileDescriptor
    // A failed write is ignored: a progress line has no use if it cannot be seen.
    self.init(isInteractive: isatty(descriptor) != 0, columns: columns) { text in
      try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data(text.utf8))
    }
  }

  /// Draws the line over the current one. Does nothing if the output is not interactive.
  func draw(_ line: String) {
    guard isInteractive else { return }
    // The last column stays empty: a full line wraps on some terminals. ESC [ K erases the rest of a longer line.
    write("\r\(line.prefix(columns - 1))\u{1b}[K")
  }

  /// Draws the line and ends it with a newline, so that it stays.
  func leave(_ line: String) {
    draw(line)
    write(isInteractive ? "\n" : "\(line)\n")
  }

  /// Erases the line.
  func clear() {
    if isInteractive { write("\r\u{1b}[K") }
  }
}
