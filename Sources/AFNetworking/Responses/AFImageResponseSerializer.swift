import Foundation
import Larkspur
import Synchronization

/// Validates a response, and makes an image of its bytes.
///
/// Acceptable are the types that AFNetworking accepts, and `image/webp`. Without a decoder of the program's own the images are
/// ``AFImage``, which knows PNG, JPEG, GIF, WebP and BMP. What the decoder does not know gives nil, and no error.
open class AFImageResponseSerializer: AFHTTPResponseSerializer, @unchecked Sendable {
  private struct Options {
    var scale: CGFloat = 1
    var inflates = true
    var decoder: any AFImageDecoding = AFImageHeaderDecoder()
  }

  private let options = Mutex(Options())

  /// With scale 1 and the built-in decoder.
  public override init() {
    super.init()
    acceptableContentTypes = [
      "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
      "image/x-xbitmap", "image/x-ms-bmp", "image/x-win-bitmap", "image/webp",
    ]
  }

  /// The same as `init()`.
  open override class func serializer() -> AFImageResponseSerializer { AFImageResponseSerializer() }

  /// Pixels for each unit of an image's size. 1 at first: there is no main screen whose scale it could be.
  open var imageScale: CGFloat {
    get { options.withLock { $0.scale } }
    set { options.withLock { $0.scale = newValue } }
  }

  /// Whether the decoder is to unpack the pixels at once. True at first. The built-in one unpacks nothing.
  open var automaticallyInflatesResponseImage: Bool {
    get { options.withLock { $0.inflates } }
    set { options.withLock { $0.inflates = newValue } }
  }

  /// Who makes the images: ``AFImageHeaderDecoder`` at first. It is not archived.
  open var imageDecoder: any AFImageDecoding {
    get { options.withLock { $0.decoder } }
    set { options.put(newValue, at: \.decoder) }
  }

  open override func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    guard isReadable(response, data, error), let data, !data.isEmpty else { return nil }
    let options = options.withLock { $0 }
    do {
      return try options.decoder.image(
        from: data, response: response, scale: options.scale, inflates: options.inflates)
    } catch let failure {
      leave(failure, at: error)
      return nil
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let scale = "imageScale"
    static let inflates = "automaticallyInflatesResponseImage"
  }

  /// Reads an archive of this class. What is missing there is as `init()` has it.
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
