import Foundation
import Larkspur
import Synchronization

/// Validates a response, and makes an image of its bytes.
///
/// The types that AFNetworking accepts are acceptable, and those of WebP, HEIC, HEIF and AVIF. Without a decoder of the
/// program's own the images are ``AFImage`` objects, for the formats of ``AFImage/Format``. For bytes that the decoder
/// does not support, the object is `nil`, without an error.
///
/// An image whose head claims more pixels than ``imagePixelCountMax`` is not decoded: the error is
/// ``AFImageError/tooManyPixels(width:height:pixelCountMax:)``.
open class AFImageResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var scale: CGFloat = 1
    var inflates = true
    var pixelCountMax = AFImage.pixelCountMaxDefault
    var decoder: any AFImageDecoding = AFImageHeaderDecoder()
  }

  private let options = Mutex(Options())

  /// Creates a serializer with scale 1 and the built-in decoder.
  public override init() {
    super.init()
    acceptableContentTypes = [
      "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
      "image/x-xbitmap", "image/x-ms-bmp", "image/x-win-bitmap", "image/webp", "image/heic", "image/heif", "image/avif",
    ]
  }

  /// Creates a serializer; equivalent to `init()`.
  open override class func serializer() -> AFImageResponseSerializer { AFImageResponseSerializer() }

  /// Pixels for each unit of an image's size. 1 by default: there is no main screen to take a scale from.
  open var imageScale: CGFloat {
    get { options.withLock { $0.scale } }
    set { options.withLock { $0.scale = newValue } }
  }

  /// Whether the decoder decompresses the pixels at once. `true` by default. The built-in decoder decompresses nothing.
  open var automaticallyInflatesResponseImage: Bool {
    get { options.withLock { $0.inflates } }
    set { options.withLock { $0.inflates = newValue } }
  }

  /// The decoder that makes the images: ``AFImageHeaderDecoder`` by default. The decoder is not archived.
  open var imageDecoder: any AFImageDecoding {
    get { options.withLock { $0.decoder } }
    set { options.put(newValue, at: \.decoder) }
  }

  /// Maximum number of pixels that an image's head may claim: ``AFImage/pixelCountMaxDefault`` by default. The limit is
  /// not archived. Attack: a short image that claims a size for which a decoder reserves all memory.
  open var imagePixelCountMax: Int {
    get { options.withLock { $0.pixelCountMax } }
    set { options.withLock { $0.pixelCountMax = newValue } }
  }

  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    let options = options.withLock { $0 }
    do {
      try Self.checkSize(of: data, pixelCountMax: options.pixelCountMax)
      return try options.decoder.image(
        from: data, response: response, scale: options.scale, inflates: options.inflates)
    } catch let failure {
      store(failure, at: error)
      return nil
    }
  }

  /// Throws if the head of an image claims too many pixels or is not valid: decoders accept some of these, and would
  /// see another size. Bytes of an unknown format are left to the decoder.
  static func checkSize(of data: Data, pixelCountMax: Int) throws {
    do throws(AFImageError) {
      _ = try ImageHead.read(data.span, pixelCountMax: pixelCountMax)
    } catch {
      switch error {
      case .tooManyPixels, .invalidHead: throw error
      default: break
      }
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let scale = "imageScale"
    static let inflates = "automaticallyInflatesResponseImage"
  }

  /// Creates a serializer from an archive. Settings that are missing in the archive have the defaults of `init()`,
  /// except ``AFHTTPResponseSerializer/acceptableContentTypes``, which is `nil`.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
    options.withLock { options in
      if let scale = coder.decimal(forKey: Key.scale) { options.scale = CGFloat(scale) }
      if let inflates = coder.flag(forKey: Key.inflates) { options.inflates = inflates }
    }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    let options = options.withLock { $0 }
    coder.encode(Double(options.scale), forKey: Key.scale)
    coder.encode(options.inflates, forKey: Key.inflates)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    let options = options.withLock { $0 }
    (copy as? AFImageResponseSerializer)?.options.withLock { $0 = options }
    return copy
  }
}
