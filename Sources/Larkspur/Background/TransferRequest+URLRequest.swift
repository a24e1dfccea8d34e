import Foundation
import LarkspurHTTP
import LarkspurTransfers

extension TransferRequest {
  /// Creates the form of a request that a record can hold.
  ///
  /// - Parameter isUpload: Whether the body comes from a file. The body of the request itself is left out then.
  /// - Throws: `unsupportedURL` for requests that cannot be carried out without the program.
  init(_ request: URLRequest, isUpload: Bool) throws(URLError) {
    guard let url = request.url, Redirection.isOfHTTP(url) else {
      throw URLError.make(
        .unsupportedURL, "background sessions load http and https only", url: request.url)
    }
    let own = request.own
    guard own.trailers == nil else {
      throw URLError.make(.badURL, "setTrailers: background sessions send no trailers", url: url)
    }
    self.init(url: url.absoluteString, method: own.method)
    fields = own.fields ?? []
    if !isUpload {
      switch own.body {
      case .none: break
      case .data(let data): body = [UInt8](data)
      case .stream:
        throw URLError.make(.unsupportedURL, "background sessions cannot send a stream", url: url)
      }
    }
    cookiePartition = own.cookiePartition
    let settings = RequestSettings(request)
    mainDocument = settings.mainDocument
    timeoutSeconds = settings.timeout
    cachePolicy = UInt32(clamping: settings.cachePolicy)
    networkServiceType = UInt32(clamping: settings.networkServiceType)
    flags = UInt32(settings.flags)
  }
}

extension URLRequest {
  /// Creates the request of a record, or returns `nil` if its URL is not valid.
  init?(_ transfer: TransferRequest) {
    guard let url = URL(string: transfer.url) else { return nil }
    let storage = RequestStorage(url: url)
    storage.method = transfer.method
    if !transfer.fields.isEmpty {
      storage.fields = transfer.fields.sendable
    }
    if let body = transfer.body { storage.body = .data(Data(body)) }
    storage.cookiePartition = transfer.cookiePartition
    RequestSettings(
      mainDocument: transfer.mainDocument, timeout: transfer.timeoutSeconds, cachePolicy: UInt(transfer.cachePolicy),
      networkServiceType: UInt(transfer.networkServiceType), flags: UInt16(truncatingIfNeeded: transfer.flags)
    ).apply(to: storage)
    self.init(storage)
  }
}

extension TransferResponse {
  init?(_ response: URLResponse?) {
    guard let response = response as? HTTPURLResponse, let url = response.url else { return nil }
    self.init(
      url: url.absoluteString, status: UInt32(clamping: response.statusCode), version: response.httpVersion,
      fields: response.fields.dictionary.map { Field($0.key, $0.value) }
        .sorted { $0.name < $1.name },
      isDecoded: response.isDecoded)
  }

  /// The response as programs see it, or `nil` if its URL is not valid.
  var response: HTTPURLResponse? {
    guard let url = URL(string: url) else { return nil }
    let fields = Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
    return HTTPURLResponse(
      url: url, statusCode: Int(status), httpVersion: version, fields: .given(fields), isDecoded: isDecoded)
  }
}

extension TransferRecord.Failure {
  init(_ error: any Error) {
    let error = error as NSError
    let message = TransferRecord.cut(error.localizedDescription, toBytes: TransferRecord.messageBytesMax)
    self.init(domain: error.domain, code: Int64(error.code), message: message)
  }
}

extension TransferRecord {
  /// The error as programs see it.
  var error: (any Error)? {
    guard let failure else { return nil }
    let url = URL(string: (currentRequest ?? originalRequest).url)
    let underlying = underlyingFailure.map(\.error)
    guard failure.domain == NSURLErrorDomain,
      let code = Int(exactly: failure.code).flatMap({ URLError.Code(rawValue: $0) })
    else { return failure.error }
    return URLError.make(code, failure.message, url: url, underlying: underlying)
  }
}

extension TransferRecord.Failure {
  fileprivate var error: NSError {
    NSError(
      domain: domain, code: Int(exactly: code) ?? -1, userInfo: NSError.entries(forMessage: message))
  }
}
