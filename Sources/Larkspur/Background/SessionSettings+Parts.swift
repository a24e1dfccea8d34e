import Foundation
import LarkspurTLS
import LarkspurTransfers

extension SessionSettings {
  /// The trust settings of a session.
  struct TrustSettings: Codable {
    enum Roots: String, Codable {
      case system, systemAnd, only
    }

    struct Host: Codable {
      var name: String
      var includesSubdomains: Bool
      /// The pinned certificates, in DER.
      var certificates: [[UInt8]]
      /// The SHA-256 hashes of pinned keys.
      var keys: [[UInt8]]
      var looksAtLeafOnly: Bool
      var reportsOnly: Bool
    }

    /// A client certificate with its key.
    struct Identity: Codable {
      /// The certificates in DER, the client's own first.
      var certificates: [[UInt8]]
      /// The key in DER, not encrypted.
      var key: [UInt8]
      /// The files that the runner reads in place of the values above, or `nil`.
      var files: Files?

      struct Files: Codable {
        var certificates: String
        var key: String?
        var password: String?
      }
    }

    var roots: Roots
    /// Further roots, in DER.
    var certificates: [[UInt8]]
    /// Absolute paths of files with further roots.
    var rootFiles: [String]
    /// The program's file of the system's roots, or `nil` for OpenSSL's own.
    var rootFile: String?
    /// The program's directories of the system's roots, or `nil` for OpenSSL's own.
    var rootDirectories: String?
    var revocationLists: [[UInt8]]
    var pins: [Host]
    var identity: Identity?
    var allowsAnyCertificate: Bool
    var allowsLegacyKeyExchange: Bool
    /// The absolute path of the file for keys, or `nil`.
    var keyLogFile: String?

    init(_ trust: TLSTrustSettings, _ leftBehind: inout [String]) {
      switch trust.roots {
      case .system: (roots, certificates) = (.system, [])
      case .systemAnd(let list): (roots, certificates) = (.systemAnd, list.map { Array($0.der) })
      case .only(let list): (roots, certificates) = (.only, list.map { Array($0.der) })
      }
      rootFiles = trust.rootFiles.map(Self.absolute)
      let places = trust.rootPlaces ?? .ofEnvironment
      rootFile = places.file.map(Self.absolute)
      rootDirectories = places.directories.map { list in
        list.split(separator: ":").map { Self.absolute(String($0)) }.joined(separator: ":")
      }
      revocationLists = trust.revocationLists.map { Array($0) }
      pins = trust.pins.map { Host($0.inner) }
      identity = trust.identity.flatMap { Identity($0) }
      if trust.identity != nil, identity == nil {
        leftBehind.append("the client certificate of tlsTrustSettings, whose key cannot be exported")
      }
      allowsAnyCertificate = trust.dangerouslyAllowsAnyCertificate
      allowsLegacyKeyExchange = trust.dangerouslyAllowsLegacyKeyExchange
      keyLogFile = trust.dangerousKeyLogFile.map(Self.absolute)
      if trust.pinMismatched != nil { leftBehind.append("the function pinMismatched of tlsTrustSettings") }
      if trust.fileFailed != nil { leftBehind.append("the function fileFailed of tlsTrustSettings") }
      if trust.provideIdentity != nil { leftBehind.append("the function provideIdentity of tlsTrustSettings") }
    }

    /// Returns the settings. A part that cannot be read is an error, never a weaker check.
    func settings() throws(TransferValueError) -> TLSTrustSettings {
      var trust = TLSTrustSettings()
      let list = try Self.read(certificates)
      switch roots {
      case .system: trust.roots = .system
      case .systemAnd: trust.roots = .systemAnd(list)
      case .only: trust.roots = .only(list)
      }
      trust.rootFiles = rootFiles
      trust.rootPlaces = RootPlaces(file: rootFile, directories: rootDirectories)
      trust.revocationLists = revocationLists.map { Data($0) }
      for pin in pins { trust.pins.append(try pin.host()) }
      trust.identity = try identity?.identity()
      trust.dangerouslyAllowsAnyCertificate = allowsAnyCertificate
      trust.dangerouslyAllowsLegacyKeyExchange = allowsLegacyKeyExchange
      trust.dangerousKeyLogFile = keyLogFile
      return trust
    }

    /// Makes the path absolute, because the service has a different working directory.
    static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).path }

    fileprivate static func read(_ list: [[UInt8]]) throws(TransferValueError) -> [TLSCertificate] {
      var certificates: [TLSCertificate] = []
      for der in list {
        guard let certificate = Certificate(der: der) else { throw .damaged("a certificate cannot be read") }
        certificates.append(TLSCertificate(certificate))
      }
      return certificates
    }
  }
}

extension SessionSettings.TrustSettings.Host {
  fileprivate init(_ host: PinPolicy.Host) {
    name = host.name
    includesSubdomains = host.includesSubdomains
    certificates = []
    keys = []
    for pin in host.pins {
      switch pin {
      case .certificate(let certificate): certificates.append(Array(certificate.der))
      case .publicKey(let key): keys.append(Array(SHA256Digest.of(key)))
      case .publicKeySHA256(let digest): keys.append(Array(digest))
      }
    }
    // Sets have no order: equal pins have equal bytes.
    certificates.sort { $0.lexicographicallyPrecedes($1) }
    keys.sort { $0.lexicographicallyPrecedes($1) }
    looksAtLeafOnly = host.looksAtLeafOnly
    reportsOnly = host.reportsOnly
  }

  fileprivate func host() throws(TransferValueError) -> PinnedHost {
    var pins = Set(try SessionSettings.TrustSettings.read(certificates).map { CertificatePin.certificate($0) })
    pins.formUnion(keys.map { CertificatePin.publicKeySHA256(Data($0)) })
    let host = PinnedHost(
      name, includesSubdomains: includesSubdomains, pins: pins, looksAtLeafOnly: looksAtLeafOnly,
      reportsOnly: reportsOnly)
    return try SessionSettings.known(host, "pinned host")
  }
}

extension SessionSettings.TrustSettings.Identity {
  /// Returns `nil` if the key cannot be exported.
  init?(_ identity: ClientIdentity) {
    if let files = identity.inner.files {
      (key, certificates) = ([], [])
      let absolute = SessionSettings.TrustSettings.absolute
      self.files = Files(
        certificates: absolute(files.certificates), key: files.key.map(absolute), password: files.password)
      return
    }
    key = Array(identity.inner.keyDER)
    certificates = ([identity.certificate] + identity.chain).map { Array($0.der) }
    if key.isEmpty { return nil }
  }

  func identity() throws(TransferValueError) -> ClientIdentity {
    if let files {
      do throws(ClientIdentity.Failure) {
        return try ClientIdentity(
          certificateFile: files.certificates, keyFile: files.key, password: files.password)
      } catch {
        throw .damaged("the client certificate \(files.certificates): \(error)")
      }
    }
    guard let first = certificates.first else { throw .damaged("the client certificate is missing") }
    let chain = try SessionSettings.TrustSettings.read(Array(certificates.dropFirst()))
    do throws(ClientIdentity.Failure) {
      let identity = try ClientIdentity(certificates: Data(first), key: Data(key))
      return chain.isEmpty ? identity : identity.with(chain: chain)
    } catch {
      throw .damaged("the client certificate: \(error)")
    }
  }
}

extension SessionSettings.Cookies {
  init(_ storage: HTTPCookieStorage, _ leftBehind: inout [String]) {
    if type(of: storage) != HTTPCookieStorage.self {
      leftBehind.append("the program's own class of httpCookieStorage")
    }
    path = storage.disk?.path
    acceptPolicy = RawSetting(wrappedValue: storage.cookieAcceptPolicy)
  }

  func storage() -> HTTPCookieStorage {
    let storage = HTTPCookieStorage(disk: path.map { CookieDisk(path: $0) })
    storage.cookieAcceptPolicy = acceptPolicy.wrappedValue
    return storage
  }
}

extension SessionSettings.Credentials {
  init(_ storage: URLCredentialStorage, _ leftBehind: inout [String]) {
    if type(of: storage) != URLCredentialStorage.self {
      leftBehind.append("the program's own class of urlCredentialStorage")
    }
    path = storage.path
    values = []
    for (space, credentials) in storage.allCredentials {
      let first = storage.defaultCredential(for: space)
      for credential in credentials.values where path == nil || !credential.isPermanent {
        if let record = CredentialRecord(credential, space, isDefault: first == credential) {
          values.append(record)
        } else if !leftBehind.contains(Self.identities) {
          leftBehind.append(Self.identities)
        }
      }
    }
    // Equal storages have equal bytes.
    values.sort()
  }

  private static let identities = "the client certificates of urlCredentialStorage"

  func storage() throws(TransferValueError) -> URLCredentialStorage {
    let storage = URLCredentialStorage(file: path.map(CredentialFile.init(path:)))
    for value in values {
      let persistence = try SessionSettings.known(
        URLCredential.Persistence(rawValue: value.persistence), "persistence of credentials")
      let credential = URLCredential(user: value.user, password: value.password, persistence: persistence)
      if value.isDefault {
        storage.setDefaultCredential(credential, for: value.space)
      } else {
        storage.set(credential, for: value.space)
      }
    }
    return storage
  }
}
