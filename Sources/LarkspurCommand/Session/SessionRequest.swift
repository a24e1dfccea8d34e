import Foundation
import Larkspur

/// Makes the `URLRequest` that the options of `larkspur socket` and `larkspur events` ask for.
enum SessionRequest {
  static func make(
    _ plan: GetRequest, to target: RequestURL, _ options: GetOptions
  ) throws(CommandFailure) -> URLRequest {
    guard let url = URL(string: target.uri) else { throw CommandFailure(.malformedURL, "\(target.uri) is no URL") }
    var request = URLRequest(url: url)
    request.httpMethod = plan.method
    if options.sendsContent { request.httpBody = Data(plan.body) }
    if let host = plan.host { request.setValue(host, forHTTPHeaderField: "Host") }
    for field in plan.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    // Without this field a session asks for codings and decodes them.
    if request.value(forHTTPHeaderField: "Accept-Encoding") == nil {
      request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    return request
  }
}
