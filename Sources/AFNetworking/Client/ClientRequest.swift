import Foundation
import Larkspur
import Synchronization

/// Returns parameters as a query in the style of AFNetworking 1: pairs `key=value`, with `a[b]` for the members of a
/// dictionary and `a[]` for those of an array. Brackets of keys are not escaped, unlike in
/// `AFQueryStringFromParameters(_:)`.
///
/// - Parameters:
///   - parameters: The parameters, or `nil` for an empty query.
///   - encoding: The encoding of the characters before percent-escaping: a raw value of `String.Encoding`.
/// - Returns: The query. It is empty if the encoding is unknown or does not have all of the characters: a `?` in their
///   place would change the meaning.
public func AFQueryStringFromParametersWithEncoding(_ parameters: [AnyHashable: Any]?, _ encoding: UInt) -> String {
  ClientQuery.text(of: parameters ?? [:], String.Encoding(rawValue: encoding)) ?? ""
}

enum ClientQuery {
  /// - Returns: The query, or `nil` if the encoding is unknown or does not have all of the characters.
  static func text(of parameters: [AnyHashable: Any], _ encoding: String.Encoding) -> String? {
    var parts: [String] = []
    for pair in QueryString.pairs(of: parameters) {
      guard var part = escaped(pair.field, encoding, isKey: true) else { return nil }
      if !pair.isNull {
        guard let value = escaped(QueryString.text(ofValue: pair.value), encoding, isKey: false) else { return nil }
        part += "=" + value
      }
      parts.append(part)
    }
    return parts.joined(separator: "&")
  }

  private static func escaped(_ text: String, _ encoding: String.Encoding, isKey: Bool) -> String? {
    guard let bytes = TextCoding.bytes(of: text, in: encoding) else { return nil }
    return bytes.reduce(into: "") { result, byte in
      if isPlain(byte) || isKey && (byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")) {
        result.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let hex = String(byte, radix: 16, uppercase: true)
        result += byte < 16 ? "%0" + hex : "%" + hex
      }
    }
  }

  /// The unreserved characters of RFC 3986 2.3.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }
}

/// Creates a client's requests.
struct ClientRequest {
  private let baseURL: URL
  private let settings: AFHTTPClient.Details

  init(_ client: AFHTTPClient) {
    baseURL = client.baseURL
    settings = client.details.withLock { $0 }
  }

  /// Resolves a path. An empty path is the base URL itself.
  private func url(_ path: String) -> URL? {
    path.isEmpty ? baseURL : URL(string: path, relativeTo: baseURL)?.absoluteURL
  }

  /// Returns the client's default fields for a request to `url`. Fields that are meant for the base URL's origin only
  /// are left out for other origins.
  private func fields(for url: URL) -> [String: String] { BaseOrigin(baseURL).fields(settings.fields, for: url) }

  private var encoding: String.Encoding { String.Encoding(rawValue: settings.stringEncoding) }

  /// - Returns: The request, or `nil` if the path is not a URL, or the parameters cannot be written.
  func request(_ method: String, _ path: String, _ parameters: [AnyHashable: Any]?) -> NSMutableURLRequest? {
    guard var url = url(path) else { return nil }
    let isInQuery = ["GET", "HEAD", "DELETE"].contains(method)
    if isInQuery, let parameters {
      guard let query = ClientQuery.text(of: parameters, encoding),
        let longer = URL(string: url.absoluteString + (path.contains("?") ? "&" : "?") + query)
      else { return nil }
      url = longer
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    for (name, value) in fields(for: url) { request.setValue(value, forHTTPHeaderField: name) }
    if !isInQuery, let parameters {
      guard let body = body(of: parameters) else { return nil }
      request.httpBody = body.bytes
      request.setValue(body.type, forHTTPHeaderField: "Content-Type")
    }
    return MutableRequest.make(request)
  }

  /// - Returns: The body and its type with the charset, or `nil` if the parameters cannot be written, or the encoding
  ///   of a form has no charset name to send.
  private func body(of parameters: [AnyHashable: Any]) -> (type: String, bytes: Data)? {
    switch settings.parameterEncoding {
    case .form:
      guard let text = ClientQuery.text(of: parameters, encoding), let bytes = TextCoding.bytes(of: text, in: encoding),
        let charset = TextEncodingName.name(of: encoding)
      else { return nil }
      return ("application/x-www-form-urlencoded; charset=" + charset, bytes)
    case .json:
      guard let object = parameters as? [String: Any], JSONSerialization.isValidJSONObject(object) else { return nil }
      return (try? JSONSerialization.data(withJSONObject: object)).map { ("application/json; charset=utf-8", $0) }
    case .propertyList:
      guard let object = parameters as? [String: Any],
        PropertyListSerialization.propertyList(object, isValidFor: .xml)
      else { return nil }
      let data = try? PropertyListSerialization.data(fromPropertyList: object, format: .xml, options: 0)
      return data.map { ("application/x-plist; charset=utf-8", $0) }
    }
  }

  /// - Returns: The request, or `nil` if the path is not a URL, the parameters cannot be written, or the method has no
  ///   body.
  func form(
    _ method: String, _ path: String, _ parameters: [AnyHashable: Any]?,
    _ block: ((any AFMultipartFormData) -> Void)?
  ) -> NSMutableURLRequest? {
    guard let url = url(path) else { return nil }
    let serializer = AFHTTPRequestSerializer()
    for name in serializer.httpRequestHeaders.keys { serializer.setValue(nil, forHTTPHeaderField: name) }
    for (name, value) in fields(for: url) { serializer.setValue(value, forHTTPHeaderField: name) }
    serializer.stringEncoding = settings.stringEncoding
    return try? serializer.multipartFormRequest(
      withMethod: method, urlString: url.absoluteString, parameters: parameters as? [String: Any],
      constructingBodyWith: block)
  }
}
