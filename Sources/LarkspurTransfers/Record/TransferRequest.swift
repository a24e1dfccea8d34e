import LarkspurHTTP

/// The request of a task, as a record holds it.
///
/// The fields are those that the program has set, `Authorization` and `Cookie` among them: without them the task could
/// not be carried out again. Cookies, credentials and fields that the session adds are not kept.
public struct TransferRequest: Codable, Hashable, Sendable {
  public var url: String
  public var method: String
  public var fields: FieldList = []
  /// The body of a download task's request.
  public var body: [UInt8]?
  public var mainDocument: String?
  public var cookiePartition: String?
  /// The timeout in seconds, or `nil` if the program has not set it.
  public var timeoutSeconds: Double?
  /// The raw value of the cache policy.
  public var cachePolicy: UInt32 = 0
  /// The raw value of the network service type.
  public var networkServiceType: UInt32 = 0
  /// The raw value of the request's other settings. A reader ignores bits that it does not know.
  public var flags: UInt32 = 0

  public init(url: String, method: String = "GET") {
    self.url = url
    self.method = method
  }
}

/// The head of a task's response.
public struct TransferResponse: Codable, Hashable, Sendable {
  public var url: String
  /// The status code, from 0 to 999.
  public var status: UInt32
  /// The version of HTTP, for example `HTTP/1.1`.
  public var version: String
  public var fields: FieldList
  /// Whether the content coding of the content has been undone.
  public var isDecoded: Bool

  public init(url: String, status: UInt32, version: String, fields: FieldList, isDecoded: Bool) {
    self.url = url
    self.status = status
    self.version = version
    self.fields = fields
    self.isDecoded = isDecoded
  }
}
