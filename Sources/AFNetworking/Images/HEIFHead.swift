/// HEIC and AVIF: boxes of ISO/IEC 14496-12, with the properties of the primary item after ISO/IEC 23008-12.
///
/// ```
/// ftyp                 the brands
/// meta
///   pitm               the number of the primary item
///   iprp
///     ipco             the properties: ispe (size), irot (turn), imir (mirroring), ...
///     ipma             for each item, the indices of its properties, in the order in which they apply
/// ```
enum HEIFHead {
  /// A box, without its header. The end may lie beyond the bytes that have arrived.
  private struct Box {
    var type: Int
    var start: Int
    var end: Int
  }

  static func read(_ bytes: borrowing ImageBytes) throws(AFImageError) -> ImageHead {
    let brands = try box(of: bytes, at: 0, before: .max)
    let format = try format(of: bytes, brands)
    let meta = try child("meta", of: bytes, from: brands.end, to: .max)
    // A full box: a version and flags come first.
    let inside = meta.start + 4
    let pitm = try child("pitm", of: bytes, from: inside, to: meta.end)
    let isLong = try bytes.big(at: pitm.start, 1) > 0
    let primary = try bytes.big(at: pitm.start + 4, isLong ? 4 : 2)
    let iprp = try child("iprp", of: bytes, from: inside, to: meta.end)
    let ipco = try child("ipco", of: bytes, from: iprp.start, to: iprp.end)
    let ipma = try child("ipma", of: bytes, from: iprp.start, to: iprp.end)
    var head = ImageHead(format, width: 0, height: 0)
    for index in try associations(of: primary, in: bytes, ipma) {
      guard let property = try property(index, in: bytes, ipco) else { throw .invalidHead }
      switch property.type {
      case ImageBytes.code("ispe"):
        // Decoders differ in which of several sizes they take: the largest one counts.
        head.width = max(head.width, try bytes.big(at: property.start + 4, 4))
        head.height = max(head.height, try bytes.big(at: property.start + 8, 4))
      // Quarter turns anticlockwise.
      case ImageBytes.code("irot"):
        head.orientation.turnClockwise(by: 4 - (try bytes.big(at: property.start, 1) & 3))
      case ImageBytes.code("imir"):
        if try bytes.big(at: property.start, 1) & 1 == 0 {
          head.orientation.exchangeTopAndBottom()
        } else {
          head.orientation.exchangeLeftAndRight()
        }
      default: break
      }
    }
    return head
  }

  /// Finds a brand of still images among the major and the compatible brands.
  private static func format(
    of bytes: borrowing ImageBytes, _ brands: Box
  ) throws(AFImageError) -> AFImage.Format {
    // The minor version is between the major brand and the compatible ones. At most 64 brands are read.
    let end = min(brands.end, brands.start + 4 * 66)
    var format: AFImage.Format?
    for offset in stride(from: brands.start, to: end - 3, by: 4) where offset != brands.start + 4 {
      switch try bytes.type(at: offset) {
      case ImageBytes.code("avif"): return .avif
      case ImageBytes.code("heic"), ImageBytes.code("heix"), ImageBytes.code("heim"), ImageBytes.code("heis"):
        return .heic
      case ImageBytes.code("mif1"): format = .heic
      default: break
      }
    }
    // Films have this box, too.
    guard let format else { throw .unknownFormat }
    return format
  }

  /// Reads a box's header. A box ends before `limit`, which is the end of the box around it.
  private static func box(of bytes: borrowing ImageBytes, at offset: Int, before limit: Int) throws(AFImageError)
    -> Box
  {
    var length = try bytes.big(at: offset, 4)
    let type = try bytes.type(at: offset + 4)
    var start = offset + 8
    switch length {
    // The box lasts to the end of the file.
    case 0: return Box(type: type, start: start, end: limit)
    // A length of eight bytes follows. One that needs the highest byte is beyond any file.
    case 1:
      guard try bytes.big(at: start, 1) == 0 else { throw .invalidHead }
      length = try bytes.big(at: start + 1, 7)
      start += 8
    default: break
    }
    let (end, overflows) = offset.addingReportingOverflow(length)
    guard !overflows, end >= start, end <= limit else { throw .invalidHead }
    return Box(type: type, start: start, end: end)
  }

  /// Returns the first box of a type within a range.
  private static func child(
    _ type: StaticString, of bytes: borrowing ImageBytes, from start: Int, to end: Int
  ) throws(AFImageError) -> Box {
    let wanted = ImageBytes.code(type)
    var offset = start
    // Each box has at least 8 bytes, so the loop ends with the bytes.
    while offset < end {
      let box = try box(of: bytes, at: offset, before: end)
      if box.type == wanted { return box }
      offset = box.end
    }
    throw .invalidHead
  }

  /// Returns the indices of an item's properties: ISO/IEC 23008-12, 9.3. An index of zero is no property.
  private static func associations(
    of item: Int, in bytes: borrowing ImageBytes, _ ipma: Box
  ) throws(AFImageError) -> [Int] {
    let version = try bytes.big(at: ipma.start, 1)
    let hasLongIndices = try bytes.big(at: ipma.start + 3, 1) & 1 == 1
    let count = try bytes.big(at: ipma.start + 4, 4)
    var offset = ipma.start + 8
    var entry = 0
    // Each entry has at least three bytes, so the loop ends with the bytes, whatever count they state.
    while entry < count {
      let number = try bytes.big(at: offset, version < 1 ? 2 : 4)
      offset += version < 1 ? 2 : 4
      let associations = try bytes.big(at: offset, 1)
      offset += 1
      guard number == item else {
        offset += associations * (hasLongIndices ? 2 : 1)
        entry += 1
        continue
      }
      var indices: [Int] = []
      for _ in 0..<associations {
        // The highest bit says whether the property is essential.
        let index = try bytes.big(at: offset, hasLongIndices ? 2 : 1) & (hasLongIndices ? 0x7fff : 0x7f)
        offset += hasLongIndices ? 2 : 1
        if index > 0 { indices.append(index) }
      }
      return indices
    }
    throw .invalidHead
  }

  /// Returns the property with an index, counted from 1, or `nil` if there are fewer.
  private static func property(
    _ index: Int, in bytes: borrowing ImageBytes, _ ipco: Box
  ) throws(AFImageError) -> Box? {
    var offset = ipco.start
    var position = 1
    while offset < ipco.end {
      let box = try box(of: bytes, at: offset, before: ipco.end)
      if position == index { return box }
      position += 1
      offset = box.end
    }
    return nil
  }
}
