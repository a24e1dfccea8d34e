import CLarkspurTestServer

/// A server's TLS settings in OpenSSL's form. All connections of the server share them.
///
/// Safe: the pointer does not change, and OpenSSL lets any thread make sessions from a context that is complete.
@safe
final class TLSContext: @unchecked Sendable {
  /// The setting that OpenSSL refuses, and the reason, in words.
  struct Refused: Error {
    let message: String
  }

  let pointer: OpaquePointer

  init(_ tls: TestServer.TLS) throws(Refused) {
    // Safe: only `deinit` frees the context.
    guard let pointer = unsafe larkspur_server_context_create() else { throw Refused(message: Keys.errorMessage()) }
    unsafe self.pointer = pointer
    try configure(tls)
  }

  deinit {
    // Safe: each session holds a reference to this object, so no session exists any more.
    unsafe larkspur_server_context_free(pointer)
  }

  private func check(_ what: String, _ result: Int32) throws(Refused) {
    if result != 1 { throw Refused(message: "\(what): \(Keys.errorMessage())") }
  }

  private func configure(_ tls: TestServer.TLS) throws(Refused) {
    // Safe: in this function the context lives, and arrays and text are lent for the call, with their lengths.
    unsafe larkspur_server_set_security_level(pointer, Int32(clamping: tls.securityLevel))
    let (min, max) = (Int32(tls.versions.lowerBound.rawValue), Int32(tls.versions.upperBound.rawValue))
    try check("versions", unsafe larkspur_server_set_versions(pointer, min, max))
    try configureAlgorithms(tls)
    if !tls.chainDER.isEmpty {
      let chain = Array(tls.chainDER.joined())
      let key = tls.privateKeyDER
      // Safe: the context lives, and the arrays are lent for the call, with their lengths.
      try check(
        "certificates and key",
        unsafe larkspur_server_set_certificates(pointer, chain, chain.count, key, key.count))
    }
    if let response = tls.stapledResponse {
      // Safe: the context lives, and the response is lent for the call, with its length.
      try check("stapled response", unsafe larkspur_server_set_stapled_response(pointer, response, response.count))
    }
    try check(
      "tickets",
      // Safe: the context lives.
      unsafe larkspur_server_set_resumption(
        pointer, Swift.min(Swift.max(tls.ticketCount, 0), 1000), tls.hasStatelessTickets ? 1 : 0,
        tls.keepsSessions ? 1 : 0))
    try configureClients(tls)
    let bytes = Swift.min(Swift.max(tls.recordBytesMax, 512), 16_384)
    // Safe: the context lives.
    try check("record size", unsafe larkspur_server_set_fragment_bytes_max(pointer, bytes))
  }

  private func configureAlgorithms(_ tls: TestServer.TLS) throws(Refused) {
    // Safe: in this function the context lives, and the text is lent for the call.
    if let list = tls.ciphers { try check("ciphers", unsafe larkspur_server_set_ciphers(pointer, list)) }
    if let list = tls.cipherSuites {
      try check("cipher suites", unsafe larkspur_server_set_ciphersuites(pointer, list))
    }
    if let list = tls.groups { try check("groups", unsafe larkspur_server_set_groups(pointer, list)) }
    if let list = tls.signatureAlgorithms {
      try check("signature algorithms", unsafe larkspur_server_set_signature_algorithms(pointer, list))
    }
    if let bits = tls.dhBits { try check("DH", unsafe larkspur_server_set_dh_bits(pointer, Int32(clamping: bits))) }
  }

  private func configureClients(_ tls: TestServer.TLS) throws(Refused) {
    let (mode, authorities): (Int?, [UInt8]) =
      switch tls.clientCertificate {
      case .none: (nil, [])
      case .asked: (LARKSPUR_SERVER_CLIENT_ASKED, [])
      case .required: (LARKSPUR_SERVER_CLIENT_REQUIRED, [])
      case .verified(let authorities): (LARKSPUR_SERVER_CLIENT_VERIFIED, Array(authorities.joined()))
      }
    if let mode {
      try check(
        "client certificates",
        // Safe: the context lives, and the array is lent for the call, with its length.
        unsafe larkspur_server_set_client_certificates(pointer, Int32(mode), authorities, authorities.count))
    }
    let issuers = Array(tls.acceptableIssuersDER.joined())
    // Safe: the context lives, and the array is lent for the call, with its length.
    try check(
      "acceptable issuers", unsafe larkspur_server_set_acceptable_issuers(pointer, issuers, issuers.count))
    let (answer, protocols): (Int, [String]) =
      switch tls.alpn {
      case .ignore: (LARKSPUR_SERVER_ALPN_IGNORE, [])
      case .choose(let protocols): (LARKSPUR_SERVER_ALPN_CHOOSE, protocols)
      case .insist(let protocols): (LARKSPUR_SERVER_ALPN_INSIST, protocols)
      case .answer(let name): (LARKSPUR_SERVER_ALPN_ANSWER, [name])
      }
    let list = protocols.flatMap { name in
      let bytes = Array(name.utf8.prefix(255))
      return bytes.isEmpty ? [] : [UInt8(bytes.count)] + bytes
    }
    // Safe: the context lives, and the array is lent for the call, with its length.
    try check("ALPN", unsafe larkspur_server_set_alpn(pointer, Int32(answer), list, list.count))
  }
}
