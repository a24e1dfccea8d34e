/// Why a SOCKS proxy made no tunnel.
public enum SOCKSError: Error, Hashable, Sendable {
  // Refusals by the proxy.

  case refused(Refusal)
  /// The proxy accepts none of the authentication methods that were offered.
  case noMethodAccepted
  /// The proxy does not accept the user and the password.
  case credentialsRefused

  // Violations of the protocol by the proxy.

  case versionInvalid(UInt8)
  /// The proxy chose an authentication method that was not offered.
  case methodInvalid(UInt8)
  case addressTypeInvalid(UInt8)
  /// The connection ended before the answer was complete.
  case truncated

  // Requests that SOCKS cannot express, or that exceed a limit. Nothing is sent.

  case userTooLong(limit: Int)
  case passwordTooLong(limit: Int)
  /// The user name holds a NUL, which would end the name in SOCKS4.
  case userInvalid
  case hostTooLong(limit: Int)
  case hostInvalid
  /// The target of SOCKS4 is an IPv6 address, or a host without an IPv4 address: SOCKS4 has only IPv4.
  case noIPv4Address

  /// The proxy's reason for a refusal.
  public enum Refusal: Hashable, Sendable {
    // SOCKS5, RFC 1928 6.
    case generalFailure, notAllowed, networkUnreachable, hostUnreachable, connectionRefused, timeToLiveExpired
    case commandUnsupported, addressTypeUnsupported
    // SOCKS4.
    case rejected, noIdentity, wrongIdentity
    case unknown(UInt8)

    init(reply code: UInt8) {
      self =
        switch code {
        case 1: .generalFailure
        case 2: .notAllowed
        case 3: .networkUnreachable
        case 4: .hostUnreachable
        case 5: .connectionRefused
        case 6: .timeToLiveExpired
        case 7: .commandUnsupported
        case 8: .addressTypeUnsupported
        default: .unknown(code)
        }
    }

    init(reply4 code: UInt8) {
      self =
        switch code {
        case 91: .rejected
        case 92: .noIdentity
        case 93: .wrongIdentity
        default: .unknown(code)
        }
    }

    /// Whether a request for another address of the same host may succeed.
    public var dependsOnAddress: Bool {
      switch self {
      case .networkUnreachable, .hostUnreachable, .connectionRefused, .timeToLiveExpired, .addressTypeUnsupported,
        .generalFailure, .rejected, .notAllowed:
        true
      case .commandUnsupported, .noIdentity, .wrongIdentity, .unknown: false
      }
    }
  }
}

extension SOCKSError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .refused(let refusal): "the proxy refuses: \(refusal)"
    case .noMethodAccepted: "the proxy accepts no method of authentication that is on offer"
    case .credentialsRefused: "the proxy does not accept the user and the password"
    case .versionInvalid(let version): "the proxy does not speak SOCKS as it should: its version is \(version)"
    case .methodInvalid(let method): "the proxy chose method \(method), which was not offered"
    case .addressTypeInvalid(let type): "the proxy's address is of the unknown type \(type)"
    case .truncated: "the proxy closed the connection before its answer was complete"
    case .userTooLong(let limit): "the user's name is longer than \(limit) bytes"
    case .passwordTooLong(let limit): "the password is longer than \(limit) bytes"
    case .userInvalid: "the user's name holds a NUL"
    case .hostTooLong(let limit): "the host's name is longer than \(limit) bytes"
    case .hostInvalid: "the host's name is empty or holds a NUL"
    case .noIPv4Address: "the host has no IPv4 address, and SOCKS4 knows no other"
    }
  }
}

extension SOCKSError.Refusal: CustomStringConvertible {
  public var description: String {
    switch self {
    case .generalFailure: "general failure"
    case .notAllowed: "not allowed by its rules"
    case .networkUnreachable: "network unreachable"
    case .hostUnreachable: "host unreachable"
    case .connectionRefused: "connection refused"
    case .timeToLiveExpired: "time to live expired"
    case .commandUnsupported: "it does not know the command"
    case .addressTypeUnsupported: "it does not know the type of address"
    case .rejected: "rejected or failed"
    case .noIdentity: "it could not ask identd who we are"
    case .wrongIdentity: "identd says that we are somebody else"
    case .unknown(let code): "code \(code)"
    }
  }
}
