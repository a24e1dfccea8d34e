import LarkspurConsole
import LarkspurIO
import Synchronization

/// The log of the transfer service: two files, of which the second one is the earlier part. A line that cannot be written
/// is lost: there is no other place to report the error.
final class ServiceLog: Sendable {
  /// Maximum size of a file in bytes. The log has at most two.
  static let bytesMax = 1 << 20
  /// Maximum size of a line in bytes.
  static let lineBytesMax = 4096
  static let name = "service.log"
  static let earlier = "service.log.old"

  private struct State {
    var file: OpenFile?
    var byteCount = 0
  }

  private let directory: Directory
  private let now: @Sendable () -> Int64
  private let state = Mutex(State())

  /// - Parameters:
  ///   - path: The directory of the log. It is created with mode 0700.
  ///   - now: Returns the seconds since 1970.
  init(
    directory path: String, now: @escaping @Sendable () -> Int64 = { LinuxKernel.shared.date() }
  ) throws(Errno) {
    directory = try Directory.ofOwner(at: path)
    self.now = now
  }

  func add(_ line: String) {
    let text = Self.time(now()) + " " + Format.visible(line.utf8.prefix(Self.lineBytesMax)) + "\n"
    state.withLock { state in
      do throws(Errno) {
        try open(&state)
        try state.file?.write(text)
        state.byteCount += text.utf8.count
      } catch {
        state.file = nil
      }
    }
  }

  /// Opens the file, or a new one if it is full. A second service, which ends at once, may write to it as well.
  private func open(_ state: inout State) throws(Errno) {
    if state.file != nil, state.byteCount < Self.bytesMax { return }
    state.file = nil
    var file = try directory.openAppending(Self.name)
    var size = try file.byteCount()
    if size >= Self.bytesMax {
      try directory.rename(Self.name, to: Self.earlier)
      file = try directory.openAppending(Self.name)
      size = try file.byteCount()
    }
    (state.file, state.byteCount) = (file, size)
  }

  /// Returns all lines that are kept.
  func text() throws(Errno) -> String {
    var text = ""
    for name in [Self.earlier, Self.name] {
      do throws(Errno) {
        text += String(decoding: try directory.read(name, atMost: 2 * Self.bytesMax), as: UTF8.self)
      } catch .noSuchFile {}
    }
    return text
  }

  /// Formats a time: `2026-11-27 12:34:56`, in UTC.
  static func time(_ seconds: Int64) -> String {
    let ofDay = (seconds % 86_400 + 86_400) % 86_400
    let parts = [ofDay / 3600, ofDay / 60 % 60, ofDay % 60]
    return Format.date(seconds) + " "
      + parts.map { Format.padded("\($0)", to: 2, with: "0", atEnd: false) }.joined(separator: ":")
  }
}
