import Foundation

/// The settings of a request beside its URL, method, fields and body, for resume data and for records of background
/// transfers.
struct RequestSettings: Codable, Hashable {
  var mainDocument: String?
  var timeout: Double?
  var cachePolicy: UInt
  var networkServiceType: UInt
  var flags: UInt16

  init(
    mainDocument: String?, timeout: Double?, cachePolicy: UInt, networkServiceType: UInt, flags: UInt16
  ) {
    self.mainDocument = mainDocument
    self.timeout = timeout
    self.cachePolicy = cachePolicy
    self.networkServiceType = networkServiceType
    self.flags = flags
  }

  init(_ request: URLRequest) {
    let own = request.own
    mainDocument = own.mainDocumentURL?.absoluteString
    timeout = own.timeoutInterval
    cachePolicy = own.cachePolicy.rawValue
    networkServiceType = own.networkServiceType.rawValue
    flags = own.flags.rawValue
  }

  /// The settings as a property list, or nothing if they cannot be encoded.
  var encoded: [UInt8] {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return (try? encoder.encode(self)).map { [UInt8]($0) } ?? []
  }

  /// Decodes settings. Settings that cannot be read count as none: the request has the defaults then.
  init?(_ bytes: [UInt8]) {
    guard let settings = try? PropertyListDecoder().decode(RequestSettings.self, from: Data(bytes)) else { return nil }
    self = settings
  }

  /// Applies the settings. They are untrusted: what is no value counts as not set.
  func apply(to storage: RequestStorage) {
    storage.mainDocumentURL = mainDocument.flatMap { URL(string: $0) }
    storage.timeoutInterval = timeout?.isNaN == true ? nil : timeout
    storage.cachePolicy = NSURLRequest.CachePolicy(rawValue: cachePolicy) ?? .useProtocolCachePolicy
    storage.networkServiceType = NSURLRequest.NetworkServiceType(rawValue: networkServiceType) ?? .default
    storage.flags = RequestStorage.Flags(rawValue: flags).intersection(.all)
  }
}
