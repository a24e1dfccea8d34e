import Foundation

/// How much a binary property list comes to: its objects, and the bytes of its texts and data. One may be referred to any number
/// of times, and is read anew for each: of 40 arrays that have the next one twice each, in a few hundred bytes, a million million
/// would be made.
///
/// The format: objects, one behind another; a table with the offset of each; and 32 bytes at the end that say where the table
/// is, and how large its numbers are.
struct BinaryPropertyList {
  private let bytes: [UInt8]
  private let offsetBytes: Int
  private let referenceBytes: Int
  private let count: Int
  private let top: Int
  private let table: Int

  /// Nil: it is none, or not whole. Foundation says what is wrong.
  init?(_ data: Data) {
    guard data.starts(with: "bplist".utf8), data.count >= 40 else { return nil }
    bytes = Array(data)
    let trailer = bytes.count - 32
    (offsetBytes, referenceBytes) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
    guard let count = Self.number(bytes, at: trailer + 8, bytes: 8), count <= bytes.count,
      let top = Self.number(bytes, at: trailer + 16, bytes: 8),
      let table = Self.number(bytes, at: trailer + 24, bytes: 8)
    else { return nil }
    (self.count, self.top, self.table) = (count, top, table)
  }

  /// Whether it comes to more than that: read by Foundation, one object for each reference.
  func hasMore(than limit: Int) -> Bool {
    // Of each object: how many it comes to. Zero: it is being counted, and refers to itself.
    var sizes: [Int: Int] = [:]
    var path: [(object: Int, children: [Int], next: Int, size: Int)] = [(top, children(of: top), 0, size(of: top))]
    var references = path[0].children.count
    sizes[top] = 0
    while var last = path.popLast() {
      guard last.next < last.children.count else {
        sizes[last.object] = last.size
        if last.size > limit { return true }
        if !path.isEmpty { path[path.count - 1].size += last.size }
        continue
      }
      let child = last.children[last.next]
      last.next += 1
      if let known = sizes[child] {
        last.size += known
        if last.size > limit { return true }
        path.append(last)
      } else {
        path.append(last)
        sizes[child] = 0
        path.append((child, children(of: child), 0, size(of: child)))
        // Each takes a byte at least, if none lies upon another.
        references += path[path.count - 1].children.count
        if references > bytes.count { return true }
      }
    }
    return false
  }

  /// Those of an array, a set or a dictionary; what is not whole has none.
  private func children(of object: Int) -> [Int] {
    guard referenceBytes > 0, let (kind, members, start) = head(of: object), [0xa, 0xb, 0xc, 0xd].contains(kind)
    else { return [] }
    let room = (bytes.count - start) / referenceBytes
    guard members <= (kind == 0xd ? room / 2 : room) else { return [] }
    return (0..<(kind == 0xd ? 2 * members : members)).compactMap {
      number(at: start, index: $0, bytes: referenceBytes)
    }
  }

  /// One, and one for each 16 bytes of a text or of data.
  private func size(of object: Int) -> Int {
    guard let (kind, count, _) = head(of: object), [0x4, 0x5, 0x6, 0x7].contains(kind) else { return 1 }
    return 1 + min(count, bytes.count) / 16
  }

  /// Its kind, its length, and where its content begins.
  private func head(of object: Int) -> (kind: UInt8, length: Int, start: Int)? {
    guard object < count, let offset = number(at: table, index: object, bytes: offsetBytes), offset < bytes.count else {
      return nil
    }
    let (kind, nibble, start) = (bytes[offset] >> 4, Int(bytes[offset] & 15), offset + 1)
    guard nibble == 15 else { return (kind, nibble, start) }
    // The number stands behind it, as an object of its own.
    guard start < bytes.count, bytes[start] >> 4 == 1 else { return nil }
    let size = 1 << Int(bytes[start] & 15)
    return Self.number(bytes, at: start + 1, bytes: size).map { (kind, $0, start + 1 + size) }
  }

  private func number(at start: Int, index: Int, bytes size: Int) -> Int? {
    let (distance, isTooFar) = index.multipliedReportingOverflow(by: size)
    let (place, isAlsoTooFar) = start.addingReportingOverflow(distance)
    return isTooFar || isAlsoTooFar ? nil : Self.number(bytes, at: place, bytes: size)
  }

  /// A number of so many bytes, the high ones first.
  private static func number(_ bytes: [UInt8], at start: Int, bytes size: Int) -> Int? {
    guard size > 0, size <= 8, start >= 0, start <= bytes.count - size else { return nil }
    return Int(exactly: bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}
