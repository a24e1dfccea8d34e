/// Why a SOCKS proxy made no tunnel.
public enum SOCKSError: Error, Hashable, Sendable {
  // The proxy's answers.

  case refused(Refusal)
  /// It takes none of the methods of authentication that we can offer.
  case noMethodAccepted
  /// It does not take the user and the password.
  case credentialsRefused

  // What the proxy does against the rules.

  case versionInvalid(UInt8)
  /// It chose a method of authentication that was not offered.
  case methodInvalid(UInt8)
  case addressTypeInvalid(UInt8)
  /// The connection ended before the answer was complete.
  case truncated

  // What cannot be asked.

  case userTooLong(limit: Int)
  case passwordTooLong(limit: Int)
  /// The user's name holds a NUL, which would end it (SOCKS4).
  case userInvalid
  case hostTooLong(limit: Int)
  case hostInvalid
  /// SOCKS4 knows only IPv4, and the host has no such address.
  case noIPv4Address

  /// What the proxy says of its reason.
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

    /// Whether another address of the same host may fare better.
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
