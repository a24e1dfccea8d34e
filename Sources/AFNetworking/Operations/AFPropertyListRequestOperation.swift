import Foundation
import Larkspur

/// AFNetworking 1's operation for property lists. Accepts `application/x-plist`, and can process requests whose path
/// ends in `.plist`.
open class AFPropertyListRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// Creates an operation with blocks that are called on the main queue, unless the operation's queue properties name
  /// another.
  ///
  /// - Parameters:
  ///   - urlRequest: The request to load.
  ///   - success: Receives the property list.
  ///   - failure: Receives the error, and the property list if there is one in spite of the error.
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

  /// Creates an operation for `urlRequest`. Loading begins when the operation is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// The parsed content, or `nil` if the content is not a property list, in which case `error` has the reason, or if
  /// the operation has not finished.
  open var responsePropertyList: Any! { responseObject }

  /// The options for parsing. Empty by default.
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
