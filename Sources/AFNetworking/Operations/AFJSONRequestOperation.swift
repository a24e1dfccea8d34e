import Foundation
import Larkspur

/// AFNetworking 1's operation for JSON. Accepts `application/json`, `text/json` and `text/javascript`, and can process
/// requests whose path ends in `.json`.
open class AFJSONRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// Creates an operation with blocks that are called on the main queue, unless the operation's queue properties name
  /// another.
  ///
  /// - Parameters:
  ///   - urlRequest: The request to load.
  ///   - success: Receives the object, or `nil` if there is no content.
  ///   - failure: Receives the error, and the object if there is one in spite of the error.
  public convenience init(
    request urlRequest: URLRequest, success: ((URLRequest, HTTPURLResponse?, Any?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error, Any?) -> Void)? = nil
  ) {
    self.init(request: urlRequest)
    setCompletionBlockWithSuccess { operation, object in
      success?(operation.request, operation.response, object)
    } failure: { operation, error in
      failure?(operation.request, operation.response, error, (operation as? AFJSONRequestOperation)?.responseJSON)
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

  /// The parsed content, or `nil` if the content is not JSON, in which case `error` has the reason, if there is no
  /// content, or if the operation has not finished.
  open var responseJSON: Any! { responseObject }

  /// The options for parsing. Empty by default.
  open var jsonReadingOptions: JSONSerialization.ReadingOptions {
    get { (responseSerializer as? AFJSONResponseSerializer)?.readingOptions ?? [] }
    set { (responseSerializer as? AFJSONResponseSerializer)?.readingOptions = newValue }
  }

  open override class func acceptableContentTypes() -> Set<AnyHashable>? {
    AcceptanceAdditions.contentTypes(for: self).union(["application/json", "text/json", "text/javascript"])
  }

  open override class func canProcess(_ urlRequest: URLRequest) -> Bool {
    urlRequest.url?.pathExtension == "json" || super.canProcess(urlRequest)
  }

  override class func makeResponseSerializer() -> AFHTTPResponseSerializer {
    accepting(AFJSONResponseSerializer())
  }
}
