import Foundation
import Larkspur

/// AFNetworking 1's operation for JSON. It accepts `application/json`, `text/json` and `text/javascript`, and requests
/// whose path ends in `.json`.
open class AFJSONRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  /// An operation with blocks. They are called on the main queue, or where the operation's queues say.
  ///
  /// - Parameters:
  ///   - urlRequest: What is loaded.
  ///   - success: Gets the object; nil if there is no content.
  ///   - failure: Gets the error, and the object if there is one all the same.
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

  /// An operation for `urlRequest`, which begins when it is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// What the content says. Nil: it is no JSON, and `error` says why; or there is none; or the operation has not
  /// finished.
  open var responseJSON: Any! { responseObject }

  /// How the content is read. No options at first.
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
