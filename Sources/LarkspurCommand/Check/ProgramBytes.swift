import Foundation
import LarkspurIO

/// The bytes of a program. Parts are read as they are needed.
///
/// Offsets and counts come from the file and are not trusted: each read is checked against the file's size and against
/// a limit.
package struct ProgramBytes {
  /// The maximum size of a part, in bytes. The name table of a debug build has some 10 MB.
  static let partMax: UInt64 = 512 << 20

  let count: UInt64
  /// Reads `count` bytes at an offset. The caller has checked both.
  private let load: (_ offset: UInt64, _ count: Int) throws(ELFError) -> [UInt8]

  package init(_ bytes: [UInt8]) {
    count = UInt64(bytes.count)
    load = { (offset, count) throws(ELFError) in Array(bytes.dropFirst(Int(clamping: offset)).prefix(count)) }
  }

  package init(reading path: String) throws(ELFError) {
    do {
      switch try FilePaths.kind(of: path) {
      case nil: throw Errno.noSuchFile
      case .directory: throw Errno.isDirectory
      case .other: throw ELFError.unreadable("not a regular file")
      case .regularFile: break
      }
      // Opening does not block, even if a pipe has meanwhile taken the file's place, and gives an errno on failure.
      _ = try OpenFile(readingRegular: path)
      let handle = try FileHandle(forReadingFrom: URL(filePath: path))
      count = try handle.seekToEnd()
      load = { (offset, count) throws(ELFError) in try Self.read(handle, at: offset, count: count) }
    } catch let error as ELFError {
      throw error
    } catch {
      throw .unreadable("\(error)")
    }
  }

  func bytes(at offset: UInt64, count: UInt64, of part: String) throws(ELFError) -> [UInt8] {
    guard count <= Self.partMax else { throw .tableTooLarge }
    let (end, overflows) = offset.addingReportingOverflow(count)
    guard !overflows, end <= self.count else { throw .damaged(part) }
    let bytes = try load(offset, Int(count))
    // A file can shrink while it is read.
    guard bytes.count == Int(count) else { throw .damaged(part) }
    return bytes
  }

  private static func read(_ handle: FileHandle, at offset: UInt64, count: Int) throws(ELFError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    do {
      try handle.seek(toOffset: offset)
      let file = OpenFile(lent: handle.fileDescriptor)
      while bytes.count < count {
        let piece = try file.read(atMost: min(count - bytes.count, 1 << 20))
        if piece.isEmpty { break }
        bytes += piece
      }
    } catch {
      throw .unreadable("\(error)")
    }
    return bytes
  }
}
