import LarkspurBytes

/// Returns the PEM form (RFC 7468): base64 in lines of 64 characters between two lines that name the contents.
func pem(_ label: String, _ der: [UInt8]) -> String {
  var rest = Base64.encode(der)[...]
  var lines = "-----BEGIN \(label)-----\n"
  while !rest.isEmpty {
    lines += rest.prefix(64) + "\n"
    rest = rest.dropFirst(64)
  }
  return lines + "-----END \(label)-----\n"
}
