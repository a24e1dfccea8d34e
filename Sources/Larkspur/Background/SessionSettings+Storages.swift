import Foundation

extension SessionSettings.Cookies {
  init(_ storage: HTTPCookieStorage, _ leftBehind: inout [String]) {
    if type(of: storage) != HTTPCookieStorage.self {
      leftBehind.append("the program's own class of httpCookieStorage")
    } else if storage.disk == nil {
      leftBehind.append("the cookies in memory of httpCookieStorage")
    }
    path = storage.disk?.path
    acceptPolicy = storage.cookieAcceptPolicy.rawValue
  }

  func storage() throws(SessionSettings.Failure) -> HTTPCookieStorage {
    let storage = HTTPCookieStorage(disk: path.map { CookieDisk(path: $0) })
    storage.cookieAcceptPolicy = try SessionSettings.policy(acceptPolicy)
    return storage
  }
}

extension SessionSettings.Credentials {
  /// A credential with a password, and its protection space.
  struct Credential: Codable {
    var host: String
    var port: Int
    var `protocol`: String?
    var proxyType: String?
    var isProxy: Bool
    var realm: String?
    var method: String
    var user: String
    var password: String
    var persistence: UInt
    var isDefault: Bool

    /// Orders the values, so that equal storages have equal bytes.
    var order: [String] { [host, String(port), `protocol` ?? "", proxyType ?? "", realm ?? "", method, user] }

    var space: URLProtectionSpace {
      isProxy
        ? URLProtectionSpace(proxyHost: host, port: port, type: proxyType, realm: realm, authenticationMethod: method)
        : URLProtectionSpace(host: host, port: port, protocol: `protocol`, realm: realm, authenticationMethod: method)
    }
  }

  init(_ storage: URLCredentialStorage, _ leftBehind: inout [String]) {
    if type(of: storage) != URLCredentialStorage.self {
      leftBehind.append("the program's own class of urlCredentialStorage")
    }
    path = storage.path
    values = []
    for (space, credentials) in storage.allCredentials {
      let first = storage.defaultCredential(for: space)
      for credential in credentials.values where path == nil || !credential.isPermanent {
        guard let user = credential.user, let password = credential.password else { continue }
        values.append(
          Credential(
            host: space.host, port: space.port, protocol: space.protocol, proxyType: space.proxyType,
            isProxy: space.isProxy(), realm: space.realm, method: space.authenticationMethod, user: user,
            password: password, persistence: credential.persistence.rawValue, isDefault: first == credential))
      }
    }
    values.sort { $0.order.lexicographicallyPrecedes($1.order) }
  }

  func storage() throws(SessionSettings.Failure) -> URLCredentialStorage {
    let storage = URLCredentialStorage(file: path.map(CredentialFile.init(path:)))
    for value in values {
      guard 0...Int(UInt16.max) ~= value.port else { throw .damaged("a port is not valid") }
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

extension SessionSettings {
  typealias Credential = Credentials.Credential
}
