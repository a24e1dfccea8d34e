import Foundation
import Larkspur

/// Writes a session's requests to standard error when they are over, for `-v`: connections, and each request with its
/// response.
enum SessionLog {
  static func write(_ metrics: URLSessionTaskMetrics) {
    for transaction in metrics.transactionMetrics {
      if let address = transaction.remoteAddress {
        let host = address.contains(":") ? "[\(address)]" : address
        let state = transaction.isReusedConnection ? "the connection is used again" : "connected"
        Console.note("* \(state): \(host)" + (transaction.remotePort.map { ":\($0)" } ?? ""))
      }
      write(transaction.request)
      if let response = transaction.response as? HTTPURLResponse { write(response) }
    }
  }

  static func write(_ request: URLRequest) {
    Console.note("> \(request.httpMethod ?? "GET") \(Format.visible((request.url?.absoluteString ?? "").utf8))")
    for line in lines(request.allHTTPHeaderFields ?? [:]) { Console.note("> " + line) }
  }

  static func write(_ response: HTTPURLResponse) {
    for line in head(of: response).split(separator: "\r\n", omittingEmptySubsequences: false).dropLast() {
      Console.note(line.isEmpty ? "<" : "< " + Format.visible(line.utf8))
    }
  }

  /// Formats a response's head as far as `HTTPURLResponse` knows it: with the standard reason, and sorted fields.
  static func head(of response: HTTPURLResponse) -> String {
    let status = "\(response.statusCode) \(HTTPURLResponse.localizedString(forStatusCode: response.statusCode))"
    var fields: [String: String] = [:]
    for (name, value) in response.allHeaderFields { fields["\(name)"] = "\(value)" }
    return "HTTP/1.1 \(status)\r\n" + lines(fields).map { $0 + "\r\n" }.joined() + "\r\n"
  }

  private static func lines(_ fields: [String: String]) -> [String] {
    fields.sorted { $0.key.lowercased() < $1.key.lowercased() }.map { "\($0.key): \($0.value)" }
  }
}
