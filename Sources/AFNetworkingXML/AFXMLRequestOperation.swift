import AFNetworking
import Foundation
import FoundationXML
import Larkspur

/// AFNetworking 1's operation for XML. Accepts `application/xml` and `text/xml`, and can process requests whose path
/// ends in `.xml`.
///
/// The response object is a parser. ``responseXMLDocument`` is created when it is first read.
open class AFXMLRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  private let document = DocumentBox()

  /// Creates an operation for `urlRequest`. Loading begins when the operation is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    responseSerializer = Self.accepting(AFXMLParserResponseSerializer())
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// Creates an operation with blocks that receive an `XMLParser`. The blocks are called on the main queue, unless the
  /// operation's queue properties name another.
  open class func xmlParserRequestOperation(
    with urlRequest: URLRequest, success: ((URLRequest, HTTPURLResponse?, XMLParser?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error, XMLParser?) -> Void)? = nil
  ) -> Self {
    let operation = Self(request: urlRequest)
    operation.setCompletionBlockWithSuccess { operation, object in
      success?(operation.request, operation.response, object as? XMLParser)
    } failure: { operation, error in
      let parser = (operation as? AFXMLRequestOperation)?.responseXMLParser
      failure?(operation.request, operation.response, error, parser)
    }
    return operation
  }

  /// Creates an operation with blocks that receive an `XMLDocument`. The blocks are called on the main queue, unless
  /// the operation's queue properties name another. Content that is not XML is a failure.
  open class func xmlDocumentRequestOperation(
    with urlRequest: URLRequest, success: ((URLRequest, HTTPURLResponse?, XMLDocument?) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error, XMLDocument?) -> Void)? = nil
  ) -> Self {
    let operation = Self(request: urlRequest)
    operation.setCompletionBlockWithSuccess { operation, _ in
      let document = (operation as? AFXMLRequestOperation)?.responseXMLDocument
      if let error = operation.error {
        failure?(operation.request, operation.response, error, document)
      } else {
        success?(operation.request, operation.response, document)
      }
    } failure: { operation, error in
      let document = (operation as? AFXMLRequestOperation)?.responseXMLDocument
      failure?(operation.request, operation.response, error, document)
    }
    return operation
  }

  /// A parser for the content, or `nil` if there is no content, the content is not acceptable, or the operation has not
  /// finished.
  open var responseXMLParser: XMLParser! { responseObject as? XMLParser }

  /// The content as a document, or `nil` if the content is not XML, in which case ``error`` has the reason, if there is
  /// no content, or if the operation has not finished.
  open var responseXMLDocument: XMLDocument! {
    guard isFinished, let data = responseData, !data.isEmpty else { return nil }
    return document.read(data)
  }

  open override var error: (any Error)! { super.error ?? document.error }

  open override func cancel() {
    super.cancel()
    responseXMLParser?.delegate = nil
  }

  open override class func acceptableContentTypes() -> Set<AnyHashable>? {
    ["application/xml", "text/xml"]
  }

  open override class func canProcess(_ urlRequest: URLRequest) -> Bool {
    urlRequest.url?.pathExtension == "xml" || super.canProcess(urlRequest)
  }
}

/// Parses a document at most once.
private final class DocumentBox: @unchecked Sendable {
  private let lock = NSLock()
  private var result: Result<XMLDocument, any Error>?

  func read(_ data: Data) -> XMLDocument? {
    lock.lock()
    defer { lock.unlock() }
    let result = result ?? Result { try XMLForm.document(of: data) }
    self.result = result
    return try? result.get()
  }

  /// The reason why the document could not be parsed.
  var error: (any Error)? {
    lock.lock()
    defer { lock.unlock() }
    if case .failure(let error) = result { return error }
    return nil
  }
}
