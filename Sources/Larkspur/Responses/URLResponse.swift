import Foundation
import LarkspurHTTP
import Synchronization

/// The metadata of a resource, which comes before its bytes: the response to a request of any scheme. Immutable, and
/// for any thread.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// Performance: values that are computed when they are read, because most programs read at most one of them.
  private final class Content {
    var type: (mimeType: String?, charset: String?)?
    var expectedContentLength: Int64?
    var suggestedFilename: String?
  }

  private let storedURL: URL?
  private let content: Mutex<Content?>

  /// Creates a response.
  ///
  /// - Parameters:
  ///   - url: The URL that the bytes come from.
  ///   - mimeType: The type of the content.
  ///   - length: The length of the content in bytes; -1 if it is unknown.
  ///   - name: The charset's name, as registered with IANA.
  public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
    storedURL = url
    let content = Content()
    content.type = (mimeType, name)
    content.expectedContentLength = Int64(length)
    self.content = Mutex(content)
  }

  /// Creates a response without a URL, for tests, which call it as `URLResponse()`.
  ///
  /// There is no `init()`: packages that are written for FoundationNetworking, which has none, add `init()` to
  /// `HTTPURLResponse` in an extension, and an extension cannot override an initializer.
  ///
  /// - Parameter nothing: Without a meaning.
  public init(_ nothing: Void = ()) {
    storedURL = nil
    content = Mutex(nil)
  }

  /// Creates a response for a subclass that computes its values when they are read.
  init(url: URL?) {
    storedURL = url
    content = Mutex(nil)
  }

  func makeType() -> (mimeType: String?, charset: String?) { (nil, nil) }

  func makeLength() -> Int64 { -1 }

  func makeFilename() -> String { SuggestedFilename.name(disposition: nil, url: url, mimeType: mimeType) }

  private func change(_ change: (Content) -> Void) {
    content.withLock { content in
      let present = content ?? Content()
      change(present)
      content = present
    }
  }

  private var contentType: (mimeType: String?, charset: String?) {
    if let type = content.withLock({ $0?.type }) { return type }
    let type = makeType()
    change { $0.type = type }
    return type
  }

  /// The URL that the bytes come from: after redirections, the URL of the last request.
  open var url: URL? { storedURL }

  /// The type of the content. For a server's response, in lower case and without parameters.
  open var mimeType: String? { contentType.mimeType }

  /// The length of the content in bytes; -1 if it is unknown.
  open var expectedContentLength: Int64 {
    if let length = content.withLock({ $0?.expectedContentLength }) { return length }
    let length = makeLength()
    change { $0.expectedContentLength = length }
    return length
  }

  /// The charset that the sender names. For a server's response, in lower case.
  open var textEncodingName: String? { contentType.charset }

  /// A name for the content in a file system: the name in `Content-Disposition` (RFC 6266), or else the last component
  /// of the URL's path, or else `Unknown`. A name without an extension gets the extension of the content's type, except
  /// `Unknown`. The name never leads to another directory, never begins with a dot, and is never empty.
  open var suggestedFilename: String? {
    if let name = content.withLock({ $0?.suggestedFilename }) { return name }
    let name = makeFilename()
    change { $0.suggestedFilename = name }
    return name
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the response itself, because a response never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ value: Any?) -> Bool {
    guard let other = value as? URLResponse, type(of: other) == type(of: self) else { return false }
    return self === other
      || url == other.url && expectedContentLength == other.expectedContentLength && mimeType == other.mimeType
        && textEncodingName == other.textEncodingName
  }

  open override var hash: Int {
    var hasher = Hasher()
    combine(into: &hasher)
    return hasher.finalize()
  }

  func combine(into hasher: inout Hasher) {
    hasher.combine(url)
    hasher.combine(mimeType)
    hasher.combine(expectedContentLength)
    hasher.combine(textEncodingName)
  }

  // MARK: - Archives

  public static var supportsSecureCoding: Bool { true }

  open func encode(with aCoder: NSCoder) {
    aCoder.encode(url as NSURL?, forKey: "url")
    aCoder.encode(mimeType as NSString?, forKey: "mimeType")
    aCoder.encode(expectedContentLength, forKey: "expectedContentLength")
    aCoder.encode(textEncodingName as NSString?, forKey: "textEncodingName")
    aCoder.encode(suggestedFilename as NSString?, forKey: "suggestedFilename")
  }

  /// Reads a response from an archive. The archive is trusted no more than a server: the rules for
  /// ``suggestedFilename`` apply, a negative length counts as unknown, and types with control characters are left out.
  public required init?(coder aDecoder: NSCoder) {
    storedURL = aDecoder.url(forKey: "url")
    let content = Content()
    content.type = (aDecoder.line(forKey: "mimeType"), aDecoder.line(forKey: "textEncodingName"))
    let hasLength = aDecoder.containsValue(forKey: "expectedContentLength")
    content.expectedContentLength = hasLength ? max(-1, aDecoder.decodeInt64(forKey: "expectedContentLength")) : -1
    content.suggestedFilename = aDecoder.text(forKey: "suggestedFilename").map {
      SuggestedFilename.name(disposition: nil, pathComponent: $0, host: nil, mediaType: nil)
    }
    self.content = Mutex(content)
  }
}
