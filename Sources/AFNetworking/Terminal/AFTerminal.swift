import Foundation

/// Where a progress bar or an activity indicator draws: one line of a terminal, again and again.
///
/// A place that is no terminal, such as a file, gets what is left at the end, and nothing before.
public struct AFTerminal: Sendable {
  private let write: @Sendable (String) -> Void

  /// Whether a line can be drawn over.
  public let isInteractive: Bool
  /// How many columns a line has.
  public let columns: Int

  /// - Parameters:
  ///   - isInteractive: Whether a carriage return and `ESC [ K` do there what they do on a terminal.
  ///   - columns: How many characters a line has; at least 10.
  ///   - write: Takes each piece of text, on any thread, one at a time for each thing that draws.
  public init(isInteractive: Bool = true, columns: Int = 80, write: @escaping @Sendable (String) -> Void) {
    self.isInteractive = isInteractive
    self.columns = max(columns, 10)
    self.write = write
  }

  /// A file that may be a terminal. Its width is what the variable `COLUMNS` says, or 80.
  ///
  /// - Parameter file: Standard error, so that what a program prints stays apart.
  public init(_ file: FileHandle = .standardError) {
    let columns = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) } ?? 80
    let descriptor = file.fileDescriptor
    // A file that cannot be written to any more has nobody who looks at it.
    self.init(isInteractive: isatty(descriptor) != 0, columns: columns) { text in
      try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: Data(text.utf8))
    }
  }

  /// Draws the line in the place of what it shows.
  func draw(_ line: String) {
    guard isInteractive else { return }
    // One column stays free: a full line would wrap on some terminals. ESC [ K takes away what a longer line has left.
    write("\r\(line.prefix(columns - 1))\u{1b}[K")
  }

  /// Draws the line, and leaves it.
  func leave(_ line: String) {
    draw(line)
    write(isInteractive ? "\n" : "\(line)\n")
  }

  /// Takes the line away.
  func clear() {
    if isInteractive { write("\r\u{1b}[K") }
  }
}
