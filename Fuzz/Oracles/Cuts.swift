/// Ways in which a network might cut bytes into pieces.
package enum Cuts {
  package static func whole(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] { [bytes[...]] }

  package static func single(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    bytes.indices.map { bytes[$0...$0] }
  }

  package static func two(_ bytes: [UInt8], at index: Int) -> [ArraySlice<UInt8>] {
    [bytes[..<index], bytes[index...]]
  }

  /// Returns pieces of `sizes`, in turn and repeated. A zero makes an empty piece followed by a piece of one byte.
  package static func cycling(_ bytes: [UInt8], sizes: some Sequence<UInt8>) -> [ArraySlice<UInt8>] {
    let sizes = sizes.map(Int.init)
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty, !sizes.isEmpty {
      for size in sizes {
        if size == 0 { pieces.append(rest.prefix(0)) }
        pieces.append(rest.prefix(max(size, 1)))
        rest = rest.dropFirst(max(size, 1))
      }
    }
    return sizes.isEmpty ? [bytes[...]] : pieces
  }
}
