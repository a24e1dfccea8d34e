import Foundation
import LarkspurHTTP
import Synchronization

/// What is known of a resource before its bytes: the answer to a request, whatever its scheme. Immutable, and for any
/// thread.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// Made when somebody asks: most programs look at one of these at most.
  private final class Content {
    var type: (mimeType: String?, charset: String?)?
    var expectedContentLength: Int64?
    var suggestedFilename: String?
  }

  private let storedURL: URL?
  private let content: Mutex<Content?>

  /// - Parameters:
  ///   - url: Where the bytes come from.
  ///   - mimeType: The type of the content.
  ///   - length: In bytes; -1 if it is not known.
  ///   - name: The charset's name, as IANA registers it.
  public init(url: URL, mimeType: String?, expectedContentLength length: Int, textEncodingName name: String?) {
    storedURL = url
    let content = Content()
    content.type = (mimeType, name)
    content.expectedContentLength = Int64(length)
    self.content = Mutex(content)
  }

  /// A response of nobody's, without a URL: for tests.
  public override init() {
    storedURL = nil
    content = Mutex(nil)
  }

  /// For a subclass that makes the content when it is wanted.
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

  /// Where the bytes come from: after redirections, not what was asked for first.
  open var url: URL? { storedURL }

  /// The type of the content, in lower case and without parameters.
  open var mimeType: String? { contentType.mimeType }

  /// How long the content will be, in bytes; -1 if it is not known.
  open var expectedContentLength: Int64 {
    if let length = content.withLock({ $0?.expectedContentLength }) { return length }
    let length = makeLength()
    change { $0.expectedContentLength = length }
    return length
  }

  /// The charset, as the sender names it, in lower case.
  open var textEncodingName: String? { contentType.charset }

  /// A name for the content in a file system: what `Content-Disposition` says (RFC 6266), or else the last part of the URL's
  /// path, or else `Unknown`. A name without an extension gets the one of the content's type. It never names another
  /// directory, does not begin with a dot, and never is empty.
  open var suggestedFilename: String? {
    if let name = content.withLock({ $0?.suggestedFilename }) { return name }
    let name = makeFilename()
    change { $0.suggestedFilename = name }
    return name
  }

  open override func copy() -> Any { copy(with: nil) }

  /// A response never changes: it is its own copy.
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

  /// Reads a response from an archive. What stands there is no more trusted than what a server sends: the same rules hold for
  /// ``suggestedFilename``, a length below zero counts as unknown, and types with control characters are left out.
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
