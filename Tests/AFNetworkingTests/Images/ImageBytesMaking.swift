/// Makes the heads of images after their formats.
enum MadeImage {
  static func big(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  static func little(_ value: Int, _ count: Int) -> [UInt8] { big(value, count).reversed() }

  static func png(_ width: Int, _ height: Int, chunks: [(String, [UInt8])] = []) -> [UInt8] {
    var bytes: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    for (type, content) in [("IHDR", big(width, 4) + big(height, 4) + [8, 6, 0, 0, 0])] + chunks {
      bytes += big(content.count, 4) + Array(type.utf8) + content + [0, 0, 0, 0]
    }
    return bytes
  }

  static func gif(_ width: Int, _ height: Int, version: String = "GIF89a") -> [UInt8] {
    Array(version.utf8) + little(width, 2) + little(height, 2) + [0x80, 0, 0]
  }

  static func bmp(_ width: Int, _ height: Int) -> [UInt8] {
    Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + little(40, 4) + little(width, 4) + little(height, 4)
  }

  static func oldBMP(_ width: Int, _ height: Int) -> [UInt8] {
    Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + little(12, 4) + little(width, 2) + little(height, 2)
  }

  static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    [0xff, marker] + big(content.count + 2, 2) + content
  }

  static func jpeg(_ width: Int, _ height: Int, frame: UInt8 = 0xc0, before: [UInt8] = []) -> [UInt8] {
    [0xff, 0xd8] + segment(0xe0, Array("JFIF".utf8) + [0, 1, 2]) + before
      + segment(frame, [8] + big(height, 2) + big(width, 2) + [1, 1, 0x11, 0])
  }

  /// An APP1 segment with this structure.
  static func exif(_ tiff: [UInt8]) -> [UInt8] { segment(0xe1, Array("Exif".utf8) + [0, 0] + tiff) }

  /// A TIFF structure with these entries, each a SHORT or a LONG.
  static func tiff(_ entries: [(tag: Int, type: Int, value: Int)], isLittle: Bool = true) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] { isLittle ? little(value, count) : big(value, count) }
    var bytes = Array((isLittle ? "II" : "MM").utf8) + number(42, 2) + number(8, 4) + number(entries.count, 2)
    for entry in entries {
      bytes += number(entry.tag, 2) + number(entry.type, 2) + number(1, 4)
      bytes += entry.type == 3 ? number(entry.value, 2) + [0, 0] : number(entry.value, 4)
    }
    return bytes + number(0, 4)
  }

  static func orientation(_ value: Int, isLittle: Bool = true) -> [UInt8] {
    tiff([(271, 2, 0), (274, 3, value)], isLittle: isLittle)
  }

  static func riff(_ chunks: [(String, [UInt8])]) -> [UInt8] {
    var content = Array("WEBP".utf8)
    for (type, bytes) in chunks {
      content += Array(type.utf8) + little(bytes.count, 4) + bytes + [UInt8](repeating: 0, count: bytes.count & 1)
    }
    return Array("RIFF".utf8) + little(content.count, 4) + content
  }

  static func lossyWebP(_ width: Int, _ height: Int) -> [UInt8] {
    riff([("VP8 ", [0x30, 0, 0, 0x9d, 0x01, 0x2a] + little(width | 0x4000, 2) + little(height, 2))])
  }

  static func losslessWebP(_ width: Int, _ height: Int) -> [UInt8] {
    riff([("VP8L", [0x2f] + little(width - 1 | (height - 1) << 14, 4))])
  }

  static func extendedWebP(_ width: Int, _ height: Int, more: [(String, [UInt8])] = []) -> [UInt8] {
    riff([("VP8X", [8, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3))] + more)
  }

  static func box(_ type: String, _ content: [UInt8]) -> [UInt8] {
    big(content.count + 8, 4) + Array(type.utf8) + content
  }

  /// A HEIC image whose primary item, number 2, has a size and these properties. Item 1 is a tile of 512 x 512 pixels.
  static func heif(
    _ width: Int, _ height: Int, brand: String = "heic", compatible: [String] = ["mif1", "heic"],
    properties: [(String, [UInt8])] = []
  ) -> [UInt8] {
    func size(_ width: Int, _ height: Int) -> [UInt8] { box("ispe", [0, 0, 0, 0] + big(width, 4) + big(height, 4)) }
    let ipco = size(512, 512) + box("hvcC", [1]) + size(width, height) + properties.flatMap { box($0.0, $0.1) }
    let own = [0x03] + (0..<properties.count).map { UInt8(0x84 + $0) }
    let ipma: [UInt8] =
      [0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 2, 0x81, 0x82, 0, 2, UInt8(own.count)] + own
    return box("ftyp", Array(brand.utf8) + [0, 0, 0, 0] + compatible.flatMap { Array($0.utf8) })
      + box(
        "meta",
        [0, 0, 0, 0] + box("hdlr", [0, 0, 0, 0]) + box("pitm", [0, 0, 0, 0, 0, 2])
          + box("iprp", box("ipco", ipco) + box("ipma", ipma)))
  }
}
