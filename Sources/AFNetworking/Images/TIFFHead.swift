/// TIFF 6.0, section 2: a header of 8 bytes, and a directory of entries of 12 bytes each. EXIF has the same structure.
enum TIFFHead {
  /// Reads the size and the orientation of the first image.
  static func read(_ bytes: borrowing ImageBytes) throws(AFImageError) -> ImageHead {
    let fields = try fields(of: bytes, from: 0, to: .max)
    guard let width = fields.width, let height = fields.height else { throw .invalidHead }
    return ImageHead(.tiff, width: width, height: height, orientation: fields.orientation ?? ImageOrientation())
  }

  /// Reads the orientation from a structure between two offsets.
  ///
  /// - Returns: The orientation, or `nil` if the structure has no valid one.
  static func orientation(
    _ bytes: borrowing ImageBytes, from start: Int, to end: Int = .max
  ) throws(AFImageError) -> ImageOrientation? {
    try fields(of: bytes, from: start, to: end).orientation
  }

  private struct Fields {
    var width: Int?
    var height: Int?
    var orientation: ImageOrientation?
  }

  private static func fields(
    of bytes: borrowing ImageBytes, from start: Int, to end: Int
  ) throws(AFImageError) -> Fields {
    let isLittle: Bool
    switch try bytes.big(at: start, 4) {
    case 0x4949_2a00: isLittle = true
    case 0x4d4d_002a: isLittle = false
    default: throw .invalidHead
    }
    func number(_ bytes: borrowing ImageBytes, at offset: Int, _ count: Int) throws(AFImageError) -> Int {
      try isLittle ? bytes.little(at: offset, count) : bytes.big(at: offset, count)
    }
    let directory = start + (try number(bytes, at: start + 4, 4))
    // At most 65,535 entries.
    let count = try number(bytes, at: directory, 2)
    var fields = Fields()
    for index in 0..<count {
      let entry = directory + 2 + 12 * index
      guard entry + 12 <= end else { break }
      let tag = try number(bytes, at: entry, 2)
      guard [256, 257, 274].contains(tag) else { continue }
      let value: Int
      switch try number(bytes, at: entry + 2, 2) {
      // SHORT and LONG: the value is in the entry itself.
      case 3: value = try number(bytes, at: entry + 8, 2)
      case 4: value = try number(bytes, at: entry + 8, 4)
      default: continue
      }
      switch tag {
      // Decoders differ in which of several values they take: the largest one counts.
      case 256: fields.width = max(fields.width ?? 0, value)
      case 257: fields.height = max(fields.height ?? 0, value)
      default: fields.orientation = ImageOrientation(exif: value)
      }
    }
    return fields
  }
}
