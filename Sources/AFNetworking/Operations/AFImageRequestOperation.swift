import Dispatch
import Foundation
import Larkspur

/// AFNetworking 1's operation for images. It accepts what ``AFImageResponseSerializer`` accepts, and requests whose
/// path ends in `.png`, `.jpg`, `.gif` and the like.
///
/// Images are ``AFImage``: type and size, and the bytes as they are. A program with a decoder of its own sets it in the
/// `responseSerializer` and takes its images from ``AFHTTPRequestOperation/responseObject``.
open class AFImageRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// An operation with a block, which gets the image on the main queue, or where the operation's queues say.
  public convenience init(request urlRequest: URLRequest, success: ((AFImage?) -> Void)?) {
    self.init(request: urlRequest, imageProcessingBlock: nil, success: { _, _, image in success?(image) }, failure: nil)
  }

  /// An operation with blocks, which are called on the main queue, or where the operation's queues say.
  ///
  /// - Parameters:
  ///   - urlRequest: What is loaded.
  ///   - imageProcessingBlock: Makes another image of the one that has come, on a queue of its own.
  ///   - success: Gets the image; nil if the bytes are of no known format.
  ///   - failure: Gets the error.
  public convenience init(
    request urlRequest: URLRequest, imageProcessingBlock: ((AFImage) -> AFImage?)? = nil,
    success: ((URLRequest, HTTPURLResponse?, AFImage?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) {
    self.init(request: urlRequest)
    let blocks = Carried((imageProcessingBlock, success))
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

  /// An operation for `urlRequest`, which begins when it is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// The image. Nil: the bytes are of no known format, or are not acceptable, and `error` says so; or the operation
  /// has not finished.
  open var responseImage: AFImage! { responseObject as? AFImage }

  /// Pixels for each unit of an image's size. 1 at first.
  open var imageScale: CGFloat {
    get { (responseSerializer as? AFImageResponseSerializer)?.imageScale ?? 1 }
    set { (responseSerializer as? AFImageResponseSerializer)?.imageScale = newValue }
  }

  /// Whether a decoder is to unpack the pixels at once. True at first.
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
