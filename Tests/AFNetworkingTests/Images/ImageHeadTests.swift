import AFNetworking
import Testing

/// Tests the heads of images, which are made by hand after their formats.
@Suite struct ImageHeadTests {
  static func read(
    _ bytes: [UInt8], pixelCountMax: Int = AFImage.pixelCountMaxDefault, sideMax: Int = ImageHead.sideMax
  ) throws(AFImageError) -> ImageHead {
    try ImageHead.read(bytes.span, pixelCountMax: pixelCountMax, sideMax: sideMax)
  }

  static func tooLarge(
    _ width: Int, _ height: Int, pixelCountMax: Int = AFImage.pixelCountMaxDefault
  ) -> AFImageError { .tooManyPixels(width: width, height: height, pixelCountMax: pixelCountMax) }

  static func head(
    _ format: AFImage.Format, _ width: Int, _ height: Int, exif: Int = 1
  ) -> ImageHead {
    ImageHead(format, width: width, height: height, orientation: ImageOrientation(exif: exif) ?? ImageOrientation())
  }

  static let all: [(bytes: [UInt8], head: ImageHead)] = [
    (MadeImage.png(513, 5), head(.png, 513, 5)),
    (
      MadeImage.png(513, 5, chunks: [("gAMA", [0, 0, 0, 1]), ("eXIf", MadeImage.orientation(3))]),
      head(.png, 513, 5, exif: 3)
    ),
    (MadeImage.gif(3, 256), head(.gif, 3, 256)), (MadeImage.gif(3, 256, version: "GIF87a"), head(.gif, 3, 256)),
    (MadeImage.bmp(7, 10), head(.bmp, 7, 10)), (MadeImage.bmp(7, -10), head(.bmp, 7, 10)),
    (MadeImage.oldBMP(4, 258), head(.bmp, 4, 258)),
    (MadeImage.jpeg(600, 400), head(.jpeg, 600, 400)),
    (
      MadeImage.jpeg(600, 400, frame: 0xc2, before: [0xff, 0xff] + MadeImage.segment(0xc4, [9]).dropFirst()),
      head(.jpeg, 600, 400)
    ),
    (MadeImage.jpeg(600, 400, before: MadeImage.exif(MadeImage.orientation(6))), head(.jpeg, 600, 400, exif: 6)),
    (MadeImage.lossyWebP(320, 32), head(.webp, 320, 32)), (MadeImage.losslessWebP(100, 50), head(.webp, 100, 50)),
    (MadeImage.extendedWebP(65536, 2), head(.webp, 65536, 2)),
    (
      MadeImage.extendedWebP(20, 2, more: [("ALPH", [1, 2, 3]), ("EXIF", MadeImage.orientation(8))]),
      head(.webp, 20, 2, exif: 8)
    ),
    (
      MadeImage.extendedWebP(20, 2, more: [("EXIF", Array("Exif".utf8) + [0, 0] + MadeImage.orientation(8))]),
      head(.webp, 20, 2, exif: 8)
    ),
    (MadeImage.tiff([(256, 3, 640), (257, 4, 480), (274, 3, 5)]), head(.tiff, 640, 480, exif: 5)),
    (MadeImage.tiff([(256, 4, 640), (257, 3, 480)], isLittle: false), head(.tiff, 640, 480)),
    (MadeImage.heif(4032, 3024), head(.heic, 4032, 3024)),
    (MadeImage.heif(4032, 3024, properties: [("irot", [3])]), head(.heic, 4032, 3024, exif: 6)),
    (MadeImage.heif(64, 48, brand: "avif", compatible: ["avif", "mif1"]), head(.avif, 64, 48)),
    (MadeImage.heif(64, 48, brand: "mif1", compatible: ["msf1"]), head(.heic, 64, 48)),
  ]

  @Test(arguments: all) func heads(_ bytes: [UInt8], _ expected: ImageHead) throws {
    #expect(try Self.read(bytes) == expected)
    #expect(try Self.read(bytes + [1, 2, 3]) == expected)
  }

  /// Each prefix of an image has the image's format and size, or is truncated.
  @Test(arguments: all) func prefixes(_ bytes: [UInt8], _ expected: ImageHead) {
    for count in 0..<bytes.count {
      do throws(AFImageError) {
        let head = try Self.read(Array(bytes.prefix(count)))
        #expect(head.format == expected.format && head.width == expected.width && head.height == expected.height)
        #expect(head.orientation == expected.orientation || head.orientation == ImageOrientation())
      } catch {
        #expect(error == .truncated, "\(count) bytes of \(expected)")
      }
    }
    #expect(throws: AFImageError.truncated) { try Self.read(Array(bytes.prefix(8))) }
  }

  /// No change of a byte traps, whatever it makes of the lengths.
  @Test(arguments: all) func changedBytes(_ bytes: [UInt8], _ expected: ImageHead) {
    for index in bytes.indices {
      for value: UInt8 in [0, 1, 0x7f, 0x80, 0xfe, 0xff, bytes[index] ^ 1] {
        var changed = bytes
        changed[index] = value
        for count in [index + 1, changed.count] {
          if let head = try? Self.read(Array(changed.prefix(count))) {
            #expect(head.width > 0 && head.height > 0 && head.width * head.height <= AFImage.pixelCountMaxDefault)
          }
        }
      }
    }
  }

  // MARK: - Orientation

  @Test(arguments: 1...8, [false, true]) func exif(value: Int, isLittle: Bool) throws {
    let structure = MadeImage.orientation(value, isLittle: isLittle)
    let jpeg = try Self.read(MadeImage.jpeg(60, 40, before: MadeImage.exif(structure)))
    #expect(jpeg.orientation.exif == value && jpeg.width == 60 && jpeg.height == 40)
    #expect(jpeg.orientation.swapsSides == (value > 4))
    let tiff = MadeImage.tiff([(256, 3, 6), (257, 3, 4), (274, 3, value)], isLittle: isLittle)
    #expect(try Self.read(tiff).orientation.exif == value)
    #expect(try Self.read(MadeImage.png(6, 4, chunks: [("eXIf", structure)])).orientation.exif == value)
  }

  /// Only the first EXIF structure counts, and only what lies in its segment.
  @Test func manyEXIFStructures() throws {
    let (none, turned) = (MadeImage.exif(Array("XX*\0".utf8)), MadeImage.exif(MadeImage.orientation(6)))
    #expect(try Self.read(MadeImage.jpeg(6, 4, before: none + turned)).orientation.exif == 1)
    // The directory of the first segment lies in the second one.
    let outside = MadeImage.exif(Array("II*\0".utf8) + MadeImage.little(8 + 10 + 8, 4))
    #expect(try Self.read(MadeImage.jpeg(6, 4, before: outside + turned)).orientation.exif == 1)
  }

  /// Bytes between the segments of a JPEG are skipped, as decoders do: they hide no size.
  @Test func bytesBetweenSegments() throws {
    for garbage: [UInt8] in [[1], [0xff, 0], [0, 1, 2, 0xff, 0xff, 0]] {
      #expect(throws: Self.tooLarge(60000, 60000)) {
        try Self.read(MadeImage.jpeg(60000, 60000, before: garbage))
      }
    }
  }

  /// Of several sizes the largest one counts, in whatever order the entries are.
  @Test func severalSizes() throws {
    let tiff = MadeImage.tiff([(300, 3, 1), (256, 4, 60000), (257, 4, 60000), (256, 4, 1), (257, 4, 1)])
    #expect(throws: Self.tooLarge(60000, 60000)) { try Self.read(tiff) }
    let size = MadeImage.big(0, 4) + MadeImage.big(1, 4) + MadeImage.big(1, 4)
    #expect(throws: Self.tooLarge(60000, 60000)) {
      try Self.read(MadeImage.heif(60000, 60000, properties: [("ispe", size)]))
    }
  }

  /// An EXIF structure that is not valid leaves the image as it is.
  @Test(arguments: [
    MadeImage.orientation(0), MadeImage.orientation(9), MadeImage.orientation(65535), Array("II*\0".utf8), [],
    Array("XX*\0\u{8}\0\0\0".utf8), Array("II*\0".utf8) + [0xff, 0xff, 0xff, 0xff],
  ]) func invalidEXIF(structure: [UInt8]) throws {
    #expect(try Self.read(MadeImage.jpeg(6, 4, before: MadeImage.exif(structure))) == Self.head(.jpeg, 6, 4))
    #expect(try Self.read(MadeImage.png(6, 4, chunks: [("eXIf", structure)])) == Self.head(.png, 6, 4))
  }

  /// Rotation and mirroring as HEIF has them, with the EXIF value that has the same effect: the table of libavif, after
  /// ISO/IEC 23008-12:2021 6.5.10 and 6.5.12.
  @Test(
    arguments: [
      (0, nil, 1), (1, nil, 8), (2, nil, 3), (3, nil, 6), (0, 0, 4), (1, 0, 5), (2, 0, 2), (3, 0, 7), (0, 1, 2),
      (1, 1, 7),
      (2, 1, 4), (3, 1, 5),
    ] as [(UInt8, UInt8?, Int)])
  func transformations(angle: UInt8, axis: UInt8?, expected: Int) throws {
    let properties = [("irot", [angle])] + (axis.map { [("imir", [$0])] } ?? [])
    #expect(try Self.read(MadeImage.heif(8, 4, properties: properties)).orientation.exif == expected)
  }

  // MARK: - What is refused

  @Test func giantClaims() {
    for bytes in [
      MadeImage.png(60000, 60000), MadeImage.jpeg(60000, 60000), MadeImage.gif(60000, 60000),
      MadeImage.bmp(60000, -60000),
      MadeImage.oldBMP(60000, 60000), MadeImage.tiff([(256, 4, 60000), (257, 4, 60000)]),
      MadeImage.extendedWebP(60000, 60000), MadeImage.heif(60000, 60000),
    ] {
      #expect(throws: Self.tooLarge(60000, 60000)) { try Self.read(bytes) }
    }
    #expect(throws: Self.tooLarge(0xffff_ffff, 0xffff_ffff)) {
      try Self.read(MadeImage.png(0xffff_ffff, 0xffff_ffff))
    }
    #expect(throws: Self.tooLarge(1 << 31, 1)) { try Self.read(MadeImage.png(1 << 31, 1)) }
  }

  @Test func limits() throws {
    #expect(try Self.read(MadeImage.png(10, 10), pixelCountMax: 100).width == 10)
    #expect(throws: Self.tooLarge(101, 1, pixelCountMax: 100)) {
      try Self.read(MadeImage.png(101, 1), pixelCountMax: 100)
    }
    #expect(try Self.read(MadeImage.png(50, 2), sideMax: 50).width == 50)
    #expect(throws: Self.tooLarge(51, 1)) { try Self.read(MadeImage.png(51, 1), sideMax: 50) }
  }

  @Test func invalidHeads() {
    let bytes: [[UInt8]] = [
      MadeImage.gif(0, 1), MadeImage.png(0, 1), MadeImage.bmp(-4, 1), MadeImage.bmp(4, 0), MadeImage.jpeg(0, 1),
      // A JPEG without a frame before the scan, and with a segment of an invalid length.
      [0xff, 0xd8, 0xff, 0xda, 0, 2], [0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0],
      [0xff, 0xd8, 0xff, 0xe0, 0, 2, 0, 0xff, 0xd9],
      MadeImage.riff([("XXXX", [UInt8](repeating: 0, count: 30))]), MadeImage.tiff([(256, 3, 1)]),
      Array("BM".utf8) + [UInt8](repeating: 0xff, count: 40),
      MadeImage.png(1, 1).map { $0 == UInt8(ascii: "H") ? 0 : $0 },
      // Boxes that end beyond the box around them, or before they begin.
      MadeImage.box("ftyp", Array("heic".utf8))
        + MadeImage.box("meta", [0, 0, 0, 0] + [0, 0, 1, 0] + Array("pitm".utf8)),
      MadeImage.box("ftyp", Array("heic".utf8)) + MadeImage.big(4, 4) + Array("meta".utf8),
    ]
    for bytes in bytes { #expect(throws: AFImageError.invalidHead, "\(bytes)") { try Self.read(bytes) } }
  }

  @Test func otherFormats() {
    let film = MadeImage.heif(8, 4, brand: "isom", compatible: ["mp42"])
    for bytes in [Array("<svg/>".utf8), Array("%PDF-1.7".utf8), [0, 0, 1, 0, 1, 0, 16, 16], film] {
      #expect(throws: AFImageError.unknownFormat) { try Self.read(bytes) }
    }
    #expect(throws: AFImageError.truncated) { try Self.read([]) }
    #expect(throws: AFImageError.truncated) { try Self.read(Array("RIFFabcdWE".utf8)) }
    #expect(throws: AFImageError.unknownFormat) { try Self.read(Array("RIFFabcdWAVE".utf8)) }
  }
}
