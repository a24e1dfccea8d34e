import LarkspurBytes

/// The fields of a request, as they are sent.
extension FieldList {
  /// Whether any field concerns a cache: which stored responses may be used, or under which condition (RFC 9111 5.2,
  /// RFC 9110 13 and 14.2), or under which key they are stored (`Host`).
  package var concernCache: Bool {
    contains { field in
      switch field.name.utf8.count {
      case 4: field.name.equalsIgnoringCase("Host")
      case 5: field.name.equalsIgnoringCase("Range") || field.name.isConditional
      case 6: field.name.equalsIgnoringCase("Pragma") || field.name.isConditional
      case 13: field.name.equalsIgnoringCase("Cache-Control") || field.name.isConditional
      default: field.name.isConditional
      }
    }
  }
}

extension String {
  /// Whether the text can be a field's value: no NUL, and no line end other than that of a fold (RFC 9110 5.5, RFC 9112
  /// 5.2).
  package var isFieldValue: Bool {
    let bytes = utf8Span.span
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case 0, 0x0A: return false
      case 0x0D:
        guard index + 2 < bytes.count, bytes[index + 1] == 0x0A, bytes[index + 2] == 0x20 || bytes[index + 2] == 0x09
        else { return false }
        index += 3
      default: index += 1
      }
    }
    return true
  }

  /// The text in one line, if it is a folded field value: a client must not send folds (RFC 9112 5.2). Other text is
  /// unchanged.
  package var unfolded: String {
    guard utf8.contains(ASCII.cr), isFieldValue else { return self }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(utf8.count)
    // Each CR is followed by LF and white space.
    for byte in utf8 where byte != ASCII.cr { bytes.append(byte == ASCII.lf ? ASCII.space : byte) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether this is the name of a conditional field such as `If-Match`: it begins with `If-`.
  fileprivate var isConditional: Bool {
    let bytes = utf8Span.span
    return bytes.count > 3 && bytes[0] | 0x20 == UInt8(ascii: "i") && bytes[1] | 0x20 == UInt8(ascii: "f")
      && bytes[2] == UInt8(ascii: "-")
  }
}
