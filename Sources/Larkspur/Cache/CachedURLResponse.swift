import Foundation
import LarkspurBytes
import LarkspurHTTP

/// A response with its content, as a cache keeps it. Immutable, and for any thread.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// What a cache knows of it beyond what the program sees.
  struct Origin: Sendable {
    var key: String
    /// Nil: it did not come over HTTP.
    var stored: StoredResponse?
    /// Seconds since 1970.
    var storedTime: Double
    /// Names the body: a number that it gets when it is stored, and that a revalidation does not change.
    var generation: UInt64 = 0
  }

  private let storedResponse: URLResponse
  private let storedData: Data
  private let storedUserInfo: [AnyHashable: Any]?
  private let storedPolicy: URLCache.StoragePolicy
  /// Nil: it has not been in a cache yet.
  let origin: Origin?

  /// A response that may be stored in memory and on disk.
  public init(response: URLResponse, data: Data) {
    storedResponse = response
    storedData = data
    storedUserInfo = nil
    storedPolicy = .allowed
    origin = nil
  }

  /// - Parameters:
  ///   - response: The response without its content.
  ///   - data: Its content.
  ///   - userInfo: Anything the program wants to have beside the response. On disk it is kept if it is a property list.
  ///   - storagePolicy: Where it may be stored.
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

  /// A response of nobody's, without content: for tests.
  public override init() {
    storedResponse = URLResponse()
    storedData = Data()
    storedUserInfo = nil
    storedPolicy = .allowed
    origin = nil
  }

  /// The head of what is stored.
  open var response: URLResponse { storedResponse }

  /// The content, with its content codings undone if the session did so.
  open var data: Data { storedData }

  /// What the program has added.
  open var userInfo: [AnyHashable: Any]? { storedUserInfo }

  /// Where it may be stored.
  open var storagePolicy: URLCache.StoragePolicy { storedPolicy }

  open override func copy() -> Any { copy(with: nil) }

  /// It never changes: it is its own copy.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ value: Any?) -> Bool {
    guard let other = value as? CachedURLResponse else { return false }
    // Not by `userInfo`: what a program puts there need not be comparable.
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

  /// ``userInfo`` is written if it is a property list. Foundation on Linux does not archive this class.
  open func encode(with aCoder: NSCoder) {
    aCoder.encode(storedResponse, forKey: Key.response)
    aCoder.encode(storedData as NSData, forKey: Key.data)
    aCoder.encode(Data(StoredUserInfo.bytes(of: storedUserInfo)) as NSData, forKey: Key.userInfo)
    aCoder.encode(Int64(storedPolicy.rawValue), forKey: Key.storagePolicy)
  }

  /// - Returns: `nil` if there is no response in the archive.
  public required init?(coder aDecoder: NSCoder) {
    guard let response = aDecoder.object(URLResponse.self, with: [HTTPURLResponse.self], forKey: Key.response) else {
      return nil
    }
    storedResponse = response
    storedData = aDecoder.bytes(forKey: Key.data) ?? Data()
    storedUserInfo = StoredUserInfo.info(of: [UInt8](aDecoder.bytes(forKey: Key.userInfo) ?? Data()))
    // A response whose policy is not known is not stored.
    storedPolicy = aDecoder.number(forKey: Key.storagePolicy).flatMap { .init(rawValue: $0) } ?? .notAllowed
    origin = nil
  }

  // MARK: - In a cache

  /// How much of a budget it takes, in bytes. What every entry costs beside its text keeps a million tiny ones from
  /// counting as nothing.
  var cost: Int {
    let fields = origin?.stored?.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } ?? 0
    return data.count + fields + (origin?.key.utf8.count ?? 0) + Self.costOfAny
  }

  static let costOfAny = 256

  /// Tells it from other variants of its URI.
  var variant: CacheHash { origin?.stored?.selection.hash ?? CacheHash() }

  func with(_ origin: Origin) -> CachedURLResponse {
    CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, origin: origin)
  }

  /// The head alone: what is kept of it keeps no body in memory.
  var withoutBody: CachedURLResponse { with(Data()) }

  /// The head with another body.
  func with(_ data: Data) -> CachedURLResponse {
    guard let origin else { return CachedURLResponse(response: response, data: data) }
    return CachedURLResponse(
      response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, origin: origin)
  }
}

/// A proposal that is handed back without an opinion: it is stored, or not, as if the delegate had no `willCacheResponse`.
package final class PassedOnResponse: CachedURLResponse, @unchecked Sendable {
  package init(_ proposed: CachedURLResponse) {
    super.init(
      response: proposed.response, data: proposed.data, userInfo: proposed.userInfo,
      storagePolicy: proposed.storagePolicy)
  }

  public required init?(coder aDecoder: NSCoder) { super.init(coder: aDecoder) }
}

extension HTTPURLResponse {
  /// A response of these fields, in their order.
  static func make(
    url: URL, status: Int, version: String, fields: CacheFields, isDecoded: Bool
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
