import Foundation
import Synchronization
import Testing

@testable import Larkspur

@Suite struct URLCredentialStorageTests {
  static let space = URLProtectionSpaceTests.space()
  static let other = URLProtectionSpaceTests.space(realm: "other")

  static func credential(
    _ user: String = "u", _ password: String = "p", _ persistence: URLCredential.Persistence = .forSession
  ) -> URLCredential {
    URLCredential(user: user, password: password, persistence: persistence)
  }

  @Test func keepsByUser() {
    let storage = URLCredentialStorage()
    #expect(storage.credentials(for: Self.space) == nil && storage.allCredentials.isEmpty)
    storage.set(Self.credential("u", "old"), for: Self.space)
    storage.set(Self.credential("u", "new"), for: Self.space)
    storage.set(Self.credential("v"), for: Self.space)
    #expect(storage.credentials(for: Self.space) == ["u": Self.credential("u", "new"), "v": Self.credential("v")])
    #expect(storage.credentials(for: Self.other) == nil)
    #expect(storage.allCredentials.keys.map(\.realm) == ["r"])
    // A credential with another password or another persistence is not equal, so it is not removed.
    storage.remove(Self.credential("u", "old"), for: Self.space)
    storage.remove(Self.credential("u", "new", .permanent), for: Self.space)
    #expect(storage.credentials(for: Self.space)?.count == 2)
    storage.remove(Self.credential("u", "new"), for: Self.space)
    #expect(storage.credentials(for: Self.space)?.keys.sorted() == ["v"])
    storage.remove(Self.credential("v"), for: Self.space)
    storage.remove(Self.credential("v"), for: Self.other)
    #expect(storage.allCredentials.isEmpty)
  }

  @Test func defaults() {
    let storage = URLCredentialStorage()
    #expect(storage.defaultCredential(for: Self.space) == nil)
    // The first credential of a space is the default until `setDefaultCredential` chooses another.
    storage.set(Self.credential("u"), for: Self.space)
    storage.set(Self.credential("w"), for: Self.space)
    #expect(storage.defaultCredential(for: Self.space) == Self.credential("u"))
    storage.remove(Self.credential("w"), for: Self.space)
    storage.setDefaultCredential(Self.credential("v"), for: Self.space)
    #expect(storage.defaultCredential(for: Self.space) == Self.credential("v"))
    #expect(storage.credentials(for: Self.space)?.count == 2)
    // A new password for the default user also replaces the default credential.
    storage.set(Self.credential("v", "q"), for: Self.space)
    #expect(storage.defaultCredential(for: Self.space)?.password == "q")
    storage.remove(Self.credential("v", "q"), for: Self.space)
    #expect(storage.defaultCredential(for: Self.space) == nil)
    #expect(storage.credentials(for: Self.space)?.count == 1)
    // The space already has a credential, so a new one does not become the default.
    storage.set(Self.credential("x"), for: Self.space)
    #expect(storage.defaultCredential(for: Self.space) == nil)
  }

  @Test func whatIsNotKept() {
    let storage = URLCredentialStorage()
    for persistence in [URLCredential.Persistence.none, .synchronizable] {
      storage.set(Self.credential("u", "p", persistence), for: Self.space)
      storage.setDefaultCredential(Self.credential("u", "p", persistence), for: Self.space)
    }
    #expect(storage.allCredentials.isEmpty && storage.defaultCredential(for: Self.space) == nil)
  }

  @Test func changesAreAnnounced() {
    let storage = URLCredentialStorage()
    let count = Mutex(0)
    let observer = NotificationCenter.default.addObserver(
      forName: .NSURLCredentialStorageChanged, object: storage, queue: nil
    ) { note in
      // An observer can call the storage while the notification is posted.
      #expect((note.object as? URLCredentialStorage)?.allCredentials != nil)
      count.withLock { $0 += 1 }
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    storage.set(Self.credential(), for: Self.space)
    storage.set(Self.credential(), for: Self.space)
    storage.set(Self.credential("other"), for: Self.space)
    storage.setDefaultCredential(Self.credential("other"), for: Self.space)
    storage.remove(Self.credential("nobody"), for: Self.space)
    storage.remove(Self.credential(), for: Self.space)
    #expect(count.withLock { $0 } == 4)
  }

  // MARK: - The file

  static func storage(_ path: String) -> URLCredentialStorage { URLCredentialStorage(file: CredentialFile(path: path)) }

  @Test func permanentOnesOutliveTheProcess() throws {
    let directory = try AuthenticationDirectory()
    let path = directory.file("a/b/credentials.json")
    let first = Self.storage(path)
    let proxy = URLProtectionSpace(
      proxyHost: "p", port: 1, type: NSURLProtectionSpaceHTTPProxy, realm: nil, authenticationMethod: nil)
    first.set(Self.credential("session"), for: Self.space)
    #expect(!FileManager.default.fileExists(atPath: path))
    first.set(Self.credential("u", "p\u{e4}", .permanent), for: Self.space)
    first.setDefaultCredential(Self.credential("v", "q", .permanent), for: Self.space)
    first.set(Self.credential("u", "p", .permanent), for: proxy)
    let second = Self.storage(path)
    #expect(second.credentials(for: Self.space)?.keys.sorted() == ["u", "v"])
    #expect(second.credentials(for: Self.space)?["u"]?.password == "p\u{e4}")
    #expect(second.defaultCredential(for: Self.space) == Self.credential("v", "q", .permanent))
    #expect(second.credentials(for: proxy)?.count == 1)
    // The file and the directories created for it are accessible to their owner only.
    let modes = try ["a/b/credentials.json", "a/b"].map { name in
      try FileManager.default.attributesOfItem(atPath: directory.file(name))[.posixPermissions] as? NSNumber
    }
    #expect(modes == [0o600, 0o700])
    // Writing leaves the file and its lock file behind, and no temporary file.
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.file("a/b"))
    #expect(names.sorted() == ["credentials.json", "credentials.json.lock"])
  }

  @Test func processesSeeEachOther() throws {
    let directory = try AuthenticationDirectory()
    let (one, two) = (Self.storage(directory.file("c")), Self.storage(directory.file("c")))
    one.set(Self.credential("u", "p", .permanent), for: Self.space)
    two.set(Self.credential("v", "p", .permanent), for: Self.space)
    two.set(Self.credential("only here"), for: Self.space)
    #expect(one.credentials(for: Self.space)?.keys.sorted() == ["u", "v"])
    let withdrawals = two.withdrawals.load(ordering: .relaxed)
    one.remove(Self.credential("u", "p", .permanent), for: Self.space)
    #expect(two.credentials(for: Self.space)?.keys.sorted() == ["only here", "v"])
    #expect(two.withdrawals.load(ordering: .relaxed) > withdrawals)
    // A credential whose persistence changes to the session's leaves the file but stays in this storage.
    two.set(Self.credential("v"), for: Self.space)
    #expect(one.allCredentials.isEmpty)
    try FileManager.default.removeItem(atPath: directory.file("c"))
    #expect(two.credentials(for: Self.space)?.count == 2)
  }

  /// Storages that write one file at once, as several processes do, lose no credential.
  @Test func writersDoNotOverwriteEachOther() throws {
    let directory = try AuthenticationDirectory()
    let path = directory.file("private/c")
    DispatchQueue.concurrentPerform(iterations: 4) { writer in
      let storage = Self.storage(path)
      for number in 0..<10 { storage.set(Self.credential("\(writer).\(number)", "p", .permanent), for: Self.space) }
    }
    #expect(Self.storage(path).credentials(for: Self.space)?.count == 40)
  }

  @Test func everythingIsForgotten() throws {
    let directory = try AuthenticationDirectory()
    let storage = Self.storage(directory.file("c"))
    storage.set(Self.credential("u", "p", .permanent), for: Self.space)
    storage.set(Self.credential("v"), for: Self.space)
    storage.removeAll()
    #expect(storage.allCredentials.isEmpty && Self.storage(directory.file("c")).allCredentials.isEmpty)
  }

  @Test(arguments: ["", "no JSON", "{}", "{\"version\":1,\"credentials\":[{}]}", "[1]"])
  func filesThatAreNotOurs(text: String) throws {
    let directory = try AuthenticationDirectory()
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("c")))
    let storage = Self.storage(directory.file("c"))
    #expect(storage.allCredentials.isEmpty)
    storage.set(Self.credential("u", "p", .permanent), for: Self.space)
    #expect(Self.storage(directory.file("c")).credentials(for: Self.space)?.count == 1)
  }

  /// A file of an unknown version is not overwritten, since it may belong to a newer release.
  @Test func filesThatAreNotOursToWrite() throws {
    let directory = try AuthenticationDirectory()
    let text = "{\"version\":2,\"secrets\":[]}"
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("c")))
    let storage = Self.storage(directory.file("c"))
    storage.set(Self.credential("u", "p", .permanent), for: Self.space)
    #expect(storage.credentials(for: Self.space)?.count == 1)
    #expect(try String(contentsOfFile: directory.file("c"), encoding: .utf8) == text)
  }

  /// Records with a persistence that is never written to a file are skipped.
  @Test func strangeRecords() throws {
    let directory = try AuthenticationDirectory()
    Self.storage(directory.file("c")).set(Self.credential("u", "p", .permanent), for: Self.space)
    let text = try String(contentsOfFile: directory.file("c"), encoding: .utf8)
    for number in ["0", "1", "99"] {
      let changed = text.replacing("\"persistence\" : 2", with: "\"persistence\" : \(number)")
      #expect(changed != text)
      try Data(changed.utf8).write(to: URL(fileURLWithPath: directory.file("d")))
      #expect(Self.storage(directory.file("d")).allCredentials.isEmpty)
    }
  }

  /// A file of `bytesMax` bytes is read; one with one byte more is not.
  @Test func longFiles() throws {
    let directory = try AuthenticationDirectory()
    Self.storage(directory.file("c")).set(Self.credential("u", "p", .permanent), for: Self.space)
    var data = try Data(contentsOf: URL(fileURLWithPath: directory.file("c")))
    data.append(Data(repeating: UInt8(ascii: " "), count: CredentialFile.bytesMax - data.count))
    try data.write(to: URL(fileURLWithPath: directory.file("most")))
    #expect(Self.storage(directory.file("most")).allCredentials.count == 1)
    data.append(UInt8(ascii: " "))
    try data.write(to: URL(fileURLWithPath: directory.file("more")))
    #expect(Self.storage(directory.file("more")).allCredentials.isEmpty)
  }

  /// A storage whose file cannot be written reports no error and keeps its credentials until the process exits.
  @Test func aFileThatCannotBeWritten() throws {
    let directory = try AuthenticationDirectory()
    try Data().write(to: URL(fileURLWithPath: directory.file("file")))
    let storage = Self.storage(directory.file("file/credentials.json"))
    storage.set(Self.credential("u", "p", .permanent), for: Self.space)
    #expect(storage.credentials(for: Self.space)?.count == 1)
  }

  @Test(
    arguments: [
      (["XDG_DATA_HOME": "/data", "HOME": "/home/u"], "tool", "/data/larkspur/tool/credentials.json"),
      (["HOME": "/home/u"], "tool", "/home/u/.local/share/larkspur/tool/credentials.json"),
      (["XDG_DATA_HOME": "data", "HOME": "/home/u"], "tool", "/home/u/.local/share/larkspur/tool/credentials.json"),
      (["XDG_DATA_HOME": ""], "tool", nil), ([:], "tool", nil),
      (["XDG_DATA_HOME": "/data"], "../x", "/data/larkspur/.._x/credentials.json"),
      (["XDG_DATA_HOME": "/data"], "..", "/data/larkspur/_/credentials.json"),
    ] as [([String: String], String, String?)])
  func paths(environment: [String: String], program: String, path: String?) {
    #expect(CredentialFile.path(environment: environment, program: program) == path)
  }

  @Test func proposals() {
    let storage = URLCredentialStorage()
    #expect(storage.proposedCredential(for: Self.space, task: nil) == nil)
    let general = URLProtectionSpaceTests.space(method: nil)
    storage.set(Self.credential("general"), for: general)
    #expect(storage.proposedCredential(for: Self.space, task: nil)?.user == "general")
    storage.set(Self.credential("u"), for: Self.space)
    #expect(storage.proposedCredential(for: Self.space, task: nil)?.user == "u")
    // The first of two credentials is the default.
    storage.set(Self.credential("v"), for: Self.space)
    storage.remove(Self.credential("general"), for: general)
    #expect(storage.proposedCredential(for: Self.space, task: nil)?.user == "u")
    // The space has only one credential left, which is proposed although it is not the default.
    storage.remove(Self.credential("u"), for: Self.space)
    #expect(storage.proposedCredential(for: Self.space, task: nil)?.user == "v")
    // With two credentials and no default, none is proposed: the program has to choose.
    storage.set(Self.credential("w"), for: Self.space)
    #expect(storage.proposedCredential(for: Self.space, task: nil) == nil)
    storage.setDefaultCredential(Self.credential("w"), for: Self.space)
    #expect(storage.proposedCredential(for: Self.space, task: nil)?.user == "w")
  }
}
