import Foundation
import Larkspur
import LarkspurConsole

/// Writes requests and responses, as far as a session exposes them, to standard error, for `-v` of `larkspur socket`
/// and `larkspur events`.
enum SessionLog {
  static func write(_ request: URLRequest) {
    Console.note("> \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")")
    for line in lines(request.allHTTPHeaderFields ?? [:]) { Console.note("> " + line) }
  }

  static func write(_ response: HTTPURLResponse) {
    for line in head(of: response).split(separator: "\r\n", omittingEmptySubsequences: false).dropLast() {
      Console.note(line.isEmpty ? "<" : "< " + line)
    }
  }

  /// Formats a response's head as far as `HTTPURLResponse` has it: with the standard reason, and sorted fields.
  private static func head(of response: HTTPURLResponse) -> String {
    let status = "\(response.statusCode) \(HTTPURLResponse.localizedString(forStatusCode: response.statusCode))"
    var fields: [String: String] = [:]
    for (name, value) in response.allHeaderFields { fields["\(name)"] = "\(value)" }
    return "HTTP/1.1 \(status)\r\n" + lines(fields).map { $0 + "\r\n" }.joined() + "\r\n"
  }

  private static func lines(_ fields: [String: String]) -> [String] {
    fields.sorted { $0.key.lowercased() < $1.key.lowercased() }.map { "\($0.key): \($0.value)" }
  }
}
