import LarkspurBytes

/// A request as a command line of curl, quoted for a POSIX shell.
package struct CurlCommand {
  package enum Body {
    case none
    case bytes([UInt8])
    case file(String)
    /// Bytes that are not known: the command reads them from its standard input.
    case unknown
  }

  package var method: String
  package var url: String
  package var fields: FieldList
  package var body = Body.none

  package init(method: String, url: String, fields: FieldList, body: Body = .none) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = body
  }

  /// Returns the command line.
  ///
  /// - Parameter includesSecrets: Whether passwords, tokens and cookies are in the command, and the whole content of forms
  ///   and of JSON.
  package func text(includesSecrets: Bool) -> String {
    let url = includesSecrets ? url : Redaction.url(url)
    var words = ["curl"]
    // curl reads brackets and braces as patterns.
    if url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { words.append("--globoff") }
    let isHead = method == "HEAD"
    if isHead { words.append("--head") }
    var pipe = ""
    switch body {
    case .none: if !isHead, method != "GET" { words += ["--request", Self.quoted(method)] }
    case .bytes, .file, .unknown:
      if !isHead, method != "POST" { words += ["--request", Self.quoted(method)] }
    }
    for field in fields {
      let value = includesSecrets ? field.value : Redaction.value(field.value, of: field.name)
      // curl removes a field without a value, unless a semicolon ends the name.
      words += ["--header", Self.quoted(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")]
    }
    switch body {
    case .none: break
    case .bytes(let bytes):
      let content = includesSecrets ? bytes : Redaction.content(bytes, type: fields.firstValue(named: "Content-Type"))
      // curl would announce a form.
      if !fields.contains(named: "Content-Type") { words += ["--header", "'Content-Type:'"] }
      if let text = Self.text(content) {
        words += ["--data-raw", Self.quoted(text)]
      } else {
        pipe = "printf '\(content.map { Self.octal($0) }.joined())' | "
        words += ["--data-binary", "@-"]
      }
    case .file(let path): words += ["--data-binary", Self.quoted("@" + path)]
    case .unknown: words += ["--data-binary", "@-"]
    }
    words.append(Self.quoted(url))
    return pipe + words.joined(separator: " ")
  }

  /// Quotes a word: all characters stand for themselves between single quotes (POSIX shell command language, 2.2.2).
  package static func quoted(_ word: String) -> String {
    var quoted = "'"
    for scalar in word.unicodeScalars { quoted += scalar == "'" ? "'\\''" : String(scalar) }
    return quoted + "'"
  }

  /// Returns bytes as text, or `nil` if no argument of a command can be these bytes.
  private static func text(_ bytes: [UInt8]) -> String? {
    guard !bytes.contains(0) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The byte as an escape of `printf`.
  private static func octal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 8)
    return "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
  }
}
