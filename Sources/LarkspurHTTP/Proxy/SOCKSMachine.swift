import LarkspurBytes

/// Asks a SOCKS proxy for a connection: SOCKS5 (RFC 1928) with user and password (RFC 1929), SOCKS4 and SOCKS4a.
///
/// Theory of operation. The two sides take turns: each of our messages has one answer, whose length its own first
/// bytes tell. The owner sends what it is given and hands in what comes, in pieces of any size. The machine takes no byte
/// behind the last answer: those are the tunnel's.
///
/// ```
///  ready --begin--> method --none needed--------> reply --granted--> open   (establish)
///    |                 \--password--> login --ok--^ |
///    |                                              |
///    +--SOCKS4: begin--> reply4 --granted-----------|--------------> open
///    +--cannot be asked, refused, against the rules, peerClosed ---> failed (fail)
/// ```
///
/// It does not know: sockets, time, how names are looked up. Invariants: exactly one of `establish` and `fail`; never more
/// than 262 bytes, a name with its length, and a port, are held; after either nothing is taken and nothing said.
public struct SOCKSMachine: Sendable {
  public enum Target: Hashable, Sendable {
    case address(IPAddress)
    /// The proxy is to look it up.
    case name(String)
  }

  public enum Action: Hashable, Sendable {
    case send([UInt8])
    /// From here on the connection leads to the target.
    case establish
    case fail(SOCKSError)
  }

  public typealias Actions = [Action]

  public enum State: Hashable, Sendable {
    case ready
    /// Waits for the answer to the greeting, to user and password, to the request; or to SOCKS4's request.
    case method, login, reply, reply4
    case open
    case failed
  }

  /// One byte tells each length (RFC 1928 4, RFC 1929 2). In SOCKS4 the names have no bound of their own.
  public static let hostBytesMax = 255
  public static let userBytesMax = 255
  public static let passwordBytesMax = 255

  public private(set) var state = State.ready
  private let version: UInt8
  private let credentials: Proxy.Credentials?
  private let target: Target
  private let port: UInt16
  /// What has come of the present answer.
  private var answer: [UInt8] = []

  /// For a proxy of one of the SOCKS kinds. Any other is spoken to as SOCKS5.
  public init(_ kind: Proxy.Kind, credentials: Proxy.Credentials?, target: Target, port: UInt16) {
    version = kind == .socks4 || kind == .socks4a ? 4 : 5
    self.credentials = credentials
    self.target = target
    self.port = port
  }

  // MARK: - Facts

  public mutating func begin(into actions: inout Actions) {
    guard state == .ready else { return }
    if let error = obstacle { return fail(error, &actions) }
    if version == 4 {
      state = .reply4
      actions.append(.send(request4))
    } else {
      state = .method
      // RFC 1928 3: a proxy that wants no authentication is to be free to say so.
      actions.append(.send(credentials == nil ? [5, 1, Method.none] : [5, 2, Method.none, Method.password]))
    }
  }

  /// Takes what belongs to the answers off the front of `bytes`, and returns how many bytes that is.
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

  /// Looks at the answer's latest byte.
  private mutating func read(_ actions: inout Actions) {
    let byte = answer[answer.count - 1]
    switch (state, answer.count) {
    case (.method, 1), (.reply, 1): if byte != 5 { fail(.versionInvalid(byte), &actions) }
    case (.method, _): choose(byte, &actions)
    // RFC 1929 2: the version of the negotiation, not of SOCKS.
    case (.login, 1): if byte != 1 { fail(.versionInvalid(byte), &actions) }
    case (.login, _): if byte == 0 { ask(&actions) } else { fail(.credentialsRefused, &actions) }
    // The reason is known: what may follow, or be left out, does not matter.
    case (.reply, 2): if byte != 0 { fail(.refused(.init(reply: byte)), &actions) }
    case (.reply, 4): if ![1, 3, 4].contains(byte) { fail(.addressTypeInvalid(byte), &actions) }
    case (.reply, let count): if count >= 5, count == replyBytes { establish(&actions) }
    // SOCKS4's answers have version 0.
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

  /// How long the answer is. Its fifth byte is the length of a name, if it has one.
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

  /// Why it cannot be asked for.
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
    // Not asked: an obstacle.
    case .address(.ipv6): return []
    // SOCKS4a: an address that cannot be one says that a name follows.
    case .name(let name): return [4, 1] + bytes(of: port) + [0, 0, 0, 1] + user + Array(name.utf8) + [0]
    }
  }
}

/// In network order.
private func bytes<T: FixedWidthInteger>(of number: T) -> [UInt8] {
  stride(from: T.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
}
