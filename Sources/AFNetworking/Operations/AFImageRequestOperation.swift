import Dispatch
import Foundation
import Larkspur

/// AFNetworking 1's operation for images. Accepts the types of ``AFImageResponseSerializer`` and `image/x-png`, and can
/// process requests whose path ends in `.png`, `.jpg`, `.gif` and similar extensions.
///
/// Images are ``AFImage`` objects: format and size, and the undecoded bytes. A program with a custom decoder sets it in
/// the `responseSerializer`, and gets its images from ``AFHTTPRequestOperation/responseObject``.
open class AFImageRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// Creates an operation with a block that receives the image on the main queue, unless the operation's queue
  /// properties name another.
  public convenience init(request urlRequest: URLRequest, success: ((AFImage?) -> Void)?) {
    self.init(request: urlRequest, imageProcessingBlock: nil, success: { _, _, image in success?(image) }, failure: nil)
  }

  /// Creates an operation with blocks that are called on the main queue, unless the operation's queue properties name
  /// another.
  ///
  /// - Parameters:
  ///   - urlRequest: The request to load.
  ///   - imageProcessingBlock: Makes another image from the received one, on a private queue.
  ///   - success: Receives the image, or `nil` if the bytes are of no known format, or the processing returns `nil`.
  ///   - failure: Receives the error.
  public convenience init(
    request urlRequest: URLRequest, imageProcessingBlock: ((AFImage) -> AFImage?)? = nil,
    success: ((URLRequest, HTTPURLResponse?, AFImage?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) {
    self.init(request: urlRequest)
    let blocks = UncheckedSendable((imageProcessingBlock, success))
    setCompletionBlockWithSuccess { operation, object in
      let image = object as? AFImage
      guard let image, blocks.value.0 != nil else {
        return blocks.value.1?(operation.request, operation.response, image) ?? ()
      }
      let group = operation.completionGroupOrShared
      group.enter()
      Self.imageQueue.async {
        let processed = blocks.value.0?(image)
        operation.resultQueue(isSuccess: true).async(group: group) {
          blocks.value.1?(operation.request, operation.response, processed)
        }
        group.leave()
      }
    } failure: { operation, error in
      failure?(operation.request, operation.response, error)
    }
  }

  private static let imageQueue = DispatchQueue(label: "afnetworking.image-request.processing", attributes: .concurrent)

  /// Creates an operation for `urlRequest`. Loading begins when the operation is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// The image, or `nil` if the bytes are of no known format, if they are not acceptable, in which case `error` has the
  /// reason, or if the operation has not finished.
  open var responseImage: AFImage! { responseObject as? AFImage }

  /// Pixels for each unit of an image's size. 1 by default.
  open var imageScale: CGFloat {
    get { (responseSerializer as? AFImageResponseSerializer)?.imageScale ?? 1 }
    set { (responseSerializer as? AFImageResponseSerializer)?.imageScale = newValue }
  }

  /// Whether a decoder decompresses the pixels at once. `true` by default.
  open var automaticallyInflatesResponseImage: Bool {
    get { (responseSerializer as? AFImageResponseSerializer)?.automaticallyInflatesResponseImage ?? true }
    set { (responseSerializer as? AFImageResponseSerializer)?.automaticallyInflatesResponseImage = newValue }
  }

  open override class func acceptableContentTypes() -> Set<AnyHashable>? {
    let types = AFImageResponseSerializer().acceptableContentTypes ?? []
    return AcceptanceAdditions.contentTypes(for: self).union(types).union(["image/x-png"])
  }

  private static let extensions: Set<String> = [
    "tif", "tiff", "jpg", "jpeg", "gif", "png", "ico", "bmp", "cur", "webp",
  ]

  open override class func canProcess(_ urlRequest: URLRequest) -> Bool {
    extensions.contains(urlRequest.url?.pathExtension ?? "") || super.canProcess(urlRequest)
  }

  override class func makeResponseSerializer() -> AFHTTPResponseSerializer {
    accepting(AFImageResponseSerializer())
  }
}
