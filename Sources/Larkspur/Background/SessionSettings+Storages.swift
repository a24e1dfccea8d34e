import Foundation
import LarkspurTransfers

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
