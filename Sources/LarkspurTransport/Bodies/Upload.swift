import LarkspurBytes
import LarkspurIO

/// The part of a request's body that is not in the output queue yet.
enum Upload {
  case none
  case bytes([[UInt8]])
  /// The range is the part not yet sent.
  case lent(Range<Int>, (Range<Int>) -> [UInt8])
  case file(FileUpload)
  case produced(BodyWriter)

  /// The number of bytes, as far as it is known.
  var byteCount: Int {
    switch self {
    case .none: 0
    case .bytes(let pieces): pieces.reduce(0) { $0 + $1.count }
    case .lent(let rest, _): rest.count
    case .file(let file): file.remaining
    case .produced(let writer): writer.missing ?? 0
    }
  }

  /// Whether there is something to fetch. If not, the channel's subscriber is woken as soon as there is.
  func isReady(waking channel: Channel) -> Bool {
    switch self {
    case .none: false
    case .bytes, .lent, .file: true
    case .produced(let writer): writer.isReady(waking: channel)
    }
  }
}

/// A part of a file that is being sent.
final class FileUpload {
  let file: OpenFile
  var offset: Int
  var remaining: Int
  /// Whether the kernel can send from the file. Otherwise the file is read.
  var isSendable: Bool
  private let status: FileStatus

  /// - Parameter earlier: The status that the file must have, or `nil` for its current status. With a status the file
  ///   is read, because the kernel sends the file's content at the time a packet leaves, which is later than any check.
  init(
    _ file: OpenFile, offset: Int, length: Int, unchangedSince earlier: FileStatus?, by kernel: any Kernel
  ) throws(BodyFailure) {
    self.file = file
    self.offset = offset
    remaining = length
    isSendable = earlier == nil
    if let earlier { status = earlier } else { status = try Self.status(of: file, by: kernel) }
    let size = status.size
    guard offset >= 0, length >= 0, offset <= size, length <= size - offset else { throw .fileChanged }
  }

  /// Throws if the file has changed. Called before the kernel sends a piece, and after a piece has been read. The server
  /// never takes a mixture of two files that are read for complete. The file system's clock sets the limit: two changes
  /// within one of its ticks (a few milliseconds) look like one.
  func check(by kernel: any Kernel) throws(BodyFailure) {
    guard try Self.status(of: file, by: kernel) == status else { throw .fileChanged }
  }

  private static func status(of file: OpenFile, by kernel: any Kernel) throws(BodyFailure) -> FileStatus {
    do throws(Errno) { return try file.status(by: kernel) } catch { throw .fileUnreadable(error) }
  }

  func advance(by count: Int) {
    offset += count
    remaining -= count
  }
}
