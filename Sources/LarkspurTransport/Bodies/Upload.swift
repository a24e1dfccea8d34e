import LarkspurIO

/// The part of a request's body that is not in the output queue yet.
enum Upload {
  case none
  case bytes([[UInt8]])
  case file(FileUpload)
  case produced(BodyWriter)

  /// The number of bytes, as far as it is known.
  var byteCount: Int {
    switch self {
    case .none: 0
    case .bytes(let pieces): pieces.reduce(0) { $0 + $1.count }
    case .file(let file): file.remaining
    case .produced(let writer): writer.missing ?? 0
    }
  }

  /// Whether there is something to fetch. If not, the channel's subscriber is woken as soon as there is.
  func isReady(waking channel: Channel) -> Bool {
    switch self {
    case .none: false
    case .bytes, .file: true
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
  var isSendable = true
  private let size: Int

  init(_ file: OpenFile, offset: Int, length: Int, by kernel: any Kernel) throws(BodyFailure) {
    do throws(Errno) {
      size = try file.size(by: kernel)
    } catch {
      throw .fileUnreadable(error)
    }
    guard offset >= 0, length >= 0, offset <= size, length <= size - offset else { throw .fileChanged }
    self.file = file
    self.offset = offset
    remaining = length
  }

  /// Throws if the size of the file has changed. Called before each piece, so that the server does not take a file that
  /// changes during the upload for complete.
  func check(by kernel: any Kernel) throws(BodyFailure) {
    let present: Int
    do throws(Errno) {
      present = try file.size(by: kernel)
    } catch {
      throw .fileUnreadable(error)
    }
    guard present == size else { throw .fileChanged }
  }

  func advance(by count: Int) {
    offset += count
    remaining -= count
  }
}
