/// A media type as `Content-Type` names it: `text/html;charset=utf-8`. Parsed and written by the rules of the WHATWG
/// MIME Sniffing Standard (section 4), which accept values of servers that RFC 9110, section 8.3.1, does not.
public struct MediaType: Hashable, Sendable {
  public struct Parameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    public let value: String
  }

  /// Maximum number of parameters; later ones are ignored. Each is compared with all before it, and a field has room
  /// for thousands.
  public static let parametersMax = 100

  /// The type in lower case.
  public let type: String
  public let subtype: String
  /// The parameters. No two have one name: the first of several counts.
  public private(set) var parameters: [Parameter] = []

  /// Type and subtype, such as `text/html`, which `URLResponse.mimeType` shows.
  public var essence: String { "\(type)/\(subtype)" }

  public subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }

  /// The name of the charset in lower case and without white space around it, or `nil` if there is none. The name may
  /// be unknown.
  public var charset: String? {
    let trimmed = String(String.UnicodeScalarView(Text.trim(Array((self["charset"] ?? "").unicodeScalars)[...])))
    return trimmed.isEmpty ? nil : HostName.normal(trimmed)
  }

  init(type: String, subtype: String, parameters: [Parameter] = []) {
    self.type = type
    self.subtype = subtype
    self.parameters = parameters
  }

  /// Reads one media type.
  ///
  /// - Returns: The media type, or `nil` if the text is not a media type.
  public init?(parsing text: some StringProtocol) {
    var rest = Text.trim(Array(text.unicodeScalars)[...])
    let type = Text.take(&rest) { $0 == "/" }
    guard rest.popFirst() != nil else { return nil }
    let subtype = Text.trimEnd(Text.take(&rest) { $0 == ";" })
    guard Text.isToken(type), Text.isToken(subtype) else { return nil }
    self.init(type: Text.lowercased(type), subtype: Text.lowercased(subtype))
    while rest.popFirst() != nil { readParameter(&rest) }
  }

  /// Reads the parameter up to the next semicolon. A malformed parameter is ignored.
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

  /// Reads several `Content-Type` lines, or one with commas, as one value (WHATWG Fetch, "extract a MIME type"): the
  /// last valid media type counts, with the charset of an earlier type of equal essence if it has no charset.
  ///
  /// - Returns: The media type, or `nil` if no line has a valid type.
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
  /// The media type as it stands in a field, with quotes where they are needed.
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

/// Functions that parse a field's text, scalar by scalar.
enum Text {
  typealias Scalars = ArraySlice<Unicode.Scalar>

  /// Whether the scalar is HTTP white space, as the WHATWG standards define it.
  static func isWhitespace(_ scalar: Unicode.Scalar) -> Bool {
    scalar == " " || scalar == "\t" || scalar == "\r" || scalar == "\n"
  }

  static func trimEnd(_ scalars: Scalars) -> Scalars {
    scalars.prefix((scalars.lastIndex { !isWhitespace($0) } ?? scalars.startIndex - 1) + 1 - scalars.startIndex)
  }

  static func trim(_ scalars: Scalars) -> Scalars { trimEnd(scalars.drop(while: isWhitespace)) }

  /// Removes and returns the scalars before the first one that satisfies `isEnd`, or all of them.
  static func take(_ rest: inout Scalars, until isEnd: (Unicode.Scalar) -> Bool) -> Scalars {
    let taken = rest.prefix { !isEnd($0) }
    rest = rest[taken.endIndex...]
    return taken
  }

  /// Removes a quoted string and returns its text. The closing quote may be missing, and a backslash may be the last
  /// scalar.
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

  /// Whether the scalars are a token (RFC 9110, section 5.6.2).
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

  /// Whether a quoted string may contain the scalar.
  static func isQuotable(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "\t" || 0x20...0x7e ~= scalar.value || 0x80...0xff ~= scalar.value
  }

  static func lowercased(_ scalars: Scalars) -> String {
    HostName.normal(String(String.UnicodeScalarView(scalars)))
  }
}
