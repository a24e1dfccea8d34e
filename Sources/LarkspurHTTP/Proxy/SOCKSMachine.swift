import LarkspurBytes

/// Asks a SOCKS proxy for a connection: SOCKS5 (RFC 1928) with user and password (RFC 1929), SOCKS4 and SOCKS4a.
///
/// Theory of operation. The two sides take turns: the proxy gives one answer to each message, and the first bytes of
/// the answer determine its length. The owner sends the bytes of each `send` action, and passes received bytes in, in
/// pieces of any size. The machine takes no byte after the last answer: those bytes belong to the tunnel.
///
/// ```
///  ready --start--> method --none needed--------> reply --granted--> open   (establish)
///    |                 \--password--> login --ok--^ |
///    |                                              |
///    +--SOCKS4: begin--> reply4 --granted-----------|--------------> open
///    +--inexpressible, refused, protocol violation, peerClosed ----> failed (fail)
/// ```
///
/// The machine does not depend on sockets, time, or how names are looked up. Invariants: there is exactly one of
/// `establish` and `fail`, after which the machine takes and sends no bytes; and the machine holds at most the 262
/// bytes of the longest answer (a header of 4 bytes, a name of 255 with its length byte, and a port).
public struct SOCKSMachine: Sendable {
  public enum Target: Hashable, Sendable {
    case address(IPAddress)
    /// A host name, which the proxy looks up.
    case name(String)
  }

  public enum Action: Hashable, Sendable {
    case send([UInt8])
    /// The connection leads to the target from now on.
    case establish
    case fail(SOCKSError)
  }

  public typealias Actions = [Action]

  public enum State: Hashable, Sendable {
    case ready
    /// Waiting for an answer: to the greeting, to user and password, to the request, or to the request of SOCKS4.
    case method, login, reply, reply4
    case open
    case failed
  }

  /// Maximum length of a host name in bytes: its length is sent in one byte (RFC 1928 4). SOCKS4a has no limit of its
  /// own, and this one applies there as well.
  public static let hostBytesMax = 255
  /// Maximum length of a user name in bytes: its length is sent in one byte (RFC 1929 2). SOCKS4 has no limit of its
  /// own, and this one applies there as well.
  public static let userBytesMax = 255
  /// Maximum length of a password in bytes: its length is sent in one byte (RFC 1929 2).
  public static let passwordBytesMax = 255

  public private(set) var state = State.ready
  private let version: UInt8
  private let credentials: UserInfo?
  private let target: Target
  private let port: UInt16
  /// The received bytes of the current answer.
  private var answer: [UInt8] = []

  /// - Parameters:
  ///   - kind: One of the SOCKS kinds. Any other kind counts as SOCKS5.
  ///   - credentials: User and password; SOCKS4 sends only the user.
  public init(_ kind: Proxy.Kind, credentials: UserInfo?, target: Target, port: UInt16) {
    version = kind == .socks4 || kind == .socks4a ? 4 : 5
    self.credentials = credentials
    self.target = target
    self.port = port
  }

  // MARK: - Facts

  public mutating func start(into actions: inout Actions) {
    guard state == .ready else { return }
    if let error = obstacle { return fail(error, &actions) }
    if version == 4 {
      state = .reply4
      actions.append(.send(request4))
    } else {
      state = .method
      // RFC 1928 3: "no authentication" is offered in any case, so that a proxy without authentication can choose it.
      actions.append(.send(credentials == nil ? [5, 1, Method.none] : [5, 2, Method.none, Method.password]))
    }
  }

  /// Reads the bytes of answers from the front of `bytes`.
  ///
  /// - Returns: Number of bytes that belong to answers. The rest belongs to the tunnel.
  public mutating func received(_ bytes: Span<UInt8>, into actions: inout Actions) -> Int {
    var taken = 0
    while isWaiting, taken < bytes.count {
      answer.append(bytes[taken])
      taken += 1
      read(&actions)
    }
    return taken
  }

  /// The proxy has closed its side.
  public mutating func peerClosed(into actions: inout Actions) {
    if isWaiting { fail(.truncated, &actions) }
  }

  private var isWaiting: Bool {
    switch state {
    case .method, .login, .reply, .reply4: true
    case .ready, .open, .failed: false
    }
  }

  // MARK: - Answers

  private enum Method {
    static let none: UInt8 = 0
    static let password: UInt8 = 2
    static let unacceptable: UInt8 = 0xff
  }

  /// Evaluates the latest byte of the answer.
  private mutating func read(_ actions: inout Actions) {
    let byte = answer[answer.count - 1]
    switch (state, answer.count) {
    case (.method, 1), (.reply, 1): if byte != 5 { fail(.versionInvalid(byte), &actions) }
    case (.method, _): choose(byte, &actions)
    // RFC 1929 2: this is the version of the subnegotiation, not of SOCKS.
    case (.login, 1): if byte != 1 { fail(.versionInvalid(byte), &actions) }
    case (.login, _): if byte == 0 { ask(&actions) } else { fail(.credentialsRefused, &actions) }
    // The reason for a refusal is known: the rest of the answer, which a proxy may leave out, does not matter.
    case (.reply, 2): if byte != 0 { fail(.refused(.init(reply: byte)), &actions) }
    case (.reply, 4): if ![1, 3, 4].contains(byte) { fail(.addressTypeInvalid(byte), &actions) }
    case (.reply, let count): if count >= 5, count == replyBytes { establish(&actions) }
    // Answers of SOCKS4 have version 0.
    case (.reply4, 1): if byte != 0 { fail(.versionInvalid(byte), &actions) }
    case (.reply4, 2): if byte != 90 { fail(.refused(.init(reply4: byte)), &actions) }
    case (.reply4, let count): if count == 8 { establish(&actions) }
    case (.ready, _), (.open, _), (.failed, _): break
    }
  }

  private mutating func choose(_ method: UInt8, _ actions: inout Actions) {
    switch (method, credentials) {
    case (Method.none, _): ask(&actions)
    case (Method.password, let credentials?):
      state = .login
      answer = []
      let (user, password) = (credentials.user, credentials.password)
      actions.append(.send([1, UInt8(user.count)] + user + [UInt8(password.count)] + password))
    case (Method.unacceptable, _): fail(.noMethodAccepted, &actions)
    default: fail(.methodInvalid(method), &actions)
    }
  }

  private mutating func ask(_ actions: inout Actions) {
    state = .reply
    answer = []
    actions.append(.send(request5))
  }

  /// Length of the answer in bytes. In an answer with a name, the fifth byte is the length of the name.
  private var replyBytes: Int {
    switch answer[3] {
    case 1: 4 + 4 + 2
    case 4: 4 + 16 + 2
    default: 4 + 1 + Int(answer[4]) + 2
    }
  }

  private mutating func establish(_ actions: inout Actions) {
    state = .open
    answer = []
    actions.append(.establish)
  }

  private mutating func fail(_ error: SOCKSError, _ actions: inout Actions) {
    state = .failed
    answer = []
    actions.append(.fail(error))
  }

  // MARK: - Requests

  /// The reason why the protocol cannot express the request, or `nil`.
  private var obstacle: SOCKSError? {
    if let credentials {
      if credentials.user.count > Self.userBytesMax { return .userTooLong(limit: Self.userBytesMax) }
      if credentials.password.count > Self.passwordBytesMax { return .passwordTooLong(limit: Self.passwordBytesMax) }
      if version == 4, credentials.user.contains(0) { return .userInvalid }
    }
    switch target {
    case .address(.ipv4): return nil
    case .address(.ipv6): return version == 4 ? .noIPv4Address : nil
    case .name(let name):
      if name.utf8.count > Self.hostBytesMax { return .hostTooLong(limit: Self.hostBytesMax) }
      return name.isEmpty || name.utf8.contains(0) ? .hostInvalid : nil
    }
  }

  private var request5: [UInt8] {
    let connect: [UInt8] = [5, 1, 0]
    switch target {
    case .address(.ipv4(let address)): return connect + [1] + bytes(of: address) + bytes(of: port)
    case .address(.ipv6(let high, let low)):
      return connect + [4] + bytes(of: high) + bytes(of: low) + bytes(of: port)
    case .name(let name): return connect + [3, UInt8(name.utf8.count)] + name.utf8 + bytes(of: port)
    }
  }

  private var request4: [UInt8] {
    let user = (credentials?.user ?? []) + [0]
    switch target {
    case .address(.ipv4(let address)): return [4, 1] + bytes(of: port) + bytes(of: address) + user
    // Never sent: `obstacle` refuses IPv6 addresses.
    case .address(.ipv6): return []
    // SOCKS4a: the invalid address 0.0.0.1 announces that a name follows.
    case .name(let name): return [4, 1] + bytes(of: port) + [0, 0, 0, 1] + user + Array(name.utf8) + [0]
    }
  }
}

/// Returns the bytes of a number in network order.
private func bytes<T: FixedWidthInteger>(of number: T) -> [UInt8] {
  stride(from: T.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
}
