/// The reason why an opening handshake failed.
package enum WebSocketHandshakeError: Error, Hashable, Sendable {
  // Misuse by the caller. Nothing is sent.

  /// A subprotocol is not a token.
  case subprotocolInvalid(String)
  /// A subprotocol was given twice.
  case subprotocolRepeated(String)
  /// The hash SHA-1 is not available.
  case hashUnavailable

  // Violations by the server.

  /// The status is not 101.
  case statusUnexpected(Int)
  case upgradeMissing
  /// The value of `Upgrade` is not `websocket`.
  case upgradeInvalid(String)
  case connectionMissing
  /// `Connection` does not contain `upgrade`.
  case connectionInvalid(String)
  case acceptMissing
  /// The server's proof that it has read the key is wrong.
  case acceptInvalid(String)
  /// A field that may appear only once appears again.
  case fieldRepeated(String)
  /// The server chose a subprotocol that was not offered.
  case subprotocolNotOffered(String)
  /// The value of `Sec-WebSocket-Extensions` breaks the grammar.
  case extensionsInvalid(String)
  /// The server chose an extension that was not offered.
  case extensionNotOffered(String)
  case extensionRepeated(String)
  case parameterUnknown(String)
  case parameterRepeated(String)
  /// A parameter of permessage-deflate has no value, or one that is not allowed.
  case parameterInvalid(name: String, value: String?)

  // Violations by the client, which a server reports.

  /// `Sec-WebSocket-Key` is missing, repeated, or not the base64 of 16 bytes.
  case keyInvalid
  /// `Sec-WebSocket-Version` is not 13.
  case versionUnsupported
}

extension WebSocketHandshakeError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .subprotocolInvalid(let name): "the subprotocol \"\(name)\" is not a token"
    case .subprotocolRepeated(let name): "the subprotocol \"\(name)\" is given twice"
    case .hashUnavailable: "SHA-1 is not available"
    case .statusUnexpected(let status): "the status is \(status) and not 101"
    case .upgradeMissing: "the response has no Upgrade field"
    case .upgradeInvalid(let value): "Upgrade is \"\(value)\" and not \"websocket\""
    case .connectionMissing: "the response has no Connection field"
    case .connectionInvalid(let value): "Connection is \"\(value)\", without \"upgrade\""
    case .acceptMissing: "the response has no Sec-WebSocket-Accept field"
    case .acceptInvalid(let value): "Sec-WebSocket-Accept is \"\(value)\", which is wrong for the key"
    case .fieldRepeated(let name): "the response has more than one \(name) field"
    case .subprotocolNotOffered(let name): "the server chose the subprotocol \"\(name)\", which was not offered"
    case .extensionsInvalid(let value): "Sec-WebSocket-Extensions is \"\(value)\", which cannot be read"
    case .extensionNotOffered(let name): "the server chose the extension \"\(name)\", which was not offered"
    case .extensionRepeated(let name): "the server chose the extension \"\(name)\" twice"
    case .parameterUnknown(let name): "permessage-deflate has no parameter \"\(name)\""
    case .parameterRepeated(let name): "the parameter \"\(name)\" of permessage-deflate is repeated"
    case .parameterInvalid(let name, let value?): "the parameter \"\(name)\" of permessage-deflate is \"\(value)\""
    case .parameterInvalid(let name, nil): "the parameter \"\(name)\" of permessage-deflate has no value"
    case .keyInvalid: "the request has no valid Sec-WebSocket-Key"
    case .versionUnsupported: "the request is not for version 13"
    }
  }
}
