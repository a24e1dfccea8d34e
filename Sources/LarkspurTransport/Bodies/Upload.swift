import LarkspurIO

/// What of a request's body is not in the queue yet.
enum Upload {
  case none
  case bytes([[UInt8]])
  case file(FileUpload)
  case produced(BodyWriter)

  /// How large it is, as far as that is known.
  var byteCount: Int {
    switch self {
    case .none: 0
    case .bytes(let pieces): pieces.reduce(0) { $0 + $1.count }
    case .file(let file): file.remaining
    case .produced(let writer): writer.missing ?? 0
    }
  }

  /// Whether there is something to go on with. If not yet, the channel's waiter is woken as soon as there is.
  func isReady(waking channel: Channel) -> Bool {
    switch self {
    case .none: false
    case .bytes, .file: true
    case .produced(let writer): writer.isReady(waking: channel)
    }
  }
}

/// A part of a file on its way out.
final class FileUpload {
  let file: OpenFile
  var offset: Int
  var remaining: Int
  /// Whether the kernel can send from it. Otherwise it is read.
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

  /// Looks before each piece, and so before the last: a server is not to take for complete what was changed under our
  /// hands.
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
