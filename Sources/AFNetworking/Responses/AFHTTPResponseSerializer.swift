import Foundation
import Larkspur
import Synchronization

/// Validates a response's status and its content type, and gives its bytes as they are: the base of all serializers.
///
/// A subclass calls ``validate(_:data:)`` or `super` first. Properties may be set on any thread; a response that is being
/// read meanwhile sees either value.
///
/// A subclass of yours is copied by way of `init(coder:)`, with a decoder that holds nothing, and `copy(with:)`: override
/// that one for what you add.
open class AFHTTPResponseSerializer: NSObject, AFURLResponseSerialization, @unchecked Sendable {
  private struct Settings {
    var statusCodes: IndexSet? = IndexSet(integersIn: 200..<300)
    var contentTypes: Set<String>?
    var stringEncoding = String.Encoding.utf8.rawValue
  }

  private let settings = Mutex(Settings())

  /// Accepts every status from 200 to 299, and every content type.
  public override init() { super.init() }

  /// The same as `init()`. A subclass of yours has to override it to give its own class.
  open class func serializer() -> AFHTTPResponseSerializer { AFHTTPResponseSerializer() }

  /// The status codes that are acceptable. Nil: all. 200 to 299 at first.
  open var acceptableStatusCodes: IndexSet? {
    get { settings.withLock { $0.statusCodes } }
    set { settings.withLock { $0.statusCodes = newValue } }
  }

  /// The content types that are acceptable, in lower case and without parameters. Nil: all, which is the default of this
  /// class. A response without bytes does not need a type.
  open var acceptableContentTypes: Set<String>? {
    get { settings.withLock { $0.contentTypes } }
    set { settings.withLock { $0.contentTypes = newValue } }
  }

  /// An encoding for text whose response names none: a raw value of `String.Encoding`, UTF-8 at first.
  ///
  /// AFNetworking has it up to version 3. No serializer of this module asks for it: JSON, XML and property lists say their
  /// encoding themselves.
  open var stringEncoding: UInt {
    get { settings.withLock { $0.stringEncoding } }
    set { settings.withLock { $0.stringEncoding = newValue } }
  }

  /// Checks status and content type. A response that is no HTTP response is acceptable.
  ///
  /// - Throws: An `NSError` of ``AFURLResponseSerializationErrorDomain``: `NSURLErrorCannotDecodeContentData` for the content
  ///   type, `NSURLErrorBadServerResponse` for the status. If both are wrong the second one is thrown, and the first one
  ///   stands beneath it.
  open func validate(_ response: HTTPURLResponse?, data: Data?) throws {
    guard let response else { return }
    let (statusCodes, contentTypes) = settings.withLock { ($0.statusCodes, $0.contentTypes) }
    var problem: NSError?
    // Where there are no bytes their type does not matter.
    if let contentTypes, data?.isEmpty == false {
      let mimeType = response.mimeType
      if !(mimeType.map(contentTypes.contains) ?? false) {
        problem = Self.error(
          .cannotDecodeContentData, "Request failed: unacceptable content-type: \(mimeType ?? "(null)")", response, data
        )
      }
    }
    if let statusCodes, !statusCodes.contains(response.statusCode) {
      // Darwin's words for statuses have no capitals: these are the ones that programs know from there.
      let words = HTTPURLResponse.localizedString(forStatusCode: response.statusCode).lowercased()
      problem = Self.error(
        .badServerResponse, "Request failed: \(words) (\(response.statusCode))", response, data
      ).over(problem)
    }
    if let problem { throw problem }
  }

  private static func error(
    _ code: URLError.Code, _ words: String, _ response: HTTPURLResponse, _ data: Data?
  ) -> NSError {
    var info: [String: Any] = [
      NSLocalizedDescriptionKey: words, AFNetworkingOperationFailingURLResponseErrorKey: response,
    ]
    info[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
    info[NSURLErrorFailingURLErrorKey] = response.url
    return NSError(domain: AFURLResponseSerializationErrorDomain, code: code.rawValue, userInfo: info)
  }

  /// Validates the response, and gives the bytes, acceptable or not.
  open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    _ = isReadable(response, data, error)
    return data
  }

  /// Validates for a subclass that reads the bytes next. Whether it should: a wrong status is no reason not to, a wrong
  /// content type is.
  package func isReadable(_ response: URLResponse?, _ data: Data?, _ place: NSErrorPointer) -> Bool {
    do {
      try validate(response as? HTTPURLResponse, data: data)
      return true
    } catch {
      let error = error as NSError
      place?.pointee = error
      return !error.saysContentIsUnreadable
    }
  }

  /// Leaves an error of the reading, over what the validation has found.
  package func leave(_ error: any Error, at place: NSErrorPointer) {
    place?.pointee = (error as NSError).over(place?.pointee)
  }

  // MARK: - Archives and copies

  private enum Key {
    static let statusCodes = "acceptableStatusCodes"
    static let contentTypes = "acceptableContentTypes"
    static let stringEncoding = "stringEncoding"
  }

  /// True: the archives hold no objects but those that they say.
  open class var supportsSecureCoding: Bool { true }

  /// Reads an archive of this module's. What is missing there is as `init()` has it.
  public required init?(coder: NSCoder) {
    super.init()
    settings.withLock { settings in
      if coder.containsValue(forKey: Key.statusCodes) {
        settings.statusCodes = coder.text(forKey: Key.statusCodes).map(IndexSet.init(rangesText:))
      }
      settings.contentTypes = coder.texts(forKey: Key.contentTypes).map { Set($0) }
      if let encoding = coder.number(forKey: Key.stringEncoding) { settings.stringEncoding = encoding }
    }
  }

  /// Writes what is set, for a keyed archive.
  open func encode(with coder: NSCoder) {
    let settings = settings.withLock { $0 }
    coder.encode(settings.statusCodes.map { NSString(string: $0.rangesText) }, forKey: Key.statusCodes)
    if let types = settings.contentTypes { coder.encode(texts: types.sorted(), forKey: Key.contentTypes) }
    coder.encode(number: settings.stringEncoding, forKey: Key.stringEncoding)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// A serializer of the same class with the same settings.
  open func copy(with zone: NSZone? = nil) -> Any {
    guard let coder = EmptyArchive.decoder(), let copy = type(of: self).init(coder: coder) else { return self }
    let settings = settings.withLock { $0 }
    copy.settings.withLock { $0 = settings }
    return copy
  }
}
