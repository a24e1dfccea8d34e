/// The answer to a Digest challenge: the value of `Authorization` or `Proxy-Authorization` (RFC 7616 3.4).
public struct DigestResponse {
  public let challenge: DigestChallenge
  public let credential: PasswordCredential
  public let request: AuthenticatedRequest
  /// Number of requests that have carried this nonce, this one included.
  public let nonceCount: UInt32
  public let clientNonce: String
  /// The nonces in the key of a `-sess` algorithm, or `nil` for the nonces of this request.
  public let keyNonces: KeyNonces?

  public struct KeyNonces: Hashable, Sendable {
    public let server: String
    public let client: String
  }

  public init(
    to challenge: DigestChallenge, of credential: PasswordCredential, for request: AuthenticatedRequest,
    nonceCount: UInt32, clientNonce: String, keyNonces: KeyNonces? = nil
  ) {
    self.challenge = challenge
    self.credential = credential
    self.request = request
    self.nonceCount = nonceCount
    self.clientNonce = clientNonce
    self.keyNonces = keyNonces
  }

  /// Returns the value of the field, or `nil` if the hash is not available, the body cannot be hashed, the client nonce
  /// is empty, or the user's name or password contains a control character.
  public func authorization(hash function: DigestHash.Function) -> String? {
    // A line break in one of these values would begin another field.
    guard credential.isPrintable, !clientNonce.isEmpty else { return nil }
    func hex(_ text: String) -> String? { function(challenge.algorithm.hash, Array(text.utf8)).map(hexadecimal) }
    guard let secret = secret(hex), let message = message(hex, function) else { return nil }
    let quality = challenge.quality
    let count = nonceCountText
    // RFC 7616 3.4.1.
    let middle = quality.map { ":\(count):\(clientNonce):\($0.rawValue)" } ?? ""
    guard let response = hex("\(secret):\(challenge.nonce)\(middle):\(message)"), let name = userName(hex) else {
      return nil
    }

    // RFC 7616 3.4 says which values are quoted and which must not be.
    var parameters = [
      name, "realm=\(quoted(challenge.realm))", "nonce=\(quoted(challenge.nonce))", "uri=\(quoted(request.target))",
    ]
    if let algorithm = challenge.algorithm.text { parameters.append("algorithm=\(algorithm)") }
    if let quality { parameters += ["qop=\(quality.rawValue)", "nc=\(count)"] }
    // Without a quality the client nonce is sent only for the session key, which the server cannot compute without it.
    if quality != nil || challenge.algorithm.isSession { parameters.append("cnonce=\(quoted(clientNonce))") }
    parameters.append("response=\"\(response)\"")
    if let opaque = challenge.opaque { parameters.append("opaque=\(quoted(opaque))") }
    if challenge.hashesUser { parameters.append("userhash=true") }
    return "Digest " + parameters.joined(separator: ", ")
  }

  private var nonceCountText: String {
    let digits = String(nonceCount, radix: 16)
    return String(repeating: "0", count: 8 - digits.utf8.count) + digits
  }

  /// The hash of A1 (RFC 7616 3.4.2).
  private func secret(_ hex: (String) -> String?) -> String? {
    guard let key = hex("\(credential.user):\(challenge.realm):\(credential.password)") else { return nil }
    guard challenge.algorithm.isSession else { return key }
    return hex("\(key):\(keyNonces?.server ?? challenge.nonce):\(keyNonces?.client ?? clientNonce)")
  }

  /// The hash of A2 (RFC 7616 3.4.3).
  private func message(_ hex: (String) -> String?, _ function: DigestHash.Function) -> String? {
    let line = "\(request.method):\(request.target)"
    guard challenge.quality == .integrity else { return hex(line) }
    guard let body = request.bodyHash(challenge.algorithm.hash, by: function) else { return nil }
    return hex("\(line):\(hexadecimal(body))")
  }

  /// The `username` parameter (RFC 7616 3.4.4). The form with a star (RFC 7616 3.4) is for names outside ASCII, and for
  /// servers that declare UTF-8. Other servers get the bytes unchanged, as they always have.
  private func userName(_ hex: (String) -> String?) -> String? {
    if challenge.hashesUser { return hex("\(credential.user):\(challenge.realm)").map { "username=\"\($0)\"" } }
    guard challenge.isUTF8, !credential.user.utf8.allSatisfy({ $0 < 0x80 }) else {
      return "username=\(quoted(credential.user))"
    }
    return "username*=UTF-8''" + extended(credential.user)
  }
}

/// Returns the text as a quoted string (RFC 9110 5.6.4).
private func quoted(_ text: String) -> String {
  var bytes: [UInt8] = [ASCII.quote]
  for byte in text.utf8 {
    if byte == ASCII.quote || byte == ASCII.backslash { bytes.append(ASCII.backslash) }
    bytes.append(byte)
  }
  return String(decoding: bytes + [ASCII.quote], as: UTF8.self)
}

/// Percent-encodes all bytes that are not an `attr-char` (RFC 8187 3.2.1).
private func extended(_ text: String) -> String {
  var result = ""
  for byte in text.utf8 {
    let isLetter = UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
    if isLetter || ASCII.isDigit(byte) || "!#$&+-.^_`|~".utf8.contains(byte) {
      result.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
  }
  return result
}

func hexadecimal(_ bytes: [UInt8]) -> String {
  var digits: [UInt8] = []
  digits.reserveCapacity(2 * bytes.count)
  let alphabet = Array("0123456789abcdef".utf8)
  for byte in bytes { digits += [alphabet[Int(byte >> 4)], alphabet[Int(byte & 15)]] }
  return String(decoding: digits, as: UTF8.self)
}
