import Foundation
import LarkspurHTTP

/// The settings of a request beside its URL, method and fields, for resume data.
struct RequestSettings: Codable, Hashable {
  var mainDocument: String?
  var timeout: Double?
  var cachePolicy: UInt
  var networkServiceType: UInt
  var flags: UInt16

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

  func apply(to storage: RequestStorage) {
    storage.mainDocumentURL = mainDocument.flatMap { URL(string: $0) }
    storage.timeoutInterval = timeout?.isNaN == true ? nil : timeout
    storage.cachePolicy = NSURLRequest.CachePolicy(rawValue: cachePolicy) ?? .useProtocolCachePolicy
    storage.networkServiceType = NSURLRequest.NetworkServiceType(rawValue: networkServiceType) ?? .default
    storage.flags = RequestStorage.Flags(rawValue: flags).intersection(.all)
  }
}

extension UploadResumeData {
  /// The program's request, or `nil` if its URL cannot be read.
  var request: URLRequest? {
    guard let url = URL(string: url) else { return nil }
    let storage = RequestStorage(url: url)
    storage.method = method
    if !fields.isEmpty { storage.fields = RequestFields(untrusted: fields.map(\.name), fields.map(\.value)) }
    RequestSettings(attributes)?.apply(to: storage)
    return URLRequest(storage)
  }
}
