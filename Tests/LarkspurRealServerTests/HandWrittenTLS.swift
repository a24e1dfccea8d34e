import LarkspurTestServer

/// TLS messages for protocol features that current servers no longer have, or that OpenSSL refuses to send.
enum HandWrittenTLS {
  /// A ServerHello and nothing after it.
  static func hello(version: UInt16, cipher: UInt16) -> TestServer.Script {
    script(record(version, serverHello(version, cipher, extensions: [])))
  }

  /// The first flight of a TLS 1.2 server for DHE with RSA, up to ServerHelloDone. Its signature is invalid, because
  /// the client fails before it checks that.
  static func diffieHellman(_ plan: TLSPlan, _ group: TLSGroup) -> TestServer.Script {
    // RFC 5746 3.4: an empty renegotiation_info.
    let hello = serverHello(0x0303, 0x009e, extensions: [0, 5, 0xff, 1, 0, 1, 0])
    let certificates = message(11, counted(3, Array(plan.chain.map { counted(3, $0) }.joined())))
    // rsa_pkcs1_sha256
    let signature: [UInt8] = [4, 1] + counted(2, [UInt8](repeating: 1, count: 256))
    let numbers = [group.primeBytes, [2], [4]].map { counted(2, $0) }
    let exchange = message(12, Array(numbers.joined()) + signature)
    return script([hello, certificates, exchange, message(14, [])].flatMap { record(0x0303, $0) })
  }

  static func script(_ bytes: [UInt8]) -> TestServer.Script { [.beforeHandshake, .send(bytes), .hang] }

  private static func serverHello(_ version: UInt16, _ cipher: UInt16, extensions: [UInt8]) -> [UInt8] {
    message(2, number(version) + [UInt8](repeating: 7, count: 32) + [0] + number(cipher) + [0] + extensions)
  }

  private static func message(_ type: UInt8, _ content: [UInt8]) -> [UInt8] { [type] + counted(3, content) }

  private static func record(_ version: UInt16, _ content: [UInt8]) -> [UInt8] {
    [22] + number(version) + counted(2, content)
  }

  private static func number(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xff)] }

  /// Returns the content after its length, which takes `bytes` bytes.
  private static func counted(_ bytes: Int, _ content: [UInt8]) -> [UInt8] {
    (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) } + content
  }
}
