/// A media type as `Content-Type` names it: `text/html;charset=utf-8`. Read and written by the rules of the WHATWG MIME
/// Sniffing Standard (section 4), which take what servers send and RFC 9110, section 8.3.1, would not.
public struct MediaType: Hashable, Sendable {
  public struct Parameter: Hashable, Sendable {
    /// In lower case.
    public let name: String
    public let value: String
  }

  /// Those that follow are passed over: each is compared with those before it, and a field has room for thousands.
  public static let parametersMax = 100

  /// In lower case.
  public let type: String
  public let subtype: String
  /// Each name once: of several with one name the first counts.
  public private(set) var parameters: [Parameter] = []

  /// `text/html`: what `URLResponse.mimeType` shows.
  public var essence: String { "\(type)/\(subtype)" }

  public subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }

  /// The name of the charset in lower case and without white space around it. Whether anybody knows it is not asked. Nil:
  /// there is none.
  public var charset: String? {
    let trimmed = String(String.UnicodeScalarView(Text.trim(Array((self["charset"] ?? "").unicodeScalars)[...])))
    return trimmed.isEmpty ? nil : HostName.normal(trimmed)
  }

  init(type: String, subtype: String, parameters: [Parameter] = []) {
    self.type = type
    self.subtype = subtype
    self.parameters = parameters
  }

  /// Reads one media type. Nil: it is none.
  public init?(parsing text: some StringProtocol) {
    var rest = Text.trim(Array(text.unicodeScalars)[...])
    let type = Text.take(&rest) { $0 == "/" }
    guard rest.popFirst() != nil else { return nil }
    let subtype = Text.trimEnd(Text.take(&rest) { $0 == ";" })
    guard Text.isToken(type), Text.isToken(subtype) else { return nil }
    self.init(type: Text.lowercased(type), subtype: Text.lowercased(subtype))
    while rest.popFirst() != nil { readParameter(&rest) }
  }

  /// What stands between two semicolons. What is none is passed over.
  private mutating func readParameter(_ rest: inout ArraySlice<Unicode.Scalar>) {
    rest = rest.drop(while: Text.isWhitespace)
    let name = Text.take(&rest) { $0 == ";" || $0 == "=" }
    guard rest.first == "=" else { return }
    rest.removeFirst()
    let value: ArraySlice<Unicode.Scalar>
    if rest.first == "\"" {
      value = Text.takeQuoted(&rest)[...]
      _ = Text.take(&rest) { $0 == ";" }
    } else {
      value = Text.trimEnd(Text.take(&rest) { $0 == ";" })
      if value.isEmpty { return }
    }
    let key = Text.lowercased(name)
    guard Text.isToken(name), value.allSatisfy(Text.isQuotable), self[key] == nil,
      parameters.count < Self.parametersMax
    else { return }
    parameters.append(Parameter(name: key, value: String(String.UnicodeScalarView(value))))
  }

  /// What several `Content-Type` lines, or one with commas, mean together (WHATWG Fetch, "extract a MIME type"): the last one
  /// that is valid counts, with the charset of an earlier one of the same essence if it has none itself.
  public init?(fieldValues: [String]) {
    var result: MediaType?
    var charset: String?
    for value in Text.splitAtCommas(fieldValues.joined(separator: ", ")) {
      guard var next = MediaType(parsing: value), next.essence != "*/*" else { continue }
      if next.essence != result?.essence {
        charset = next["charset"]
      } else if next["charset"] == nil, let charset {
        next.parameters.append(Parameter(name: "charset", value: charset))
      }
      result = next
    }
    guard let result else { return nil }
    self = result
  }
}

extension MediaType: CustomStringConvertible {
  /// As it stands in a field, with quotes where they are needed.
  public var description: String {
    parameters.reduce(into: essence) { text, parameter in
      text += ";\(parameter.name)="
      let scalars = Array(parameter.value.unicodeScalars)
      if Text.isToken(scalars[...]) {
        text += parameter.value
      } else {
        let escaped = scalars.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
        text += "\"\(String(String.UnicodeScalarView(escaped)))\""
      }
    }
  }
}

/// Small readings of a field's text, scalar by scalar.
enum Text {
  typealias Scalars = ArraySlice<Unicode.Scalar>

  /// HTTP white space, as the standards of the WHATWG have it.
  static func isWhitespace(_ scalar: Unicode.Scalar) -> Bool {
    scalar == " " || scalar == "\t" || scalar == "\r" || scalar == "\n"
  }

  static func trimEnd(_ scalars: Scalars) -> Scalars {
    scalars.prefix((scalars.lastIndex { !isWhitespace($0) } ?? scalars.startIndex - 1) + 1 - scalars.startIndex)
  }

  static func trim(_ scalars: Scalars) -> Scalars { trimEnd(scalars.drop(while: isWhitespace)) }

  /// What stands before the first scalar of a kind, or all.
  static func take(_ rest: inout Scalars, until isEnd: (Unicode.Scalar) -> Bool) -> Scalars {
    let taken = rest.prefix { !isEnd($0) }
    rest = rest[taken.endIndex...]
    return taken
  }

  /// What a quoted string says. Its end may be missing, and a backslash may be its last.
  static func takeQuoted(_ rest: inout Scalars) -> [Unicode.Scalar] {
    var value: [Unicode.Scalar] = []
    rest.removeFirst()
    while let scalar = rest.popFirst() {
      if scalar == "\"" { break }
      value.append(scalar == "\\" ? rest.popFirst() ?? scalar : scalar)
    }
    return value
  }

  /// Splits at the commas that stand outside of quoted strings.
  static func splitAtCommas(_ text: String) -> [String] {
    var parts: [String] = []
    var part = String.UnicodeScalarView()
    var isQuoted = false
    var isEscaped = false
    func end() {
      let scalars = Array(part)[...]
      parts.append(String(String.UnicodeScalarView(trim(scalars))))
      part = String.UnicodeScalarView()
    }
    for scalar in text.unicodeScalars {
      if scalar == ",", !isQuoted {
        end()
        continue
      }
      if scalar == "\"", !isEscaped { isQuoted.toggle() }
      isEscaped = isQuoted && scalar == "\\" && !isEscaped
      part.append(scalar)
    }
    end()
    return parts
  }

  /// RFC 9110, section 5.6.2.
  static func isToken(_ scalars: Scalars) -> Bool {
    !scalars.isEmpty
      && scalars.allSatisfy { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "!", "#", "$", "%", "&", "'", "*", "+", "-", ".", "^", "_", "`", "|", "~":
          true
        default: false
        }
      }
  }

  /// What a quoted string may hold.
  static func isQuotable(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "\t" || 0x20...0x7e ~= scalar.value || 0x80...0xff ~= scalar.value
  }

  static func lowercased(_ scalars: Scalars) -> String {
    HostName.normal(String(String.UnicodeScalarView(scalars)))
  }
}
