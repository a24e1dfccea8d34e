import AFNetworking
import Foundation
import Testing

/// Tests the headers of images, which are written by hand after their formats.
@Suite struct ImageTests {
  static let png: [UInt8] =
    [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 2, 1, 0, 0, 0, 5, 8, 6]
  static let gif: [UInt8] = Array("GIF89a".utf8) + [3, 0, 0, 1, 0x80, 0, 0]
  /// A JPEG with an APP0 segment, a table, fill bytes and a progressive frame of 600 x 400 pixels.
  static let jpeg: [UInt8] =
    [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc4, 0, 3, 9, 0xff, 0xff, 0xff, 0xc2, 0, 11, 8, 1, 0x90, 2, 0x58, 1]
  static let bmp =
    Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [40, 0, 0, 0, 7, 0, 0, 0, 0xf6, 0xff, 0xff, 0xff]
  static let oldBMP = Array("BM".utf8) + [UInt8](repeating: 0, count: 12) + [12, 0, 0, 0, 4, 0, 2, 1]
  static let riff = Array("RIFF".utf8) + [0, 0, 0, 0] + Array("WEBP".utf8)
  static let lossy =
    riff + Array("VP8 ".utf8) + [0, 0, 0, 0, 0x30, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x81, 0x20, 0x40]
  /// The size of 100 x 50 pixels is stored as (width - 1) | (height - 1) << 14.
  static let lossless = riff + Array("VP8L".utf8) + [0, 0, 0, 0, 0x2f, 0x63, 0x40, 0x0c, 0]
  static let extended = riff + Array("VP8X".utf8) + [10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 1, 0, 0]

  static let all: [([UInt8], AFImage.Format, Int, Int)] = [
    (png, .png, 513, 5), (gif, .gif, 3, 256), (jpeg, .jpeg, 600, 400), (bmp, .bmp, 7, 10), (oldBMP, .bmp, 4, 258),
    (lossy, .webp, 320, 32), (lossless, .webp, 100, 50), (extended, .webp, 65536, 2),
  ]

  @Test(arguments: all) func sizes(_ bytes: [UInt8], _ format: AFImage.Format, _ width: Int, _ height: Int) throws {
    let image = try #require(AFImage(data: Data(bytes + [1, 2, 3])))
    #expect(image.format == format && image.pixelWidth == width && image.pixelHeight == height)
    #expect(image.size == CGSize(width: width, height: height) && image.scale == 1)
    #expect(AFImage(data: Data(bytes), scale: 2)?.size == CGSize(width: Double(width) / 2, height: Double(height) / 2))
    #expect(image.data.count == bytes.count + 3 && image.format.mimeType == "image/\(format)")
    // A slice of `Data` whose indices do not start at 0.
    #expect(AFImage(data: Data([9] + bytes).dropFirst())?.pixelWidth == width)
  }

  /// A header that is cut before the size yields no image, and no byte beyond the end is read.
  @Test(arguments: all) func cuts(_ bytes: [UInt8], _ format: AFImage.Format, _ width: Int, _ height: Int) {
    for count in 0..<bytes.count {
      if let image = AFImage(data: Data(bytes.prefix(count))) {
        #expect(image.pixelWidth == width && image.pixelHeight == height)
      }
    }
    #expect(AFImage(data: Data(bytes.prefix(bytes.count / 2))) == nil)
  }

  @Test func others() {
    let bytes: [[UInt8]] = [
      [], Array("II*\0".utf8), Array("<svg/>".utf8), Self.riff + Array("XXXX".utf8) + [UInt8](repeating: 0, count: 30),
      // An image without pixels, a JPEG without a frame before the scan, and a segment with an invalid length.
      Array("GIF89a".utf8) + [0, 0, 1, 0], [0xff, 0xd8, 0xff, 0xda, 0, 2], [0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0],
      Array("BM".utf8) + [UInt8](repeating: 0xff, count: 40),
    ]
    for bytes in bytes { #expect(AFImage(data: Data(bytes)) == nil) }
    #expect(AFImage(data: Data(Self.gif), scale: 0)?.scale == 1)
    #expect(AFImage(data: Data(Self.gif), scale: .nan)?.scale == 1)
  }

  // MARK: - The serializer

  let serializer = AFImageResponseSerializer()

  @Test(arguments: [
    "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
    "image/x-xbitmap", "image/x-win-bitmap", "image/webp",
  ]) func types(_ type: String) throws {
    serializer.imageScale = 2
    let (object, error) = serializer.read(try Responses.make(type: type), Data(Self.png))
    let image = try #require(object as? AFImage)
    #expect(image.format == .png && image.scale == 2 && error == nil)
  }

  @Test func noImages() throws {
    let text = serializer.read(try Responses.make(type: "text/plain"), Data(Self.png))
    #expect(text.object == nil && text.error?.code == NSURLErrorCannotDecodeContentData)
    let unknown = serializer.read(try Responses.make(type: "image/tiff"), "II*")
    #expect(unknown.object == nil && unknown.error == nil)
    #expect(serializer.read(try Responses.make(type: "image/png"), nil).object == nil)
  }

  struct Words: AFImageDecoding {
    struct Failure: Error {}

    func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
      guard !data.contains(0x21) else { throw Failure() }
      return "\(data.count) \(response?.mimeType ?? "") \(scale) \(inflates)"
    }
  }

  @Test func ownDecoders() throws {
    serializer.imageDecoder = Words()
    serializer.imageScale = 3
    let response = try Responses.make(type: "image/png")
    #expect(serializer.read(response, "abc").object as? String == "3 image/png 3.0 true")
    serializer.automaticallyInflatesResponseImage = false
    #expect(serializer.read(response, "abc").object as? String == "3 image/png 3.0 false")
    let (object, error) = serializer.read(response, "a!")
    #expect(object == nil && error != nil)
    // A copy keeps the decoder; an archive cannot hold it.
    #expect((serializer.copy() as? AFImageResponseSerializer)?.imageDecoder is Words)
    #expect(try Archive.roundTrip(serializer).imageDecoder is AFImageHeaderDecoder)
  }

  @Test func copies() throws {
    let plain = try Archive.roundTrip(serializer)
    #expect(plain.imageScale == 1 && plain.automaticallyInflatesResponseImage)
    #expect(plain.acceptableContentTypes == serializer.acceptableContentTypes)
    #expect(plain.acceptableStatusCodes == serializer.acceptableStatusCodes)
    serializer.imageScale = 2.5
    serializer.automaticallyInflatesResponseImage = false
    serializer.acceptableContentTypes = ["test/type"]
    serializer.acceptableStatusCodes = IndexSet(integer: 100)
    let copy = try #require(serializer.copy() as? AFImageResponseSerializer)
    for other in [copy, try Archive.roundTrip(serializer)] {
      #expect(other !== serializer && other.imageScale == 2.5 && !other.automaticallyInflatesResponseImage)
      #expect(other.acceptableContentTypes == ["test/type"] && other.acceptableStatusCodes == [100])
    }
    #expect(AFImageResponseSerializer.supportsSecureCoding)
  }
}
