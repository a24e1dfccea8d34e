import Foundation
import LarkspurHTTP

extension UploadResumeData {
  /// The program's request, or `nil` if its URL cannot be read.
  var request: URLRequest? {
    guard let url = URL(string: url) else { return nil }
    let storage = RequestStorage(url: url)
    storage.method = method
    if !fields.isEmpty { storage.fields = fields.sendable }
    RequestSettings(attributes)?.apply(to: storage)
    return URLRequest(storage)
  }
}
