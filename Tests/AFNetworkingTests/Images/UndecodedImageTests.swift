import AFNetworking
import Foundation
import Testing

/// Tests what an undecoded image states, and the errors.
@Suite struct UndecodedImageTests {
  /// A JPEG with an EXIF orientation.
  private func jpeg(_ orientation: UInt8) -> Data {
    let exif: [UInt8] =
      Array("Exif".utf8) + [0, 0] + Array("MM".utf8) + [
        0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation,
      ]
      + [0, 0]
    return Data(
      [0xff, 0xd8, 0xff, 0xe1, 0, UInt8(exif.count + 2)] + exif + [0xff, 0xc0, 0, 11, 8, 0, 40, 0, 60, 1, 1, 0x11, 0])
  }

  @Test(arguments: AFImage.Orientation.allCases) func orientations(orientation: AFImage.Orientation) throws {
    let image = try AFImage(validating: jpeg(UInt8(orientation.rawValue)), scale: 2)
    #expect(image.orientation == orientation && image.pixelWidth == 60 && image.pixelHeight == 40)
    #expect(image.size == (orientation.rawValue > 4 ? CGSize(width: 20, height: 30) : CGSize(width: 30, height: 20)))
    #expect(image.decodedByteCount == UInt64(image.data.count))
  }

  @Test func names() {
    typealias Orientation = AFImage.Orientation
    #expect(Orientation.up.rawValue == 1 && Orientation.right.rawValue == 6 && Orientation.left.rawValue == 8)
    #expect(Orientation(rawValue: 5) == .leftMirrored && Orientation(rawValue: 7) == .rightMirrored)
    #expect(AFImage.Format.heic.mimeType == "image/heic" && AFImage.Format.tiff.mimeType == "image/tiff")
    #expect(AFImage.pixelCountMaxDefault == 134_217_728)
  }

  @Test func errors() throws {
    #expect(throws: AFImageError.unknownFormat) { try AFImage(validating: Data("<svg/>".utf8)) }
    #expect(throws: AFImageError.truncated) { try AFImage(validating: Data()) }
    #expect(throws: AFImageError.invalidHead) { try AFImage(validating: PNG.head(0, 1)) }
    let giant = AFImageError.tooManyPixels(width: 60000, height: 60000, pixelCountMax: 134_217_728)
    #expect(throws: giant) { try AFImage(validating: PNG.head(60000, 60000)) }
    #expect(AFImage(data: PNG.head(60000, 60000)) == nil)
    #expect(try AFImage(validating: PNG.head(60000, 60000), pixelCountMax: 3_600_000_000).pixelWidth == 60000)
    #expect(
      giant.localizedDescription
        == "The image claims to have 60000 x 60000 pixels; the limit is 134217728 pixels.")
  }

  /// A decoder is not called for a giant. An image without a known head is the decoder's to judge.
  @Test func theSerializersLimit() throws {
    let serializer = AFImageResponseSerializer()
    serializer.imageDecoder = PictureDecoder()
    let response = try Responses.make(type: "image/png")
    serializer.imagePixelCountMax = 200
    #expect(serializer.read(response, PNG.head(20, 10)).object is Picture)
    let (object, error) = serializer.read(response, PNG.head(201, 1))
    #expect(object == nil && error?.localizedDescription.contains("201 x 1 pixels") == true)
    #expect(serializer.read(response, "text").object as? String == "text")
    #expect((serializer.copy() as? AFImageResponseSerializer)?.imagePixelCountMax == 200)
  }
}
