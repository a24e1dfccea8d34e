import LarkspurBytes

/// The agreement of client and server at the end of an opening handshake.
package struct WebSocketAgreement: Hashable, Sendable {
  /// The subprotocol that the server chose among the offered ones, or `nil` if it chose no subprotocol.
  package var subprotocol: String?
  /// The parameters of compression, or `nil` if messages are not compressed.
  package var compression: WebSocketCompression?

  package init(subprotocol: String? = nil, compression: WebSocketCompression? = nil) {
    self.subprotocol = subprotocol
    self.compression = compression
  }
}

/// The client's side of an opening handshake (RFC 6455 4.1).
///
/// The owner sends `fields` with a GET request and passes the response to `check`. The handshake does not depend on
/// redirects and authentication: the owner handles such responses first, and begins each request with a new handshake.
package struct WebSocketHandshake: Hashable, Sendable {
  /// Returns the SHA-1 of bytes, or `nil` if the hash is not available (a policy may forbid SHA-1).
  package typealias SHA1 = ([UInt8]) -> [UInt8]?

  package static let version = "13"

  private let key: String
  private let expectedAccept: String
  private let protocols: [String]
  private let offersCompression: Bool

  /// - Parameters:
  ///   - nonce: 16 random bytes, new for each connection.
  ///   - protocols: The offered subprotocols, the preferred one first.
  ///   - offersCompression: Whether to offer permessage-deflate.
  /// - Throws: `subprotocolInvalid`, `subprotocolRepeated` or `hashUnavailable`.
  package init(
    nonce: [UInt8], protocols: [String], offersCompression: Bool, sha1: SHA1
  ) throws(WebSocketHandshakeError) {
    var seen: Set<String> = []
    for name in protocols {
      // RFC 6455 4.1: subprotocols are tokens, and unique.
      guard isToken(name) else { throw .subprotocolInvalid(name) }
      guard seen.insert(name).inserted else { throw .subprotocolRepeated(name) }
    }
    key = Base64.encode(nonce)
    guard let accept = Self.accept(forKey: key, sha1: sha1) else { throw .hashUnavailable }
    expectedAccept = accept
    self.protocols = protocols
    self.offersCompression = offersCompression
  }

  /// Returns the HTTP URL of the opening handshake for a `ws` or `wss` URL (RFC 6455 3), or `nil` for another scheme.
  package static func httpURL(of url: String) -> String? {
    guard let colon = url.firstIndex(of: ":") else { return nil }
    let scheme = String(url[..<colon])
    if scheme.equalsIgnoringCase("ws") { return "http" + url[colon...] }
    return scheme.equalsIgnoringCase("wss") ? "https" + url[colon...] : nil
  }

  /// The fields that make a GET request an opening handshake.
  package var fields: FieldList {
    var fields = [
      Field("Upgrade", "websocket"), Field("Connection", "Upgrade"),
      Field("Sec-WebSocket-Key", key), Field("Sec-WebSocket-Version", Self.version),
    ]
    if !protocols.isEmpty { fields.append(Field("Sec-WebSocket-Protocol", protocols.joined(separator: ", "))) }
    if offersCompression { fields.append(Field("Sec-WebSocket-Extensions", WebSocketCompression.offer)) }
    return fields
  }

  /// Checks the server's response.
  ///
  /// - Parameters:
  ///   - values: Returns all values of the fields with a name, which is compared without regard to letter case.
  /// - Returns: The agreement. The bytes behind the head are frames.
  /// - Throws: The reason for which the connection must be failed.
  package func check(
    status: Int, fields values: (_ name: String) -> [String]
  ) throws(WebSocketHandshakeError) -> WebSocketAgreement {
    guard status == 101 else { throw .statusUnexpected(status) }

    let upgrades = values("Upgrade")
    guard let upgrade = upgrades.first else { throw .upgradeMissing }
    guard upgrades.count == 1, trimmed(upgrade).equalsIgnoringCase("websocket") else {
      throw .upgradeInvalid(upgrades.joined(separator: ", "))
    }
    let connections = values("Connection")
    guard !connections.isEmpty else { throw .connectionMissing }
    guard listElements(connections).contains(where: { $0.equalsIgnoringCase("upgrade") }) else {
      throw .connectionInvalid(connections.joined(separator: ", "))
    }
    guard let accept = try only("Sec-WebSocket-Accept", values) else { throw .acceptMissing }
    guard accept == expectedAccept else { throw .acceptInvalid(accept) }

    var agreement = WebSocketAgreement()
    if let name = try only("Sec-WebSocket-Protocol", values) {
      guard protocols.contains(name) else { throw .subprotocolNotOffered(name) }
      agreement.subprotocol = name
    }
    if let value = try only("Sec-WebSocket-Extensions", values) {
      guard let elements = WebSocketExtension.list(value) else { throw .extensionsInvalid(value) }
      for element in elements {
        guard offersCompression, element.name == WebSocketCompression.name else {
          throw .extensionNotOffered(element.name)
        }
        guard agreement.compression == nil else { throw .extensionRepeated(element.name) }
        agreement.compression = try WebSocketCompression(response: element)
      }
    }
    return agreement
  }

  /// Returns the value of a field that may appear once in a response (RFC 6455 11.3), or `nil` if there is none.
  private func only(
    _ name: String, _ values: (String) -> [String]
  ) throws(WebSocketHandshakeError) -> String? {
    let all = values(name)
    guard all.count <= 1 else { throw .fieldRepeated(name) }
    return all.first.map(trimmed)
  }

  /// Returns the value of `Sec-WebSocket-Accept` for a key (RFC 6455 4.2.2), or `nil` if the hash is not available.
  package static func accept(forKey key: String, sha1: SHA1) -> String? {
    sha1(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)).map(Base64.encode)
  }
}

/// An opening handshake as a server reads it (RFC 6455 4.2.1).
package struct WebSocketOffer: Hashable, Sendable {
  package let key: String
  /// The subprotocols that the client offers, the preferred one first.
  package let protocols: [String]
  /// The parameters of each offer of permessage-deflate, the preferred one first. Offers that a server must decline are
  /// left out.
  package let compressions: [WebSocketCompression]

  /// Reads the fields of a GET request.
  ///
  /// - Parameter values: Returns all values of the fields with a name, which is compared without regard to letter case.
  package init(fields values: (_ name: String) -> [String]) throws(WebSocketHandshakeError) {
    guard listElements(values("Upgrade")).contains(where: { $0.equalsIgnoringCase("websocket") }) else {
      throw .upgradeMissing
    }
    guard listElements(values("Connection")).contains(where: { $0.equalsIgnoringCase("upgrade") }) else {
      throw .connectionMissing
    }
    guard values("Sec-WebSocket-Version").map(trimmed) == [WebSocketHandshake.version] else {
      throw .versionUnsupported
    }
    let keys = values("Sec-WebSocket-Key").map(trimmed)
    guard keys.count == 1, Base64.decode(keys[0].utf8)?.count == 16 else { throw .keyInvalid }
    key = keys[0]
    protocols = listElements(values("Sec-WebSocket-Protocol"))
    let extensions = values("Sec-WebSocket-Extensions").joined(separator: ",")
    var compressions: [WebSocketCompression] = []
    if !extensions.isEmpty {
      guard let elements = WebSocketExtension.list(extensions) else { throw .extensionsInvalid(extensions) }
      for element in elements where element.name == WebSocketCompression.name {
        // RFC 7692 5.1: an invalid offer is declined, and the next one is considered.
        if let compression = try? WebSocketCompression(offer: element) { compressions.append(compression) }
      }
    }
    self.compressions = compressions
  }

  /// Returns the fields of the response that accepts the handshake, or `nil` if the hash is not available.
  package func responseFields(
    _ agreement: WebSocketAgreement, sha1: WebSocketHandshake.SHA1
  ) -> FieldList? {
    guard let accept = WebSocketHandshake.accept(forKey: key, sha1: sha1) else { return nil }
    var fields = [
      Field("Upgrade", "websocket"), Field("Connection", "Upgrade"),
      Field("Sec-WebSocket-Accept", accept),
    ]
    if let name = agreement.subprotocol { fields.append(Field("Sec-WebSocket-Protocol", name)) }
    if let compression = agreement.compression {
      fields.append(Field("Sec-WebSocket-Extensions", compression.response))
    }
    return fields
  }
}

/// Returns the elements of a comma-separated list over all of its fields, without empty ones (RFC 9110 5.6.1).
private func listElements(_ values: [String]) -> [String] {
  values.flatMap { $0.utf8.split(separator: ASCII.comma) }.map { trimmed(String(Substring($0))) }.filter { !$0.isEmpty }
}

private func trimmed(_ text: String) -> String {
  let bytes = text.utf8
  guard let first = bytes.firstIndex(where: { !ASCII.isWhitespace($0) }),
    let last = bytes.lastIndex(where: { !ASCII.isWhitespace($0) })
  else { return "" }
  return String(text[first...last])
}
