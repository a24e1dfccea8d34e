import Foundation
import LarkspurHTTP

/// The origin of a URL.
public enum URLRequestAttribution: UInt, Sendable {
  /// The program.
  case developer = 0
  /// The user, by a link or by typing the URL.
  case user = 1
}

/// A request as an object, for code that needs one. New code uses ``URLRequest``.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying {
  /// How a load uses the cache.
  public enum CachePolicy: UInt, Sendable {
    /// Follows RFC 9111.
    case useProtocolCachePolicy = 0
    /// Loads from the server, without using the cache.
    case reloadIgnoringLocalCacheData = 1
    /// Uses a stored response of any age, or loads from the server if there is none.
    case returnCacheDataElseLoad = 2
    /// Uses a stored response of any age, or fails if there is none: nothing is sent to the server.
    case returnCacheDataDontLoad = 3
    /// Loads from the server as `reloadIgnoringLocalCacheData` does, and asks caches on the way to do so too.
    case reloadIgnoringLocalAndRemoteCacheData = 4
    /// Asks the server whether the stored response is still valid.
    case reloadRevalidatingCacheData = 5

    /// The older name of `reloadIgnoringLocalCacheData`.
    public static var reloadIgnoringCacheData: CachePolicy { .reloadIgnoringLocalCacheData }
  }

  /// The purpose of traffic.
  public enum NetworkServiceType: UInt, Sendable {
    /// Traffic without a special purpose.
    case `default` = 0
    /// Control of calls.
    case voip = 1
    /// Video that is watched as it arrives.
    case video = 2
    /// Traffic that no user waits for. Yields to other traffic (RFC 4594, low-priority data).
    case background = 3
    /// Speech.
    case voice = 4
    /// The signaling that sets up calls.
    case networkServiceTypeCallSignaling = 11

    /// Darwin's name for `networkServiceTypeCallSignaling`.
    public static var callSignaling: NetworkServiceType { .networkServiceTypeCallSignaling }
    // Darwin has these as cases. Here they are not, because a `switch` over the cases of FoundationNetworking would no
    // longer be exhaustive.
    /// Equal to `default`, because a user waits for such data.
    public static var responsiveData: NetworkServiceType { .default }
    /// Equal to `video`.
    public static var avStreaming: NetworkServiceType { .video }
    /// Equal to `video`.
    public static var responsiveAV: NetworkServiceType { .video }
  }

  /// The request. Only a mutable subclass changes it.
  var value: URLRequest

  // Designated initialisers are public: otherwise a subclass in another module would not inherit the convenience
  // initialisers.
  convenience init(_ value: URLRequest) {
    self.init()
    self.value = value
  }

  /// Creates a GET request without a URL: `NSMutableURLRequest()`. A mutable request can get one later.
  ///
  /// There is no `init()`, for the reason that ``URLResponse/init(_:)`` gives.
  ///
  /// - Parameter nothing: Without a meaning.
  public convenience init(_ nothing: Void = ()) {
    self.init(
      url: Self.nowhere, cachePolicy: .useProtocolCachePolicy, timeoutInterval: RequestStorage.timeoutIntervalDefault)
    value = URLRequest(RequestStorage(url: nil))
  }

  /// A placeholder URL. One more designated initialiser would keep subclasses that override the others from inheriting
  /// `init(url:)`.
  private static let nowhere = URL(fileURLWithPath: "/")

  /// Creates a GET request.
  public convenience init(url: URL) {
    self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: RequestStorage.timeoutIntervalDefault)
  }

  /// See ``URLRequest/init(url:cachePolicy:timeoutInterval:)``.
  public init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
    value = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
  }

  /// See ``URLRequest/url``.
  open var url: URL? { value.url }
  /// See ``URLRequest/mainDocumentURL``.
  open var mainDocumentURL: URL? { value.mainDocumentURL }
  /// See ``URLRequest/cachePolicy``.
  open var cachePolicy: CachePolicy { value.cachePolicy }
  /// See ``URLRequest/timeoutInterval``.
  open var timeoutInterval: TimeInterval { value.timeoutInterval }
  /// See ``URLRequest/networkServiceType``.
  open var networkServiceType: NetworkServiceType { value.networkServiceType }
  /// See ``URLRequest/allowsCellularAccess``.
  open var allowsCellularAccess: Bool { value.allowsCellularAccess }
  /// See ``URLRequest/allowsExpensiveNetworkAccess``.
  open var allowsExpensiveNetworkAccess: Bool { value.allowsExpensiveNetworkAccess }
  /// See ``URLRequest/allowsConstrainedNetworkAccess``.
  open var allowsConstrainedNetworkAccess: Bool { value.allowsConstrainedNetworkAccess }
  /// See ``URLRequest/allowsUltraConstrainedNetworkAccess``.
  open var allowsUltraConstrainedNetworkAccess: Bool { value.allowsUltraConstrainedNetworkAccess }
  /// See ``URLRequest/assumesHTTP3Capable``.
  open var assumesHTTP3Capable: Bool { value.assumesHTTP3Capable }
  /// See ``URLRequest/attribution``.
  open var attribution: Attribution { value.attribution }
  /// See ``URLRequest/requiresDNSSECValidation``.
  open var requiresDNSSECValidation: Bool { value.requiresDNSSECValidation }
  /// See ``URLRequest/allowsPersistentDNS``.
  open var allowsPersistentDNS: Bool { value.allowsPersistentDNS }
  /// See ``URLRequest/cookiePartitionIdentifier``.
  open var cookiePartitionIdentifier: String? { value.cookiePartitionIdentifier }
  /// See ``URLRequest/httpMethod``.
  open internal(set) var httpMethod: String? {
    get { value.httpMethod }
    set { value.httpMethod = newValue }
  }
  /// See ``URLRequest/allHTTPHeaderFields``.
  open var allHTTPHeaderFields: [String: String]? { value.allHTTPHeaderFields }
  /// See ``URLRequest/httpBody``.
  open var httpBody: Data? { value.httpBody }
  /// See ``URLRequest/httpBodyStream``.
  open var httpBodyStream: InputStream? { value.httpBodyStream }
  /// See ``URLRequest/httpShouldHandleCookies``.
  open var httpShouldHandleCookies: Bool { value.httpShouldHandleCookies }
  /// See ``URLRequest/httpShouldUsePipelining``.
  open var httpShouldUsePipelining: Bool { value.httpShouldUsePipelining }
  /// See ``URLRequest/value(forHTTPHeaderField:)``.
  open func value(forHTTPHeaderField field: String) -> String? { value.value(forHTTPHeaderField: field) }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the request itself if it is an `NSURLRequest` and no subclass of it, and an `NSURLRequest` with the same
  /// content otherwise.
  open func copy(with zone: NSZone? = nil) -> Any {
    type(of: self) == NSURLRequest.self ? self : NSURLRequest(value)
  }

  open override func mutableCopy() -> Any { mutableCopy(with: nil) }

  open func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableURLRequest(value) }

  open override func isEqual(_ object: Any?) -> Bool {
    switch object {
    case let other as NSURLRequest: value == other.value
    case let other as URLRequest: value == other
    default: false
    }
  }

  open override var hash: Int { value.hashValue }

  open override var description: String { "\(super.description) { URL: \(url?.absoluteString ?? "(null)") }" }

  // MARK: - Archives

  open class var supportsSecureCoding: Bool { true }

  /// Archives the request. A body stream cannot be archived and is left out.
  open func encode(with aCoder: NSCoder) {
    aCoder.encode(url as NSURL?, forKey: Key.url)
    aCoder.encode(mainDocumentURL as NSURL?, forKey: Key.mainDocumentURL)
    aCoder.encode(Int64(cachePolicy.rawValue), forKey: Key.cachePolicy)
    if let timeout = value.own.timeoutInterval { aCoder.encode(timeout, forKey: Key.timeoutInterval) }
    aCoder.encode(Int64(networkServiceType.rawValue), forKey: Key.networkServiceType)
    aCoder.encode(Int32(value.own.flags.rawValue), forKey: Key.flags)
    aCoder.encode(value.own.method as NSString, forKey: Key.method)
    if let fields = value.own.fields {
      aCoder.encode(fields.map { $0.name } as NSArray, forKey: Key.fieldNames)
      aCoder.encode(fields.map { $0.value } as NSArray, forKey: Key.fieldValues)
    }
    aCoder.encode(httpBody as NSData?, forKey: Key.body)
    aCoder.encode(cookiePartitionIdentifier as NSString?, forKey: Key.cookiePartition)
  }

  /// Reads a request from an archive. Fields that cannot be sent (RFC 9110 5.1, 5.5) are left out. Numbers that are no
  /// valid value count as not set.
  ///
  /// - Returns: `nil` if the method in the archive is no token (RFC 9110 9.1).
  public required init?(coder aDecoder: NSCoder) {
    let method = RequestStorage.method(aDecoder.text(forKey: Key.method))
    guard method.isToken else { return nil }
    let storage = RequestStorage(url: aDecoder.url(forKey: Key.url))
    storage.mainDocumentURL = aDecoder.url(forKey: Key.mainDocumentURL)
    storage.cachePolicy =
      aDecoder.number(forKey: Key.cachePolicy).flatMap { CachePolicy(rawValue: $0) } ?? .useProtocolCachePolicy
    storage.timeoutInterval = aDecoder.decimal(forKey: Key.timeoutInterval)
    storage.networkServiceType =
      aDecoder.number(forKey: Key.networkServiceType).flatMap { NetworkServiceType(rawValue: $0) } ?? .default
    if aDecoder.containsValue(forKey: Key.flags) {
      let flags = UInt16(truncatingIfNeeded: aDecoder.decodeInt32(forKey: Key.flags))
      storage.flags = RequestStorage.Flags(rawValue: flags).intersection(.all)
    }
    storage.method = method
    let (names, values) = (aDecoder.texts(forKey: Key.fieldNames), aDecoder.texts(forKey: Key.fieldValues))
    if let names, let values { storage.fields = FieldList(untrusted: names, values) }
    if let body = aDecoder.bytes(forKey: Key.body) { storage.body = .data(body) }
    storage.cookiePartition = aDecoder.text(forKey: Key.cookiePartition)
    value = URLRequest(storage)
  }

  private enum Key {
    static let url = "url"
    static let mainDocumentURL = "mainDocumentURL"
    static let cachePolicy = "cachePolicy"
    static let timeoutInterval = "timeoutInterval"
    static let networkServiceType = "networkServiceType"
    static let flags = "flags"
    static let method = "method"
    static let fieldNames = "fieldNames"
    static let fieldValues = "fieldValues"
    static let body = "body"
    static let cookiePartition = "cookiePartition"
  }
}

/// Not `Sendable`: the object may be an `NSMutableURLRequest`, which is for one thread at a time.
@available(*, unavailable)
extension NSURLRequest: @unchecked Sendable {}
