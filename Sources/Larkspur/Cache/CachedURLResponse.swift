import Foundation
import LarkspurBytes
import LarkspurHTTP

/// A response with its body, as a cache keeps it. Immutable, and safe to use from any thread.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// The cache's own data about the response, which the program does not see.
  struct Origin: Sendable {
    var key: String
    /// The HTTP response's data, or `nil` if the response did not come over HTTP.
    var stored: StoredResponse?
    /// Seconds since 1970.
    var storedTime: Double
    /// The number of the body. A stored body gets a new one; a revalidation keeps it.
    var generation: UInt64 = 0
  }

  private let storedResponse: URLResponse
  private let storedData: Data
  private let storedUserInfo: [AnyHashable: Any]?
  private let storedPolicy: URLCache.StoragePolicy
  /// The cache's data, or `nil` if the response has not been in a cache yet.
  let origin: Origin?

  /// Creates a response that may be stored in memory and on disk.
  public init(response: URLResponse, data: Data) {
    storedResponse = response
    storedData = data
    storedUserInfo = nil
    storedPolicy = .allowed
    origin = nil
  }

  /// Creates a response.
  ///
  /// - Parameters:
  ///   - response: The response without its body.
  ///   - data: The body.
  ///   - userInfo: The program's own data about the response. The disk keeps it if it is a property list.
  ///   - storagePolicy: Where the response may be stored.
  public init(
    response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
  ) {
    storedResponse = response
    storedData = data
    storedUserInfo = userInfo
    storedPolicy = storagePolicy
    origin = nil
  }

  init(
    response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
    origin: Origin
  ) {
    storedResponse = response
    storedData = data
    storedUserInfo = userInfo
    storedPolicy = storagePolicy
    self.origin = origin
  }

  /// Creates an empty response without a URL or body, for tests.
  public override init() {
    storedResponse = URLResponse()
    storedData = Data()
    storedUserInfo = nil
    storedPolicy = .allowed
    origin = nil
  }

  /// The head of the stored response.
  open var response: URLResponse { storedResponse }

  /// The body, with its content codings undone if the session did so.
  open var data: Data { storedData }

  /// The program's own data about the response.
  open var userInfo: [AnyHashable: Any]? { storedUserInfo }

  /// Where the response may be stored.
  open var storagePolicy: URLCache.StoragePolicy { storedPolicy }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the response itself, which is immutable.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ value: Any?) -> Bool {
    guard let other = value as? CachedURLResponse else { return false }
    // `userInfo` is not compared: its values need not be comparable.
    return self === other
      || response.isEqual(other.response) && data == other.data && storagePolicy == other.storagePolicy
  }

  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(response)
    hasher.combine(data)
    hasher.combine(storagePolicy)
    return hasher.finalize()
  }

  // MARK: - Archives

  private enum Key {
    static let response = "response"
    static let data = "data"
    static let userInfo = "userInfo"
    static let storagePolicy = "storagePolicy"
  }

  public static var supportsSecureCoding: Bool { true }

  /// Writes the response, and ``userInfo`` if it is a property list. Foundation on Linux does not archive this class.
  open func encode(with aCoder: NSCoder) {
    aCoder.encode(storedResponse, forKey: Key.response)
    aCoder.encode(storedData as NSData, forKey: Key.data)
    aCoder.encode(Data(StoredUserInfo.bytes(of: storedUserInfo)) as NSData, forKey: Key.userInfo)
    aCoder.encode(Int64(storedPolicy.rawValue), forKey: Key.storagePolicy)
  }

  /// Reads a response.
  ///
  /// - Returns: `nil` if the archive holds no response.
  public required init?(coder aDecoder: NSCoder) {
    guard let response = aDecoder.object(URLResponse.self, with: [HTTPURLResponse.self], forKey: Key.response) else {
      return nil
    }
    storedResponse = response
    storedData = aDecoder.bytes(forKey: Key.data) ?? Data()
    storedUserInfo = StoredUserInfo.info(of: [UInt8](aDecoder.bytes(forKey: Key.userInfo) ?? Data()))
    // A response with an unknown policy must not be stored.
    storedPolicy = aDecoder.number(forKey: Key.storagePolicy).flatMap { .init(rawValue: $0) } ?? .notAllowed
    origin = nil
  }

  // MARK: - In a cache

  /// The bytes of a cache's budget that the response uses. The fixed part, `costOfAny`, makes a million tiny entries
  /// count.
  var cost: Int {
    let fields = origin?.stored?.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } ?? 0
    return data.count + fields + (origin?.key.utf8.count ?? 0) + Self.costOfAny
  }

  static let costOfAny = 256

  /// The hash of the request fields that selected this response among the variants of its URI.
  var variant: CacheHash { origin?.stored?.selection.hash ?? CacheHash() }

  func with(_ origin: Origin) -> CachedURLResponse {
    CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, origin: origin)
  }

  /// The response without its body, for a copy that keeps no body in memory.
  var withoutBody: CachedURLResponse { with(Data()) }

  /// Returns the response with another body.
  func with(_ data: Data) -> CachedURLResponse {
    guard let origin else { return CachedURLResponse(response: response, data: data) }
    return CachedURLResponse(
      response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, origin: origin)
  }
}

/// A proposal that a delegate returns without a decision: it is stored or not as if the delegate did not implement
/// `willCacheResponse`.
package final class PassedOnResponse: CachedURLResponse, @unchecked Sendable {
  package init(_ proposed: CachedURLResponse) {
    super.init(
      response: proposed.response, data: proposed.data, userInfo: proposed.userInfo,
      storagePolicy: proposed.storagePolicy)
  }

  public required init?(coder aDecoder: NSCoder) { super.init(coder: aDecoder) }
}

extension HTTPURLResponse {
  /// Returns a response with these fields, in their order.
  static func make(
    url: URL, status: Int, version: String, fields: FieldList, isDecoded: Bool
  ) -> HTTPURLResponse {
    var bytes: [UInt8] = []
    var table = FieldTable()
    for field in fields {
      let start = bytes.count
      bytes += field.name.utf8
      let end = bytes.count
      bytes += field.value.utf8
      table.append(FieldPosition(name: start..<end, value: end..<bytes.count))
    }
    return HTTPURLResponse(
      url: url, statusCode: status, httpVersion: version, fields: .wire(bytes: bytes, table: table),
      isDecoded: isDecoded)
  }
}
