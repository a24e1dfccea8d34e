import Foundation
import Larkspur

/// AFNetworking 1's operation for property lists. It accepts `application/x-plist`, and requests whose path ends in
/// `.plist`.
open class AFPropertyListRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// An operation with blocks. They are called on the main queue, or where the operation's queues say.
  ///
  /// - Parameters:
  ///   - urlRequest: What is loaded.
  ///   - success: Gets the property list.
  ///   - failure: Gets the error, and the property list if there is one all the same.
  public convenience init(
    request urlRequest: URLRequest, success: ((URLRequest, HTTPURLResponse?, Any?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error, Any?) -> Void)? = nil
  ) {
    self.init(request: urlRequest)
    setCompletionBlockWithSuccess { operation, object in
      success?(operation.request, operation.response, object)
    } failure: { operation, error in
      let list = (operation as? AFPropertyListRequestOperation)?.responsePropertyList
      failure?(operation.request, operation.response, error, list)
    }
  }

  /// An operation for `urlRequest`, which begins when it is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// What the content says. Nil: it is no property list, and `error` says why; or the operation has not finished.
  open var responsePropertyList: Any! { responseObject }

  /// How the content is read. No options at first.
  open var propertyListReadOptions: PropertyListSerialization.ReadOptions {
    get { (responseSerializer as? AFPropertyListResponseSerializer)?.readOptions ?? [] }
    set { (responseSerializer as? AFPropertyListResponseSerializer)?.readOptions = newValue }
  }

  open override class func acceptableContentTypes() -> Set<AnyHashable>? {
    AcceptanceAdditions.contentTypes(for: self).union(["application/x-plist"])
  }

  open override class func canProcess(_ urlRequest: URLRequest) -> Bool {
    urlRequest.url?.pathExtension == "plist" || super.canProcess(urlRequest)
  }

  override class func makeResponseSerializer() -> AFHTTPResponseSerializer {
    accepting(AFPropertyListResponseSerializer())
  }
}
