import Foundation
import Larkspur
import LarkspurHTTP

extension GetRequest {
  /// Returns the request for a session.
  ///
  /// - Parameters:
  ///   - isExact: Whether the session adds no fields of its own. No public API has this.
  ///   - offset: The number of bytes that the file already has, or `nil` if no file is completed.
  func request(
    to target: RequestURL, _ options: GetOptions, isExact: Bool = false, form: FormBody? = nil,
    from offset: Int? = nil
  ) throws(CommandFailure) -> URLRequest {
    guard let url = URL(string: target.uri) else { throw CommandFailure(.malformedURL, "\(target.uri) is no URL") }
    var fields = fields
    if let host { fields.append(.init("Host", host)) }
    let decodes = options.session.decodes && value(of: "Accept-Encoding") == nil && value(of: "Range") == nil
    if decodes { fields.append(.init("Accept-Encoding", "gzip, deflate")) }
    if let offset, offset > 0 { Self.set("Range", to: "bytes=\(offset)-", in: &fields) }
    if let type = form?.contentType {
      // `-H 'Content-Type:'` removes the field.
      let isRemoved = options.fields.contains { $0.name.lowercased() == "content-type" && $0.value.isEmpty }
      if !isRemoved || value(of: "Content-Type") != nil {
        Self.set("Content-Type", to: type, in: &fields)
      }
    }
    if let form { fields.append(.init("Content-Length", "\(form.byteCount)")) }
    // Without this field a session asks for codings and decodes them.
    if !isExact, value(of: "Accept-Encoding") == nil { fields.append(.init("Accept-Encoding", "identity")) }
    var request = URLRequest(
      exactly: method, url, target: target.target, fields: fields.map { Field($0.name, $0.value) },
      decodes: decodes)
    if !isExact {
      request = URLRequest(url: url)
      request.httpMethod = method
      for field in fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    }
    if form == nil, !options.data.isEmpty { request.httpBody = Foundation.Data(body) }
    if options.compresses { request.bodyCompression = .gzip }
    if let form { request.httpBodyStream = form.stream() }
    return request
  }

  private static func set(_ name: String, to value: String, in fields: inout [GetOptions.Field]) {
    fields.removeAll { $0.name.lowercased() == name.lowercased() }
    fields.append(.init(name, value))
  }
}
