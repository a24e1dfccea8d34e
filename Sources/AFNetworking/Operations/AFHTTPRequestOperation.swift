import Dispatch
import Foundation
import Larkspur

/// An operation that loads one HTTP request, and makes an object of the response with a serializer.
///
/// After a pause the operation continues where it stopped if the server supports range requests and names the version
/// by a strong validator (RFC 9110 8.8.1, 14); otherwise it loads everything again. The operation fails if its
/// ``responseSerializer`` does not accept the status or the content type.
open class AFHTTPRequestOperation: AFURLConnectionOperation, @unchecked Sendable {
  /// Creates an operation for `urlRequest`, with an `AFHTTPResponseSerializer`.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    let serializer = Self.makeResponseSerializer()
    read { $0.responseSerializer = serializer }
  }

  /// Creates the serializer of a new operation, which accepts what the class accepts.
  class func makeResponseSerializer() -> AFHTTPResponseSerializer {
    accepting(AFHTTPResponseSerializer())
  }

  /// Returns the serializer, changed to accept what the class accepts.
  package class func accepting(_ serializer: AFHTTPResponseSerializer) -> AFHTTPResponseSerializer {
    serializer.acceptableStatusCodes = acceptedStatusCodes
    serializer.acceptableContentTypes = acceptedContentTypes
    return serializer
  }

  open override var response: HTTPURLResponse! { super.response as? HTTPURLResponse }

  /// The error of the load or of the serializer. If the response has not been serialized yet, this happens now.
  open override var error: (any Error)! {
    serialize()
    return read { $0.serializationError } ?? super.error
  }

  /// The serializer that validates the response and makes ``responseObject``. An `AFHTTPResponseSerializer` by default.
  open var responseSerializer: AFHTTPResponseSerializer {
    get { read { $0.responseSerializer } ?? AFHTTPResponseSerializer() }
    set {
      // Release the old values after the lock: they may be the program's objects.
      _ = read { details in
        defer {
          details.responseSerializer = newValue
          details.responseObject = nil
          details.serializationError = nil
          details.isSerialized = false
        }
        return (details.responseSerializer, details.responseObject, details.serializationError)
      }
    }
  }

  /// The serializer's object for the content, or `nil` before the operation has finished. The object is made when it is
  /// first read, on the reading thread; ``error`` then has the serializer's error.
  open var responseObject: Any! {
    serialize()
    return read { $0.responseObject }
  }

  /// Makes the response object, unless this has been done.
  func serialize() {
    let (isDue, serializer, response, data, usesOldDomain) = read { details in
      (
        !details.isSerialized && details.machine.state == .finished && details.error == nil,
        details.responseSerializer, details.response, details.responseData, details.usesOldDomain
      )
    }
    guard isDue, let serializer else { return }
    var failure: NSError?
    let object = serializer.responseObject(for: response, data: data, error: &failure)
    let error = failure.map { usesOldDomain ? inAFNetworkingErrorDomain($0) : $0 }
    read { details in
      // Another thread may have been faster, or the serializer may have been replaced.
      guard !details.isSerialized, details.responseSerializer === serializer else { return }
      details.isSerialized = true
      details.responseObject = object
      details.serializationError = error
    }
  }

  private static let processingQueue = DispatchQueue(
    label: "afnetworking.http-request.processing", attributes: .concurrent)

  /// Sets `completionBlock` to a block that makes the response object on a private queue, and then calls one of the
  /// given blocks on the completion queue: `success` with the object, or `failure` with the error. A cancelled
  /// operation fails.
  open func setCompletionBlockWithSuccess(
    _ success: ((AFHTTPRequestOperation, Any?) -> Void)?, failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) {
    let blocks = UncheckedSendable((success, failure))
    completionBlock = { [weak self] in
      // The caller of the block retains the operation.
      guard let self else { return }
      let group = self.completionGroupOrShared
      group.enter()
      Self.processingQueue.async {
        let object = UncheckedSendable(self.error == nil ? self.responseObject : nil)
        let error: (any Error)? = self.error
        self.resultQueue(isSuccess: error == nil).async(group: group) {
          if let error { blocks.value.1?(self, error) } else { blocks.value.0?(self, object.value) }
        }
        group.leave()
      }
    }
  }

  /// Returns the queue for results.
  func resultQueue(isSuccess: Bool) -> DispatchQueue {
    let own = read { isSuccess ? $0.successQueue : $0.failureQueue }
    return own ?? completionQueueOrMain
  }

  override func continuation(after response: URLResponse) -> RangeContinuation? {
    RangeContinuation(of: read { $0.request }, after: response)
  }

  // MARK: - Acceptance by class, as in AFNetworking 1

  /// The status codes that operations of this class accept, or `nil` for all. 200 to 299 and added codes by default.
  ///
  /// The ``responseSerializer`` of a new operation accepts these.
  open class func acceptableStatusCodes() -> IndexSet? {
    IndexSet(integersIn: 200..<300).union(AcceptanceAdditions.statusCodes(for: self))
  }

  /// Adds status codes that this class and its subclasses accept, for operations that are created from now on.
  public class func addAcceptableStatusCodes(_ statusCodes: IndexSet) {
    AcceptanceAdditions.add(statusCodes, [], for: self)
  }

  /// The content types that operations of this class accept, or `nil` for all, which is the default in this class
  /// unless types have been added.
  open class func acceptableContentTypes() -> Set<AnyHashable>? {
    let added = AcceptanceAdditions.contentTypes(for: self)
    return added.isEmpty ? nil : added
  }

  /// Adds content types that this class and its subclasses accept, for operations that are created from now on.
  public class func addAcceptableContentTypes(_ contentTypes: Set<AnyHashable>) {
    AcceptanceAdditions.add([], contentTypes, for: self)
  }

  /// Whether this class is suitable for a request: whether it accepts a type of the request's `Accept` field. This
  /// class itself is suitable for all requests.
  open class func canProcess(_ urlRequest: URLRequest) -> Bool {
    guard self != AFHTTPRequestOperation.self else { return true }
    let wanted = AFContentTypesFromHTTPHeader(urlRequest.value(forHTTPHeaderField: "Accept"))
    guard let wanted, let accepted = acceptedContentTypes else { return false }
    return !accepted.isDisjoint(with: wanted)
  }

  /// The Objective-C spelling of ``canProcess(_:)``.
  public class func canProcessRequest(_ urlRequest: URLRequest) -> Bool { canProcess(urlRequest) }

  /// The accepted content types, or `nil` for all. Additions count even if a subclass overrides
  /// `acceptableContentTypes()`.
  class var acceptedContentTypes: Set<String>? {
    acceptableContentTypes().map { types in
      Set(types.union(AcceptanceAdditions.contentTypes(for: self)).compactMap { $0.base as? String })
    }
  }

  /// The accepted status codes, or `nil` for all. Additions count even if a subclass overrides
  /// `acceptableStatusCodes()`.
  class var acceptedStatusCodes: IndexSet? {
    acceptableStatusCodes().map { $0.union(AcceptanceAdditions.statusCodes(for: self)) }
  }

  /// Whether there is a response with an acceptable status.
  open var hasAcceptableStatusCode: Bool {
    guard let response else { return false }
    return responseSerializer.acceptableStatusCodes?.contains(response.statusCode) ?? true
  }

  /// Whether there is a response with an acceptable content type. A response without a type counts as
  /// `application/octet-stream`.
  open var hasAcceptableContentType: Bool {
    guard let response else { return false }
    return responseSerializer.acceptableContentTypes?.contains(response.mimeType ?? "application/octet-stream") ?? true
  }

  /// The queue for the success block, or `nil`, the default, for `completionQueue`.
  open var successCallbackQueue: DispatchQueue? {
    get { read { $0.successQueue } }
    set { read { $0.successQueue = newValue } }
  }

  /// The queue for the failure block, or `nil`, the default, for `completionQueue`.
  open var failureCallbackQueue: DispatchQueue? {
    get { read { $0.failureQueue } }
    set { read { $0.failureQueue = newValue } }
  }

  // MARK: - Archives and copies

  private static let serializerKey = "responseSerializer"

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    let serializer = decoder.object(forKey: Self.serializerKey) ?? Self.makeResponseSerializer()
    read { $0.responseSerializer = serializer }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    coder.encode(responseSerializer, forKey: Self.serializerKey)
  }

  open override func copy(with zone: NSZone? = nil) -> Any {
    let copy = super.copy(with: zone)
    if let copy = copy as? AFHTTPRequestOperation,
      let serializer = responseSerializer.copy() as? AFHTTPResponseSerializer
    {
      copy.responseSerializer = serializer
      let (success, failure) = read { ($0.successQueue, $0.failureQueue) }
      copy.successCallbackQueue = success
      copy.failureCallbackQueue = failure
    }
    return copy
  }
}
