import Foundation
import LarkspurIO

/// A program or a shared library: an ELF file of this machine's kind.
///
/// The file is not trusted: offsets and counts in it are checked against its size, and pieces of limited size are in
/// memory.
package struct ProgramFile {
  /// The reason why a file cannot be checked.
  package struct Unreadable: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }

    static let damaged = Unreadable("the file is damaged, or cut short")
  }

  package let path: String
  /// The names of the sections, each after a zero byte, or `nil` if the file has none, which a program does not need.
  private(set) var sectionNames: Data?
  private let handle: FileHandle

  /// The size of the pieces that the file is searched in, and the maximum size of the section names, in bytes.
  private static let pieceMax = 1 << 20

  package init(_ path: String) throws(Unreadable) {
    self.path = path
    do {
      switch try FilePaths.kind(of: path) {
      case nil: throw Errno.noSuchFile
      case .directory: throw Errno.isDirectory
      case .other: throw Unreadable("not a regular file")
      case .regularFile: break
      }
      // Opening does not block, even if a pipe has meanwhile taken the file's place, and gives an errno on failure.
      _ = try OpenFile(readingRegular: path)
      handle = try FileHandle(forReadingFrom: URL(filePath: path))
    } catch {
      throw error as? Unreadable ?? Unreadable("\(error)")
    }
    let kind = try read(at: 0, count: 20, else: Unreadable("not an ELF file"))
    guard kind.starts(with: "\u{7f}ELF".utf8) else { throw Unreadable("not an ELF file") }
    // The class, the byte order and the machine: `ldd` lists the libraries of programs that run here.
    let own = try? FileHandle(forReadingFrom: URL(filePath: "/proc/self/exe")).read(upToCount: 20)
    guard let own, [4, 5, 18, 19].allSatisfy({ own.count > $0 && own[$0] == kind[$0] }) else {
      throw Unreadable("an ELF file for another kind of machine")
    }
    // 2 is a program at a fixed address; 3 is any other program, or a shared library.
    guard [2, 3].contains(Self.number(in: kind, at: 16, size: 2)) else {
      throw Unreadable("an ELF file, but neither a program nor a shared library")
    }
    sectionNames = try readSectionNames()
  }

  private func readSectionNames() throws(Unreadable) -> Data? {
    let header = try read(at: 0, count: 64)
    let count = Self.number(in: header, at: 60, size: 2)
    let table = Self.number(in: header, at: 40, size: 8)
    guard table > 0, count > 0 else { return nil }
    // The table is at the end of a file, so a file that was cut short lacks a part of it.
    let rows = try read(at: table, count: count * 64)
    let row = Self.number(in: header, at: 62, size: 2) * 64
    guard Self.number(in: header, at: 58, size: 2) == 64, row < rows.count else { throw .damaged }
    return try read(
      at: Self.number(in: rows, at: row + 24, size: 8), count: Self.number(in: rows, at: row + 32, size: 8))
  }

  /// Reads a little-endian number, which is limited to `Int.max`. The bytes are there.
  private static func number(in bytes: Data, at offset: Int, size: Int) -> Int {
    Int(clamping: bytes[offset..<offset + size].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  private func read(at offset: Int, count: Int, else failure: Unreadable = .damaged) throws(Unreadable) -> Data {
    guard count <= Self.pieceMax << 2 else { throw failure }
    let bytes: Data?
    do {
      try handle.seek(toOffset: UInt64(offset))
      bytes = count == 0 ? Data() : try handle.read(upToCount: count)
    } catch {
      throw failure
    }
    guard let bytes, bytes.count == count else { throw failure }
    return bytes
  }

  /// Whether the file has a section whose name begins with `name`. A name that ends with a zero byte is a whole name.
  func hasSection(_ name: String) -> Bool { sectionNames?.range(of: Data("\0\(name)".utf8)) != nil }

  /// Returns those of the texts that are in the file.
  func texts(_ texts: Set<String>) throws(Unreadable) -> Set<String> {
    var left = texts.map { (text: $0, bytes: Data($0.utf8)) }
    let overlap = max((left.map(\.bytes.count).max() ?? 0) - 1, 0)
    var piece = Data()
    do {
      try handle.seek(toOffset: 0)
      while !left.isEmpty, let bytes = try handle.read(upToCount: Self.pieceMax), !bytes.isEmpty {
        piece = piece.suffix(overlap) + bytes
        left.removeAll { piece.range(of: $0.bytes) != nil }
      }
    } catch {
      throw Unreadable("\(error)")
    }
    return texts.subtracting(left.map(\.text))
  }
}
