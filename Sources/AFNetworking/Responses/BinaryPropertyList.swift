import Foundation

/// Measures the expanded size of a binary property list, without expanding it.
///
/// Foundation reads an object anew for each reference to it. A list of 40 nested arrays, each of which refers to the
/// next one twice, has a few hundred bytes and expands to a million million objects.
///
/// The format: the objects; a table with the offset of each object; and a trailer of 32 bytes, with the position of the
/// table and the width of its numbers.
struct BinaryPropertyList {
  private let bytes: [UInt8]
  private let offsetBytes: Int
  private let referenceBytes: Int
  private let count: Int
  private let top: Int
  private let table: Int

  /// Reads the trailer.
  ///
  /// - Returns: The list, or `nil` if the bytes are not a complete binary property list. Foundation then reports the
  ///   problem.
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

  /// Whether the list expands to more than `limit` units, when Foundation reads one object for each reference. See
  /// `size(of:)` for the unit.
  func hasMore(than limit: Int) -> Bool {
    // The expanded size of each object. Zero marks an object that is still being measured, and so refers to itself.
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
        // Each reference takes at least one byte, unless objects overlap.
        references += path[path.count - 1].children.count
        if references > bytes.count { return true }
      }
    }
    return false
  }

  /// The members of an array, a set or a dictionary. Empty for an incomplete object.
  private func children(of object: Int) -> [Int] {
    guard referenceBytes > 0, let (kind, members, start) = head(of: object), [0xa, 0xb, 0xc, 0xd].contains(kind)
    else { return [] }
    let room = (bytes.count - start) / referenceBytes
    guard members <= (kind == 0xd ? room / 2 : room) else { return [] }
    return (0..<(kind == 0xd ? 2 * members : members)).compactMap {
      number(at: start, index: $0, bytes: referenceBytes)
    }
  }

  /// The object's own size in units: 1, and 1 more for each 16 bytes of a text or of data.
  private func size(of object: Int) -> Int {
    guard let (kind, count, _) = head(of: object), [0x4, 0x5, 0x6, 0x7].contains(kind) else { return 1 }
    return 1 + min(count, bytes.count) / 16
  }

  /// The object's kind, its length, and the position of its content.
  private func head(of object: Int) -> (kind: UInt8, length: Int, start: Int)? {
    guard object < count, let offset = number(at: table, index: object, bytes: offsetBytes), offset < bytes.count else {
      return nil
    }
    let (kind, nibble, start) = (bytes[offset] >> 4, Int(bytes[offset] & 15), offset + 1)
    guard nibble == 15 else { return (kind, nibble, start) }
    // The length does not fit into four bits: it follows as an integer object.
    guard start < bytes.count, bytes[start] >> 4 == 1 else { return nil }
    let size = 1 << Int(bytes[start] & 15)
    return Self.number(bytes, at: start + 1, bytes: size).map { (kind, $0, start + 1 + size) }
  }

  private func number(at start: Int, index: Int, bytes size: Int) -> Int? {
    let (distance, isTooFar) = index.multipliedReportingOverflow(by: size)
    let (position, isAlsoTooFar) = start.addingReportingOverflow(distance)
    return isTooFar || isAlsoTooFar ? nil : Self.number(bytes, at: position, bytes: size)
  }

  /// Reads a big-endian number of `size` bytes.
  private static func number(_ bytes: [UInt8], at start: Int, bytes size: Int) -> Int? {
    guard size > 0, size <= 8, start >= 0, start <= bytes.count - size else { return nil }
    return Int(exactly: bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}
