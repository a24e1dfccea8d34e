import Foundation
import LarkspurEngine
import LarkspurHTTP

/// The content of a `URLRequest`. Copies of a request share it until one of them changes.
final class RequestStorage {
  enum Body {
    case none
    case data(Data)
    case stream(InputStream)
  }

  struct Flags: OptionSet {
    var rawValue: UInt16

    static let cellular = Flags(rawValue: 1)
    static let expensive = Flags(rawValue: 2)
    static let constrained = Flags(rawValue: 4)
    static let cookies = Flags(rawValue: 8)
    static let pipelining = Flags(rawValue: 16)
    static let http3 = Flags(rawValue: 32)
    static let dnssec = Flags(rawValue: 64)
    static let persistentDNS = Flags(rawValue: 128)
    static let byTheUser = Flags(rawValue: 256)
    static let gzip = Flags(rawValue: 512)
    static let ultraConstrained = Flags(rawValue: 1024)

    static let standard: Flags = [.cellular, .expensive, .constrained, .cookies]
    static let all: Flags = [
      .cellular, .expensive, .constrained, .cookies, .pipelining, .http3, .dnssec, .persistentDNS, .byTheUser,
      .gzip, .ultraConstrained,
    ]

    mutating func set(_ flag: Flags, _ isOn: Bool) {
      if isOn { insert(flag) } else { remove(flag) }
    }
  }

  static let timeoutIntervalDefault: TimeInterval = 60

  var url: URL?
  var cachePolicy = NSURLRequest.CachePolicy.useProtocolCachePolicy
  /// `nil` if the program has not set it.
  var timeoutInterval: TimeInterval?
  var mainDocumentURL: URL?
  var cookiePartition: String?
  var networkServiceType = NSURLRequest.NetworkServiceType.default
  var flags = Flags.standard
  var method = "GET"
  var fields: FieldList?
  var body = Body.none {
    didSet { dataStream = nil }
  }
  /// The body's data as a stream, for a `URLProtocol`.
  var dataStream: InputStream?
  /// `nil` if the session adds its fields.
  var exactForm: ExactForm?
  /// `nil` if the body has no trailers.
  var trailers: RequestTrailers?
  /// Properties that a `URLProtocol` has set on the request.
  var properties = [String: Any]()

  init(url: URL?) { self.url = url }

  init(copying other: RequestStorage) {
    url = other.url
    cachePolicy = other.cachePolicy
    timeoutInterval = other.timeoutInterval
    mainDocumentURL = other.mainDocumentURL
    cookiePartition = other.cookiePartition
    networkServiceType = other.networkServiceType
    flags = other.flags
    method = other.method
    fields = other.fields
    body = other.body
    dataStream = other.dataStream
    exactForm = other.exactForm
    trailers = other.trailers
    properties = other.properties
  }

  /// Returns the method in its standard spelling. Methods are case-sensitive (RFC 9110 9.1), but `get` can only mean
  /// GET.
  ///
  /// - Parameter name: The method as the program writes it. `nil` means GET.
  static func method(_ name: String?) -> String {
    guard let name else { return "GET" }
    switch name {
    case "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH": return name
    default:
      let upper = name.uppercased()
      return ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"].contains(upper) ? upper : name
    }
  }
}

extension RequestStorage {
  static func == (one: RequestStorage, other: RequestStorage) -> Bool {
    one === other
      || one.url == other.url && one.mainDocumentURL == other.mainDocumentURL && one.method == other.method
        && one.cookiePartition == other.cookiePartition
        && one.cachePolicy == other.cachePolicy
        && one.flags.subtracting(.pipelining) == other.flags.subtracting(.pipelining)
        && one.caselessFields == other.caselessFields && isEqual(one.body, other.body)
  }

  /// The fields by names in lower case. A request without fields equals one whose fields have all been removed.
  var caselessFields: [String: String] { fields?.caseless ?? [:] }

  private static func isEqual(_ one: Body, _ other: Body) -> Bool {
    switch (one, other) {
    case (.none, .none): true
    case (.data(let one), .data(let other)): one == other
    case (.stream(let one), .stream(let other)): one === other
    default: false
    }
  }
}
