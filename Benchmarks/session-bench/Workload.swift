import BenchmarkUsage
import Foundation
import Larkspur

extension Workload {
  func url(host: String, port: String) throws -> URL {
    let scheme = kind == .echo ? "ws" : isSecure ? "https" : "http"
    guard let url = URL(string: "\(scheme)://\(host):\(port)\(path)") else {
      throw Failure(description: "bad host")
    }
    return url
  }

  func request(to url: URL) -> URLRequest {
    var request = URLRequest(url: url)
    if kind == .uploadData {
      request.httpMethod = "POST"
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    if kind == .uploadFile { request.httpMethod = "PUT" }
    return request
  }

  func configuration(caFile: String?) throws -> URLSessionConfiguration {
    let configuration = isDefault ? URLSessionConfiguration.default : .ephemeral
    if !isDefault {
      configuration.httpMaximumConnectionsPerHost = tasks
      // Without a cache every request goes to the server.
      configuration.urlCache = nil
    }
    if let caFile {
      let data = try Data(contentsOf: URL(fileURLWithPath: caFile))
      configuration.tlsTrustSettings.roots = .only(TLSCertificate.read(data) ?? [])
    }
    return configuration
  }
}
