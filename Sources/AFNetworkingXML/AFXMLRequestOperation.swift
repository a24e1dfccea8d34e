import AFNetworking
import Foundation
import FoundationXML
import Larkspur

/// AFNetworking 1's operation for XML. It accepts `application/xml` and `text/xml`, and requests whose path ends in
/// `.xml`.
///
/// Its response object is a parser. ``responseXMLDocument`` is made when it is asked for.
open class AFXMLRequestOperation: AFHTTPRequestOperation, @unchecked Sendable {
  private let document = DocumentBox()

  /// An operation for `urlRequest`, which begins when it is started.
  public required init(request urlRequest: URLRequest) {
    super.init(request: urlRequest)
    responseSerializer = Self.accepting(AFXMLParserResponseSerializer())
    usesAFNetworkingErrorDomain()
  }

  public required init?(coder decoder: NSCoder) {
    super.init(coder: decoder)
    usesAFNetworkingErrorDomain()
  }

  /// An operation with blocks that get an `XMLParser`. They are called on the main queue, or where the operation's
  /// queues say.
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

  /// An operation with blocks that get an `XMLDocument`. They are called on the main queue, or where the operation's
  /// queues say. What is no XML fails.
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

  /// A parser of the content. Nil: there is none, or it is not acceptable, or the operation has not finished.
  open var responseXMLParser: XMLParser! { responseObject as? XMLParser }

  /// The content as a document. Nil: it is no XML, and ``error`` says why; or there is none; or the operation has not
  /// finished.
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

/// A document that is read once.
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

  /// Why it could not be read.
  var error: (any Error)? {
    lock.lock()
    defer { lock.unlock() }
    if case .failure(let error) = result { return error }
    return nil
  }
}
