import CLarkspurOpenSSL
import LarkspurIO
import LarkspurTestServer
import Testing

/// A transport for ciphertext.
protocol Carrier {
  func send(_ bytes: [UInt8]) throws
  /// Receives up to `count` bytes.
  ///
  /// - Returns: The bytes, or an empty array at the end of the stream.
  func receive(atMost count: Int) throws -> [UInt8]
}

/// A minimal TLS client.
final class ClientTLS {
  struct Options {
    /// The root certificate (DER) of the server's chain, or `nil` to accept any certificate.
    var root: [UInt8]?
    /// The server name to send and to verify.
    var name: String? = "localhost"
    var versions = TestServer.TLS.Version.tls1_0...TestServer.TLS.Version.tls1_3
    var ciphers = "ALL:@SECLEVEL=0"
    var groups: String?
    var alpn: [String] = []
    var asksForStaple = false
    var certificate: TestCertificate?
    /// The session to resume.
    var session: OpaquePointer?
  }

  struct Failed: Error, CustomStringConvertible {
    /// OpenSSL's reason for the failure.
    var reason: String
    var description: String { reason }
  }

  let ssl: OpaquePointer
  private let context: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer
  /// The received ciphertext, in the pieces in which it arrived.
  private(set) var received: [[UInt8]] = []
  /// The number of received session tickets.
  private(set) var ticketCount = 0
  /// The latest session, which another client can resume.
  private(set) var session: OpaquePointer?

  init(_ options: Options = Options()) throws {
    context = try #require(SSL_CTX_new(TLS_client_method()))
    ssl = try Self.makeSSL(context, options)
    input = try #require(BIO_new(BIO_s_mem()))
    output = try #require(BIO_new(BIO_s_mem()))
    BIO_ctrl(input, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, nil)
    SSL_set_bio(ssl, input, output)
    SSL_set_connect_state(ssl)
    SSL_CTX_sess_set_new_cb(context) { ssl, session in
      guard let ssl, let mine = SSL_get_ex_data(ssl, 0) else { return 0 }
      let client = Unmanaged<ClientTLS>.fromOpaque(mine).takeUnretainedValue()
      client.ticketCount += 1
      SSL_SESSION_free(client.session)
      client.session = session
      return 1
    }
    SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
  }

  private static func makeSSL(_ context: OpaquePointer, _ options: Options) throws -> OpaquePointer {
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, options.versions.lowerBound.rawValue, nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, options.versions.upperBound.rawValue, nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_CLIENT), nil)
    #expect(SSL_CTX_set_cipher_list(context, options.ciphers) == 1)
    if var groups = options.groups?.utf8CString {
      #expect(groups.withUnsafeMutableBytes { SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, $0.baseAddress) } == 1)
    }
    if let root = options.root {
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
      let certificate = try parse(root)
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate)
      X509_free(certificate)
    }
    if let own = options.certificate {
      let certificate = try parse(own.certificateDER)
      #expect(SSL_CTX_use_certificate(context, certificate) == 1)
      X509_free(certificate)
      let kind = EVP_PKEY_EC
      #expect(SSL_CTX_use_PrivateKey_ASN1(kind, context, own.privateKeyDER, own.privateKeyDER.count) == 1)
    }
    if !options.alpn.isEmpty {
      let list = options.alpn.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
      #expect(SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0)
    }
    let ssl = try #require(SSL_new(context))
    if let name = options.name {
      var text = name.utf8CString
      text.withUnsafeMutableBytes { _ = SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, $0.baseAddress) }
      #expect(SSL_set1_host(ssl, name) == 1)
    }
    if options.asksForStaple { SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, 1, nil) }
    if let session = options.session { #expect(SSL_set_session(ssl, session) == 1) }
    return ssl
  }

  static func parse(_ der: [UInt8]) throws -> OpaquePointer {
    try der.withUnsafeBufferPointer { bytes in
      var at = bytes.baseAddress
      return try #require(d2i_X509(nil, &at, bytes.count))
    }
  }

  deinit {
    SSL_SESSION_free(session)
    SSL_free(ssl)
    SSL_CTX_free(context)
  }

  // MARK: Results of the handshake

  var version: String { String(cString: SSL_get_version(ssl)) }
  var cipher: String { String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))) }
  var isResumed: Bool { SSL_session_reused(ssl) == 1 }
  /// Whether close_notify has arrived.
  var hasEnded: Bool { SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

  var alpn: String? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    return name.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
  }

  var stapledResponse: [UInt8]? {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = withUnsafeMutablePointer(to: &bytes) { SSL_ctrl(ssl, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, $0) }
    return bytes.map { Array(UnsafeBufferPointer(start: $0, count: count)) }
  }

  /// The certificates that the server has sent, in order.
  var chainDER: [[UInt8]] {
    let chain = SSL_get_peer_cert_chain(ssl)
    return (0..<max(OPENSSL_sk_num(chain), 0)).map { index in
      var bytes: UnsafeMutablePointer<UInt8>?
      let count = i2d_X509(OpaquePointer(OPENSSL_sk_value(chain, index)), &bytes)
      defer { CRYPTO_free(bytes, #file, #line) }
      return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
  }

  /// The number of names in the certificate request, or a negative number if there was no request.
  var acceptableIssuerCount: Int { Int(OPENSSL_sk_num(SSL_get_client_CA_list(ssl))) }

  // MARK: Bytes

  /// Sends the ClientHello message.
  func hello(_ socket: some Carrier) throws {
    SSL_do_handshake(ssl)
    try flush(socket)
  }

  func handshake(_ socket: some Carrier) throws {
    while true {
      let result = SSL_do_handshake(ssl)
      let reason = failure(result)
      try flush(socket)
      if result == 1 { return }
      if let reason { throw Failed(reason: reason) }
      guard try fill(socket) else { throw RawClient.EndOfStream() }
    }
  }

  func send(_ bytes: [UInt8], _ socket: some Carrier) throws {
    while !bytes.isEmpty {
      let result = SSL_write(ssl, bytes, Int32(bytes.count))
      let reason = failure(result)
      try flush(socket)
      if result > 0 { return }
      if let reason { throw Failed(reason: reason) }
      guard try fill(socket) else { throw RawClient.EndOfStream() }
    }
  }

  /// Receives plaintext.
  ///
  /// - Returns: The bytes, or an empty array at the end, whether by close_notify or by the end of the TCP stream
  ///   only.
  func receive(_ socket: some Carrier) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1 << 14)
    while true {
      let result = SSL_read(ssl, &bytes, Int32(bytes.count))
      let reason = failure(result)
      // The server may have closed the connection, so an error of this write is ignored.
      try? flush(socket)
      if result > 0 { return Array(bytes.prefix(Int(result))) }
      if let reason { throw Failed(reason: reason) }
      if hasEnded { return [] }
      if try !fill(socket) { return [] }
    }
  }

  /// Sends close_notify.
  func close(_ socket: some Carrier) throws {
    SSL_shutdown(ssl)
    try flush(socket)
  }

  private func failure(_ result: Int32) -> String? {
    defer { ERR_clear_error() }
    guard [SSL_ERROR_SSL, SSL_ERROR_SYSCALL].contains(SSL_get_error(ssl, result)) else { return nil }
    return ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) } ?? "unknown"
  }

  private func flush(_ socket: some Carrier) throws {
    var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(output))
    guard !bytes.isEmpty else { return }
    let count = BIO_read(output, &bytes, Int32(bytes.count))
    try socket.send(Array(bytes.prefix(Int(count))))
  }

  private func fill(_ socket: some Carrier) throws -> Bool {
    let bytes = try socket.receive(atMost: 1 << 16)
    received.append(bytes)
    if !bytes.isEmpty { BIO_write(input, bytes, Int32(bytes.count)) }
    return !bytes.isEmpty
  }
}
