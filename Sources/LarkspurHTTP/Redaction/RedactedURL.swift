extension String {
  /// The URL for an error or a log: without the user and the password in it (RFC 3986, section 3.2.1).
  package var withoutUserinfo: String {
    guard let colon = firstIndex(of: ":"), self[colon...].hasPrefix("://") else { return self }
    let start = index(colon, offsetBy: 3)
    let end = self[start...].firstIndex { "/?#".contains($0) } ?? endIndex
    guard let at = self[start..<end].lastIndex(of: "@") else { return self }
    return String(self[..<start] + self[index(after: at)...])
  }
}
