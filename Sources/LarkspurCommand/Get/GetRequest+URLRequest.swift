import Foundation
import Larkspur
import LarkspurHTTP

extension GetRequest {
  /// Returns the request for a session.
  ///
  /// - Parameters:
  ///   - isExact: Whether the session adds no fields. No public API has this.
  ///   - range: The fields that ask for a part of the resource.
  func request(
    to target: RequestURL, _ options: GetOptions, isExact: Bool = false, form: FormBody? = nil,
    range: FieldList = []
  ) throws(CommandFailure) -> URLRequest {
    guard let url = URL(string: target.uri) else { throw CommandFailure(.malformedURL, "\(target.uri) is no URL") }
    var fields = fields
    if let host { fields.append(.init("Host", host)) }
    let decodes =
      options.session.decodes && !fields.contains(named: "Accept-Encoding") && !fields.contains(named: "Range")
    if decodes { fields.append(.init("Accept-Encoding", "gzip, deflate")) }
    for field in range { fields.replace(field.name, with: field.value) }
    if let type = form?.contentType {
      // `-H 'Content-Type:'` removes the field.
      let isRemoved = options.fields.values(named: "Content-Type").contains("")
      if !isRemoved || fields.contains(named: "Content-Type") { fields.replace("Content-Type", with: type) }
    }
    if let form { fields.append(.init("Content-Length", "\(form.byteCount)")) }
    // Without this field a session asks for codings and decodes them.
    if !isExact, !self.fields.contains(named: "Accept-Encoding") { fields.append(.init("Accept-Encoding", "identity")) }
    var request = URLRequest(exactly: method, url, target: target.target, fields: fields, decodes: decodes)
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
}
