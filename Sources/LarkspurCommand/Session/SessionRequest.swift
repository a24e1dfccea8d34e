import Foundation
import Larkspur

/// Makes the `URLRequest` that the options ask for.
enum SessionRequest {
  /// - Parameter offset: The number of bytes that the file already has.
  static func make(
    _ plan: GetRequest, _ options: GetOptions, to target: RequestURL, form: FormBody?, from offset: Int?
  ) throws(CommandFailure) -> URLRequest {
    guard let url = URL(string: target.uri) else { throw CommandFailure(.malformedURL, "\(target.uri) is no URL") }
    var request = URLRequest(url: url)
    request.httpMethod = plan.method
    if let host = options.fields.last(where: { $0.name.lowercased() == "host" }) {
      request.setValue(host.value, forHTTPHeaderField: "Host")
    }
    for field in plan.fields {
      if field.name.lowercased() == "cookie", let cookies = request.value(forHTTPHeaderField: field.name) {
        // RFC 6265bis, section 5.8.3: cookies are joined by semicolons, not by commas.
        request.setValue("\(cookies); \(field.value)", forHTTPHeaderField: field.name)
      } else {
        request.addValue(field.value, forHTTPHeaderField: field.name)
      }
    }
    // Without this field a session asks for codings and decodes them.
    if !options.session.decodes, request.value(forHTTPHeaderField: "Accept-Encoding") == nil {
      request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    }
    if let offset, offset > 0 { request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range") }
    if !options.data.isEmpty { request.httpBody = Foundation.Data(plan.body) }
    if let form {
      request.httpBodyStream = form.stream()
      request.setValue("\(form.byteCount)", forHTTPHeaderField: "Content-Length")
      // `-H 'Content-Type:'` removes the field.
      if plan.value(of: "Content-Type") != nil
        || !options.fields.contains(where: { $0.name.lowercased() == "content-type" })
      {
        request.setValue(form.contentType, forHTTPHeaderField: "Content-Type")
      }
    }
    if request.httpMethod == "GET", form != nil || !plan.body.isEmpty {
      throw CommandFailure(.usage, "a session sends no body with GET")
    }
    return request
  }
}
