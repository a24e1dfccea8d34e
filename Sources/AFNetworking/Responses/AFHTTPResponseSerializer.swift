import Foundation
import Larkspur
import Synchronization

/// Validates a response's status and its content type, and returns its bytes unchanged: the base class of all response
/// serializers.
///
/// A subclass calls ``validate(_:data:)`` or `super` first. Properties may be set on any thread; a response that is
/// being serialized at the same time sees the old or the new value.
///
/// A program's own subclass is copied through `init(coder:)` with an empty decoder, and then through `copy(with:)`:
/// override `copy(with:)` to copy the properties that the subclass adds.
open class AFHTTPResponseSerializer: NSObject, AFURLResponseSerialization, @unchecked Sendable {
  private struct Settings {
    var statusCodes: IndexSet? = IndexSet(integersIn: 200..<300)
    var contentTypes: Set<String>?
    var stringEncoding = String.Encoding.utf8.rawValue
  }

  private let settings = Mutex(Settings())

  /// Creates a serializer that accepts every status from 200 to 299, and every content type.
  public override init() { super.init() }

  /// Creates a serializer; equivalent to `init()`. A program's own subclass overrides this method to return its own
  /// class.
  open class func serializer() -> AFHTTPResponseSerializer { AFHTTPResponseSerializer() }

  /// The acceptable status codes, or `nil` to accept all. 200 to 299 by default.
  open var acceptableStatusCodes: IndexSet? {
    get { settings.withLock { $0.statusCodes } }
    set { settings.withLock { $0.statusCodes = newValue } }
  }

  /// The acceptable content types, in lower case and without parameters, or `nil` to accept all, which is the default
  /// of this class. A response without bytes does not need a type.
  open var acceptableContentTypes: Set<String>? {
    get { settings.withLock { $0.contentTypes } }
    set { settings.withLock { $0.contentTypes = newValue } }
  }

  /// The encoding for text whose response names no encoding: a raw value of `String.Encoding`, UTF-8 by default.
  ///
  /// AFNetworking has this property up to version 3. No serializer of this module reads it: JSON, XML and property
  /// lists state their encoding themselves.
  open var stringEncoding: UInt {
    get { settings.withLock { $0.stringEncoding } }
    set { settings.withLock { $0.stringEncoding = newValue } }
  }

  /// Checks status and content type. A response that is not an HTTP response is acceptable.
  ///
  /// - Throws: An `NSError` of ``AFURLResponseSerializationErrorDomain``: `NSURLErrorCannotDecodeContentData` for the
  ///   content type, `NSURLErrorBadServerResponse` for the status. If both are wrong, the error for the status is
  ///   thrown, with the error for the content type as its underlying error.
  open func validate(_ response: HTTPURLResponse?, data: Data?) throws {
    guard let response else { return }
    let (statusCodes, contentTypes) = settings.withLock { ($0.statusCodes, $0.contentTypes) }
    var problem: NSError?
    // The content type of an empty body does not matter.
    if let contentTypes, data?.isEmpty == false {
      let mimeType = response.mimeType
      if !(mimeType.map(contentTypes.contains) ?? false) {
        problem = Self.error(
          .cannotDecodeContentData, "Request failed: unacceptable content-type: \(mimeType ?? "(null)")", response, data
        )
      }
    }
    if let statusCodes, !statusCodes.contains(response.statusCode) {
      // Lower case: Darwin's texts for status codes have no capitals, and programs compare with them.
      let phrase = HTTPURLResponse.localizedString(forStatusCode: response.statusCode).lowercased()
      problem = Self.error(
        .badServerResponse, "Request failed: \(phrase) (\(response.statusCode))", response, data
      ).over(problem)
    }
    if let problem { throw problem }
  }

  private static func error(
    _ code: URLError.Code, _ message: String, _ response: HTTPURLResponse, _ data: Data?
  ) -> NSError {
    var info = NSError.entries(forMessage: message)
    info[AFNetworkingOperationFailingURLResponseErrorKey] = response
    info[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
    info[NSURLErrorFailingURLErrorKey] = response.url
    return NSError(domain: AFURLResponseSerializationErrorDomain, code: code.rawValue, userInfo: info)
  }

  /// Validates the response, and returns the bytes even if the response is not acceptable.
  open func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any? {
    _ = isReadable(response, data, error)
    return data
  }

  /// Validates the response for a subclass that reads the bytes next. A validation error goes to `errorPointer`.
  ///
  /// - Returns: Whether the subclass should read the bytes: `false` for a wrong content type, `true` for a wrong
  ///   status.
  package func isReadable(_ response: URLResponse?, _ data: Data?, _ errorPointer: NSErrorPointer) -> Bool {
    do {
      try validate(response as? HTTPURLResponse, data: data)
      return true
    } catch {
      let error = error as NSError
      errorPointer?.pointee = error
      return !error.saysContentIsUnreadable
    }
  }

  /// Stores an error of reading at `errorPointer`, with the validation's error as its underlying error.
  package func store(_ error: any Error, at errorPointer: NSErrorPointer) {
    errorPointer?.pointee = (error as NSError).over(errorPointer?.pointee)
  }

  // MARK: - Archives and copies

  private enum Key {
    static let statusCodes = "acceptableStatusCodes"
    static let contentTypes = "acceptableContentTypes"
    static let stringEncoding = "stringEncoding"
  }

  /// `true`: an archive holds only objects of the classes that are passed to the decoder.
  open class var supportsSecureCoding: Bool { true }

  /// Creates a serializer from an archive that this module wrote. Settings that are missing in the archive have the
  /// defaults of `init()`.
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

  /// Writes the settings to a keyed archive.
  open func encode(with coder: NSCoder) {
    let settings = settings.withLock { $0 }
    coder.encode(settings.statusCodes.map { NSString(string: $0.rangesText) }, forKey: Key.statusCodes)
    if let types = settings.contentTypes { coder.encode(texts: types.sorted(), forKey: Key.contentTypes) }
    coder.encode(number: settings.stringEncoding, forKey: Key.stringEncoding)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a serializer of the same class with the same settings.
  open func copy(with zone: NSZone? = nil) -> Any {
    guard let coder = EmptyArchive.decoder(), let copy = type(of: self).init(coder: coder) else { return self }
    let settings = settings.withLock { $0 }
    copy.settings.withLock { $0 = settings }
    return copy
  }
}
