import LarkspurBytes

/// Takes secrets out of requests and responses before they are written to a log or a file.
package enum Redaction {
  /// The text that stands in place of a secret. It may stand in the query of a URL as it is (RFC 3986 3.4).
  package static let mark = "(redacted)"

  /// The names of fields, besides those that must not leave their origin, whose values are secrets by convention.
  private static let secretFields = [
    "Set-Cookie", "Authentication-Info", "Proxy-Authentication-Info", "X-Api-Key", "Api-Key", "X-Auth-Token",
    "X-Access-Token", "X-Csrf-Token", "X-Amz-Security-Token", "X-Goog-Api-Key",
  ]

  /// The names of parameters of queries and forms whose values are secrets by convention, in lower case.
  private static let secretParameters: Set<String> = [
    "access_token", "api_key", "apikey", "auth", "client_assertion", "client_secret", "code", "code_verifier",
    "id_token",
    "key", "passwd", "password", "refresh_token", "secret", "sig", "signature", "token", "x-amz-credential",
    "x-amz-security-token", "x-amz-signature", "x-goog-credential", "x-goog-signature",
  ]

  /// Whether the value of a field is a secret.
  package static func isSecret(field name: String) -> Bool {
    RedirectPolicy.isPrivate(name) && !name.equalsIgnoringCase("Host")
      || secretFields.contains { name.equalsIgnoringCase($0) }
  }

  /// Returns the value of a field without secrets.
  package static func value(_ value: String, of name: String) -> String {
    if isSecret(field: name) { return mark }
    let isURL = ["Location", "Content-Location", "Referer"].contains { name.equalsIgnoringCase($0) }
    return isURL ? url(value) : value
  }

  /// Returns a URL, or a request's target, without user and password, and without the values of secret parameters in its query
  /// and in its fragment.
  package static func url(_ text: String) -> String {
    let text = text.withoutUserinfo
    let hash = text.utf8.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
    var output = String(text[..<hash])
    if let question = output.utf8.firstIndex(of: UInt8(ascii: "?")) {
      output = output[...question] + form(String(output[output.utf8.index(after: question)...]))
    }
    return output + (hash == text.endIndex ? "" : "#" + form(String(text[text.utf8.index(after: hash)...])))
  }

  /// Returns a query, or a form's content (`application/x-www-form-urlencoded`), without the values of secret parameters.
  package static func form(_ text: String) -> String {
    text.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
      let name = pair.prefix { $0 != UInt8(ascii: "=") }
      let decoded = String(decoding: PercentCoding.decoded(name), as: UTF8.self).lowercased()
      guard name.count < pair.count, secretParameters.contains(decoded) else { return String(Substring(pair)) }
      return String(Substring(name)) + "=" + mark
    }
    .joined(separator: "&")
  }

  /// Returns the content of a body without secrets, as far as its type is known: the values of secret parameters of forms,
  /// and the texts of secret members of JSON.
  ///
  /// - Parameter type: The value of `Content-Type`.
  package static func content(_ bytes: [UInt8], type: String?) -> [UInt8] {
    let type = type?.prefix { $0 != ";" && $0 != " " }.lowercased() ?? ""
    if type == "application/x-www-form-urlencoded" { return Array(form(String(decoding: bytes, as: UTF8.self)).utf8) }
    return type == "application/json" || type.hasSuffix("+json") ? json(bytes) : bytes
  }

  /// Names of parameters that are common members of JSON without being secrets.
  private static let commonMembers: Set<String> = ["auth", "code", "key"]

  /// Returns JSON without the texts of secret members. All other bytes stay, also if they are no JSON.
  private static func json(_ bytes: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    var index = 0
    /// The content of the latest text, if only blanks and a colon follow it so far.
    var name: (text: ArraySlice<UInt8>, hasColon: Bool)?
    while index < bytes.count {
      let byte = bytes[index]
      guard byte == UInt8(ascii: "\"") else {
        if byte == UInt8(ascii: ":") {
          name = name.map { ($0.text, true) }
        } else if byte != UInt8(ascii: " "), byte != UInt8(ascii: "\t"), byte != UInt8(ascii: "\n"),
          byte != UInt8(ascii: "\r")
        {
          name = nil
        }
        output.append(byte)
        index += 1
        continue
      }
      var end = index + 1
      while end < bytes.count, bytes[end] != UInt8(ascii: "\"") { end += bytes[end] == UInt8(ascii: "\\") ? 2 : 1 }
      end = min(end, bytes.count)
      let text = bytes[(index + 1)..<end]
      let owner = name.map { $0.hasColon ? String(decoding: $0.text, as: UTF8.self).lowercased() : "" } ?? ""
      let isSecret = secretParameters.contains(owner) && !commonMembers.contains(owner)
      output.append(byte)
      output += isSecret ? Array(mark.utf8) : Array(text)
      if end < bytes.count { output.append(byte) }
      name = (text, false)
      index = end + 1
    }
    return output
  }

  /// Returns the head of a request or a response, as it is on the wire, without secrets.
  package static func head(_ bytes: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    var isSecret = false
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let isFolded = line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t")
      // A folded line belongs to the value before it (RFC 9112 5.2).
      if isSecret, isFolded { continue }
      if index > 0 { output.append(UInt8(ascii: "\n")) }
      isSecret = false
      let end: [UInt8] = line.last == UInt8(ascii: "\r") ? [UInt8(ascii: "\r")] : []
      let content = line.dropLast(end.count)
      if index == 0 {
        output += startLine(content) + end
      } else if let colon = content.firstIndex(of: UInt8(ascii: ":")) {
        let name = String(decoding: content[..<colon], as: UTF8.self)
        let value = content[content.index(after: colon)...]
        isSecret = Redaction.isSecret(field: name)
        let text = String(decoding: value, as: UTF8.self)
        let redacted = Redaction.value(text, of: name)
        output += content[...colon]
        output += redacted == text ? Array(value) : Array((isSecret ? " " : "").utf8) + Array(redacted.utf8)
        output += end
      } else {
        output += line
      }
    }
    return output
  }

  /// Returns a request's first line without the secrets of its target, and a response's first line as it is.
  private static func startLine(_ line: ArraySlice<UInt8>) -> [UInt8] {
    guard !line.starts(with: Array("HTTP/".utf8)) else { return Array(line) }
    let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    let texts = words.map { url(String(decoding: $0, as: UTF8.self)) }
    return Array(texts.joined(separator: " ").utf8)
  }
}
