import Dispatch
import Foundation
import Larkspur

/// Loads one HTTP request as an operation, and makes an object of the response by a serializer.
///
/// After a pause it goes on where it had stopped, if the server can send parts (RFC 9110 14); if not, it loads all
/// again. It fails with a status or a content type that its ``responseSerializer`` does not accept.
open class AFHTTPRequestOperation: AFURLConnectionOperation, @unchecked Sendable {
  /// An operation for `urlRequest`, with an `AFHTTPResponseSerializer`.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    let serializer = Self.makeResponseSerializer()
    read { $0.responseSerializer = serializer }
  }

  /// The serializer of a new operation. It accepts what the class accepts.
  class func makeResponseSerializer() -> AFHTTPResponseSerializer {
    accepting(AFHTTPResponseSerializer())
  }

  /// The serializer, which accepts what the class accepts.
  package class func accepting(_ serializer: AFHTTPResponseSerializer) -> AFHTTPResponseSerializer {
    serializer.acceptableStatusCodes = acceptedStatusCodes
    serializer.acceptableContentTypes = acceptedContentTypes
    return serializer
  }

  open override var response: HTTPURLResponse! { super.response as? HTTPURLResponse }

  /// Why it failed: the load's error, or the serializer's, which looks at the response now if it has not done so yet.
  open override var error: (any Error)! {
    serialize()
    return read { $0.serializationError } ?? super.error
  }

  /// What validates the response and makes ``responseObject``. An `AFHTTPResponseSerializer` at first.
  open var responseSerializer: AFHTTPResponseSerializer {
    get { read { $0.responseSerializer } ?? AFHTTPResponseSerializer() }
    set {
      // What was there goes when the lock has gone: it may be the program's.
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

  /// What ``responseSerializer`` makes of the content. It is made when it is asked for first, on the thread that asks,
  /// once the operation has finished; ``error`` then says what was wrong with it. Nil before.
  open var responseObject: Any! {
    serialize()
    return read { $0.responseObject }
  }

  /// Makes the object, unless that has been done.
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
      // Another thread may have been here, or another serializer may be wanted by now.
      guard !details.isSerialized, details.responseSerializer === serializer else { return }
      details.isSerialized = true
      details.responseObject = object
      details.serializationError = error
    }
  }

  private static let processingQueue = DispatchQueue(
    label: "afnetworking.http-request.processing", attributes: .concurrent)

  /// Sets `completionBlock` to one that makes the response object on a queue of its own, and then calls one of the
  /// blocks on the completion queue: `success` with the object, or `failure` with the error. A cancelled operation
  /// fails.
  open func setCompletionBlockWithSuccess(
    _ success: ((AFHTTPRequestOperation, Any?) -> Void)?, failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) {
    let blocks = Carried((success, failure))
    completionBlock = { [weak self] in
      // Whoever calls the block has the operation.
      guard let self else { return }
      let group = self.completionGroupOrShared
      group.enter()
      Self.processingQueue.async {
        let object = Carried(self.error == nil ? self.responseObject : nil)
        let error: (any Error)? = self.error
        self.resultQueue(isSuccess: error == nil).async(group: group) {
          if let error { blocks.value.1?(self, error) } else { blocks.value.0?(self, object.value) }
        }
        group.leave()
      }
    }
  }

  /// Where results are delivered.
  func resultQueue(isSuccess: Bool) -> DispatchQueue {
    let own = read { isSuccess ? $0.successQueue : $0.failureQueue }
    return own ?? completionQueueOrMain
  }

  override func continuation(of request: URLRequest, after response: URLResponse?, count: Int64) -> URLRequest? {
    RangeContinuation.request(request, after: response, count: count)
  }

  // MARK: - What the class accepts, as AFNetworking 1 has it

  /// The status codes that operations of this class accept; nil is all of them. 200 to 299, and what has been added.
  ///
  /// A new operation's ``responseSerializer`` goes by it.
  open class func acceptableStatusCodes() -> IndexSet? {
    IndexSet(integersIn: 200..<300).union(AcceptanceAdditions.statusCodes(for: self))
  }

  /// Adds to what this class and its subclasses accept, for operations that are made from now on.
  public class func addAcceptableStatusCodes(_ statusCodes: IndexSet) {
    AcceptanceAdditions.add(statusCodes, [], for: self)
  }

  /// The content types that operations of this class accept; nil, as it is in this class, is all of them.
  open class func acceptableContentTypes() -> Set<AnyHashable>? {
    let added = AcceptanceAdditions.contentTypes(for: self)
    return added.isEmpty ? nil : added
  }

  /// Adds to what this class and its subclasses accept, for operations that are made from now on.
  public class func addAcceptableContentTypes(_ contentTypes: Set<AnyHashable>) {
    AcceptanceAdditions.add([], contentTypes, for: self)
  }

  /// Whether this class is the one for a request: it accepts a type that the request's `Accept` names. This class
  /// itself is good for all.
  open class func canProcess(_ urlRequest: URLRequest) -> Bool {
    guard self != AFHTTPRequestOperation.self else { return true }
    let wanted = AFContentTypesFromHTTPHeader(urlRequest.value(forHTTPHeaderField: "Accept"))
    guard let wanted, let accepted = acceptedContentTypes else { return false }
    return !accepted.isDisjoint(with: wanted)
  }

  /// The Objective-C spelling of ``canProcess(_:)``.
  public class func canProcessRequest(_ urlRequest: URLRequest) -> Bool { canProcess(urlRequest) }

  /// With what has been added, if a subclass has said its own. Nil: every type.
  class var acceptedContentTypes: Set<String>? {
    acceptableContentTypes().map { types in
      Set(types.union(AcceptanceAdditions.contentTypes(for: self)).compactMap { $0.base as? String })
    }
  }

  /// Nil: every status.
  class var acceptedStatusCodes: IndexSet? {
    acceptableStatusCodes().map { $0.union(AcceptanceAdditions.statusCodes(for: self)) }
  }

  /// Whether there is a response, and its status is acceptable.
  open var hasAcceptableStatusCode: Bool {
    guard let response else { return false }
    return responseSerializer.acceptableStatusCodes?.contains(response.statusCode) ?? true
  }

  /// Whether there is a response, and its content type is acceptable. What has no type is `application/octet-stream`.
  open var hasAcceptableContentType: Bool {
    guard let response else { return false }
    return responseSerializer.acceptableContentTypes?.contains(response.mimeType ?? "application/octet-stream") ?? true
  }

  /// Where success is told. Nil, as at first: on `completionQueue`.
  open var successCallbackQueue: DispatchQueue? {
    get { read { $0.successQueue } }
    set { read { $0.successQueue = newValue } }
  }

  /// Where failure is told. Nil, as at first: on `completionQueue`.
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
