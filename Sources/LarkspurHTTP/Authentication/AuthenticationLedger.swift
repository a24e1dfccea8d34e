/// A session's memory of authentication: the credential that each protection space of each target accepts, and the
/// number of requests that each nonce was used for.
///
/// Theory of operation. The ledger turns an answer into the text of a field, because each response to a nonce
/// increments its count (RFC 7616 3.4), whichever request carries it. The ledger keeps an answer that was accepted, and
/// later requests into that protection space carry it preemptively: Basic at and below the directory of the
/// request that it authorized (RFC 7617 2.2), Digest in the domain that the challenge named (RFC 7616 3.3). A proxy is
/// one space as a whole. A refusal removes the answer.
///
/// All entries are kept by target: role, scheme, host and port. Nothing that one target has sent or received reaches
/// another.
public struct AuthenticationLedger: Sendable {
  // Without these limits a hostile server, or a client that visits many names of a wildcard domain, could fill the
  // memory. When a limit is exceeded, the oldest element is removed.

  /// Maximum number of targets with stored answers.
  public static let targetsMax = 256
  /// Maximum number of protection spaces of one target.
  public static let spacesMax = 16
  /// Maximum number of directories of one space of the Basic scheme.
  public static let directoriesMax = 32
  /// Maximum number of nonces whose uses are counted.
  public static let noncesMax = 512

  /// An answer that a request carries before any challenge.
  public struct Preemptive: Hashable, Sendable {
    public let value: String
    public let answer: AuthenticationAnswer
  }

  fileprivate struct Entry {
    var answer: AuthenticationAnswer
    /// For Basic: the directories (each a path up to its last slash) of the requests that the credential has
    /// authorized. The latest is last.
    var directories: [String] = []
  }

  private struct NonceKey: Hashable {
    let target: AuthenticationTarget
    let realm: String
    let nonce: String
  }

  private struct NonceUse {
    var count: UInt32 = 0
    /// The nonces of the session key, for a `-sess` algorithm (RFC 7616 3.4.2).
    var keyNonces: DigestResponse.KeyNonces?
  }

  private let hash: DigestHash.Function
  private var entries: [AuthenticationTarget: [Entry]] = [:]
  /// The keys of `entries`, oldest first.
  private var targets: [AuthenticationTarget] = []
  private var uses: [NonceKey: NonceUse] = [:]
  private var nonces: [NonceKey] = []

  public init(hash: @escaping DigestHash.Function) { self.hash = hash }

  /// Whether nothing is stored, so that no request can carry a preemptive answer.
  public var isEmpty: Bool { entries.isEmpty }

  // MARK: - Fields

  /// Makes the value of `Authorization` or `Proxy-Authorization`, and counts the use of a Digest nonce.
  ///
  /// - Parameter clientNonce: A random text, new for each call.
  /// - Returns: The value, or `nil` if the answer cannot be written.
  public mutating func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget,
    clientNonce: String
  ) -> String? {
    switch answer.offer {
    case .basic: BasicAuthorization.value(answer.credential)
    case .digest(let challenge): digest(challenge, answer.credential, request, target, clientNonce)
    }
  }

  /// Returns the answer that the request may carry before any challenge, from the deepest known protection space that
  /// contains the request.
  ///
  /// - Parameter clientNonce: A random text, new for each call.
  /// - Returns: The answer, or `nil` if no known space contains the request or the answer cannot be written.
  public mutating func preemptive(
    for request: AuthenticatedRequest, to target: AuthenticationTarget, clientNonce: String
  ) -> Preemptive? {
    guard let known = entries[target] else { return nil }
    var best: (answer: AuthenticationAnswer, depth: Int)?
    for entry in known {
      guard let depth = entry.depth(of: request, to: target), depth >= best?.depth ?? 0 else { continue }
      best = (entry.answer, depth)
    }
    guard let answer = best?.answer,
      let value = authorization(answer, for: request, to: target, clientNonce: clientNonce)
    else { return nil }
    return Preemptive(value: value, answer: answer)
  }

  private mutating func digest(
    _ challenge: DigestChallenge, _ credential: PasswordCredential, _ request: AuthenticatedRequest,
    _ target: AuthenticationTarget, _ clientNonce: String
  ) -> String? {
    let key = NonceKey(target: target, realm: challenge.realm, nonce: challenge.nonce)
    var use = uses[key] ?? NonceUse()
    // The count has eight hexadecimal digits. After the last value the request carries no answer, and the server's
    // challenge brings a new nonce.
    guard use.count < .max else { return nil }
    use.count += 1
    var clientNonce = clientNonce
    if challenge.algorithm.isSession {
      // A server may compute the session key once, or for each request from the client nonce in it. When all requests
      // use one client nonce, both ways give the same key.
      let nonces = use.keyNonces ?? .init(server: challenge.nonce, client: clientNonce)
      use.keyNonces = nonces
      clientNonce = nonces.client
    }
    let response = DigestResponse(
      to: challenge, of: credential, for: request, nonceCount: use.count, clientNonce: clientNonce,
      keyNonces: use.keyNonces)
    guard let value = response.authorization(hash: hash) else { return nil }
    count(use, of: key)
    return value
  }

  private mutating func count(_ use: NonceUse, of key: NonceKey) {
    if uses.updateValue(use, forKey: key) == nil {
      nonces.append(key)
      if nonces.count > Self.noncesMax { uses[nonces.removeFirst()] = nil }
    }
  }

  // MARK: - Memory

  /// Stores an answer that the target has accepted.
  ///
  /// - Parameter info: The values of `Authentication-Info` or `Proxy-Authentication-Info`.
  public mutating func remember(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget,
    info: [String] = []
  ) {
    var entry = take(answer.offer.space, of: target) ?? Entry(answer: answer)
    // The directories belong to the other user's credential.
    if entry.answer.credential != answer.credential { entry.directories = [] }
    entry.answer = answer
    switch answer.offer {
    case .basic: entry.add(directory: request.directory)
    case .digest(let challenge): entry.answer.offer = .digest(renewed(challenge, AuthenticationInfo(info), target))
    }
    if entries[target] == nil {
      targets.append(target)
      if targets.count > Self.targetsMax { entries[targets.removeFirst()] = nil }
    }
    entries[target, default: []].append(entry)
    if let count = entries[target]?.count, count > Self.spacesMax { entries[target]?.removeFirst() }
  }

  /// Removes an answer that the target has refused. If the space has accepted another credential meanwhile, that one
  /// stays.
  public mutating func forget(_ answer: AuthenticationAnswer, of target: AuthenticationTarget) {
    guard let entry = take(answer.offer.space, of: target) else { return }
    if entry.answer.credential != answer.credential { entries[target, default: []].append(entry) }
    removeIfEmpty(target)
  }

  /// A stored credential, with its target and its protection space.
  public struct Known: Hashable, Sendable {
    public let target: AuthenticationTarget
    public let space: AuthenticationOffer.Space
    public let credential: PasswordCredential
  }

  public var known: Set<Known> {
    Set(entries.flatMap { target, entries in entries.map { $0.known(to: target) } })
  }

  /// Removes the answers that have one of these credentials in one of these spaces.
  public mutating func forget(_ known: Set<Known>) {
    for target in targets {
      entries[target]?.removeAll { known.contains($0.known(to: target)) }
      removeIfEmpty(target)
    }
  }

  public mutating func removeAll() {
    entries = [:]
    targets = []
    uses = [:]
    nonces = []
  }

  private mutating func take(_ space: AuthenticationOffer.Space, of target: AuthenticationTarget) -> Entry? {
    guard let index = entries[target]?.firstIndex(where: { $0.answer.offer.space == space }) else { return nil }
    return entries[target]?.remove(at: index)
  }

  private mutating func removeIfEmpty(_ target: AuthenticationTarget) {
    guard entries[target]?.isEmpty == true else { return }
    entries[target] = nil
    targets.removeAll { $0 == target }
  }

  /// Returns the challenge with the nonce that the server wants next (RFC 7616 3.5).
  private mutating func renewed(
    _ challenge: DigestChallenge, _ info: AuthenticationInfo, _ target: AuthenticationTarget
  ) -> DigestChallenge {
    guard let nonce = info.nextNonce, nonce != challenge.nonce else { return challenge }
    let old = NonceKey(target: target, realm: challenge.realm, nonce: challenge.nonce)
    let new = NonceKey(target: target, realm: challenge.realm, nonce: nonce)
    // RFC 7616 3.4.2: the session key keeps its first nonces until there is a new challenge.
    if let keyNonces = uses[old]?.keyNonces, uses[new] == nil { count(NonceUse(keyNonces: keyNonces), of: new) }
    var renewed = challenge
    renewed.nonce = nonce
    return renewed
  }
}

extension AuthenticationLedger.Entry {
  fileprivate func known(to target: AuthenticationTarget) -> AuthenticationLedger.Known {
    .init(target: target, space: answer.offer.space, credential: answer.credential)
  }

  fileprivate mutating func add(directory: String?) {
    guard let directory else { return }
    guard !directories.contains(where: { directory.hasPrefix($0) }) else { return }
    directories.removeAll { $0.hasPrefix(directory) }
    directories.append(directory)
    if directories.count > AuthenticationLedger.directoriesMax { directories.removeFirst() }
  }

  /// Returns the length of the path prefix at which the space that contains the request begins, or `nil` if this
  /// entry's space does not contain the request.
  fileprivate func depth(of request: AuthenticatedRequest, to target: AuthenticationTarget) -> Int? {
    // A proxy is one space (RFC 7616 3.3, RFC 7617 2.2).
    if target.role == .proxy { return 0 }
    guard let path = request.path else { return nil }
    switch answer.offer {
    case .basic: return directories.filter { path.hasPrefix($0) }.map(\.utf8.count).max()
    case .digest(let challenge):
      if challenge.domain.isEmpty { return 0 }
      return challenge.domain.compactMap { target.path(of: $0) }.filter { path.hasPrefix($0) }.map(\.utf8.count).max()
    }
  }
}

extension AuthenticatedRequest {
  /// The path up to and including its last slash (RFC 7617 2.2), or `nil` if the request has no usable path.
  fileprivate var directory: String? {
    guard let path, let slash = path.utf8.lastIndex(of: ASCII.slash) else { return nil }
    return String(path[...slash])
  }
}

extension AuthenticationTarget {
  /// Returns the path of a URI in a challenge's `domain`, or `nil` if the URI is of another origin. RFC 7616 3.3 lets a
  /// server name other origins, but then that server could make the client send its nonces to them.
  fileprivate func path(of uri: String) -> String? {
    guard let uri = LocationValue.reference(uri) else { return nil }
    if uri.utf8.first == ASCII.slash { return uri.hasPrefix("//") ? nil : uri }
    guard let colon = uri.firstIndex(of: ":"), uri[colon...].hasPrefix("://"),
      uri[..<colon].lowercased() == scheme
    else { return nil }
    let rest = uri[colon...].dropFirst(3)
    let end = rest.firstIndex(of: "/") ?? rest.endIndex
    let name = host.contains(":") ? "[\(host)]" : host
    let origin = rest[..<end].lowercased()
    guard origin == "\(name):\(port)" || origin == name && port == (scheme == "https" ? 443 : 80) else { return nil }
    return end == rest.endIndex ? "/" : String(rest[end...])
  }
}
