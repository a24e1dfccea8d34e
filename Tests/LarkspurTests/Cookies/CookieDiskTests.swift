import Foundation
import LarkspurHTTP
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests the cookie file.
@Suite struct CookieDiskTests {
  static func cookie(_ name: String, _ value: String = "1", lifetime: TimeInterval? = 3600) throws -> HTTPCookie {
    var properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: "a.com", .path: "/"]
    if let lifetime { properties[.expires] = Date(timeIntervalSinceNow: lifetime) }
    return try #require(HTTPCookie(properties: properties))
  }

  static func names(_ storage: HTTPCookieStorage) -> [String] {
    storage.cookies?.map { "\($0.name)=\($0.value)" } ?? []
  }

  static func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// Writes the storage, and repeats while the file is locked: a process that another test has forked holds a copy of
  /// the lock until it executes its own program.
  static func write(_ storage: HTTPCookieStorage) -> HTTPCookieStorage.Written {
    var written = HTTPCookieStorage.Written.busy
    Wait.blocking(until: "the file is unlocked") {
      written = storage.write()
      return written != .busy
    }
    return written
  }

  @Test func whatIsWrittenIsRead() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("deep/er")
    let storage = HTTPCookieStorage(disk: CookieDisk(path: path))
    storage.setCookie(try Self.cookie("a"))
    storage.setCookie(try Self.cookie("session", lifetime: nil))
    #expect(Self.write(storage) == .done)
    #expect(try Self.permissions(path + "/cookies") == 0o600)
    #expect(try Self.permissions(path) == 0o700)
    let other = HTTPCookieStorage(disk: CookieDisk(path: path))
    #expect(Self.names(other) == ["a=1"])
    #expect(Self.names(storage) == ["a=1", "session=1"])
    // A session cookie that replaces a persistent cookie removes it from the file.
    other.setCookie(try Self.cookie("a", "2", lifetime: nil))
    #expect(Self.write(other) == .done)
    #expect(Self.names(HTTPCookieStorage(disk: CookieDisk(path: path))) == [])
    // A change that concerns session cookies only does not rewrite the file.
    let before = try FileManager.default.attributesOfItem(atPath: path + "/cookies")[.systemFileNumber] as? Int
    other.setCookie(try Self.cookie("session2", lifetime: nil))
    #expect(Self.write(other) == .done)
    #expect(try FileManager.default.attributesOfItem(atPath: path + "/cookies")[.systemFileNumber] as? Int == before)
  }

  @Test func aStorageThatGoesWritesFirst() throws {
    let directory = try TemporaryDirectory()
    do {
      let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.path("x")))
      storage.setCookie(try Self.cookie("a"))
    }
    #expect(Self.names(HTTPCookieStorage(disk: CookieDisk(path: directory.path("x")))) == ["a=1"])
  }

  @Test func severalStoragesShareAFile() throws {
    let directory = try TemporaryDirectory()
    let one = HTTPCookieStorage(disk: CookieDisk(path: directory.path("x")))
    let other = HTTPCookieStorage(disk: CookieDisk(path: directory.path("x")))
    #expect(Self.names(one) == [] && Self.names(other) == [])
    one.setCookie(try Self.cookie("a"))
    #expect(Self.write(one) == .done)
    other.setCookie(try Self.cookie("b"))
    #expect(Self.write(other) == .done)
    #expect(Self.names(other) == ["a=1", "b=1"])
    // The first storage has no changes of its own, so it writes nothing and does not learn of the other's cookie.
    #expect(Self.write(one) == .done)
    #expect(Self.names(one) == ["a=1"])
    one.setCookie(try Self.cookie("c"))
    other.deleteCookie(try Self.cookie("a"))
    other.setCookie(try Self.cookie("b", "2"))
    #expect(Self.write(other) == .done)
    #expect(Self.write(one) == .done)
    #expect(Self.names(one) == ["b=2", "c=1"])
    // The cookie changed last wins, not the storage that writes last.
    one.setCookie(try Self.cookie("b", "old"))
    other.setCookie(try Self.cookie("b", "new"))
    #expect(Self.write(other) == .done)
    #expect(Self.write(one) == .done)
    #expect(Self.names(one) == ["b=new", "c=1"])
  }

  @Test func damagedFilesAreSetAside() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("cookies")
    for text in ["", "garbage", "larkspur-cookies 1\nend 0 0000000000000000\n"] {
      try Data(text.utf8).write(to: URL(filePath: path))
      let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))
      #expect(storage.cookies == [])
      storage.setCookie(try Self.cookie("a"))
      #expect(Self.write(storage) == .done)
      #expect(try Data(contentsOf: URL(filePath: directory.path("cookies.damaged"))) == Data(text.utf8))
      #expect(Self.names(HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))) == ["a=1"])
    }
  }

  @Test func laterVersionsAreLeftAlone() throws {
    let directory = try TemporaryDirectory()
    let text = Data("larkspur-cookies 2\nwhat we do not know\n".utf8)
    try text.write(to: URL(filePath: directory.path("cookies")))
    let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))
    storage.setCookie(try Self.cookie("a"))
    #expect(Self.write(storage) == .failed)
    #expect(Self.names(storage) == ["a=1"])
    #expect(try Data(contentsOf: URL(filePath: directory.path("cookies"))) == text)
  }

  /// CVE-2022-32207: symbolic links in place of the file, its temporary file or its directory are not followed.
  @Test func linksAreNotFollowed() throws {
    let directory = try TemporaryDirectory()
    let target = directory.path("target")
    try Data("precious".utf8).write(to: URL(filePath: target))
    try FileManager.default.createDirectory(atPath: directory.path("x"), withIntermediateDirectories: true)
    for name in ["cookies", "cookies.new"] {
      try FileManager.default.createSymbolicLink(atPath: directory.path("x/\(name)"), withDestinationPath: target)
    }
    let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.path("x")))
    storage.setCookie(try Self.cookie("a"))
    #expect(Self.write(storage) == .failed)
    try FileManager.default.removeItem(atPath: directory.path("x/cookies"))
    storage.setCookie(try Self.cookie("b"))
    #expect(Self.write(storage) == .done)
    #expect(try Data(contentsOf: URL(filePath: target)) == Data("precious".utf8))
    try FileManager.default.createSymbolicLink(atPath: directory.path("y"), withDestinationPath: directory.path("x"))
    #expect(HTTPCookieStorage(disk: CookieDisk(path: directory.path("y"))).cookies == [])
  }

  @Test func aPlaceThatCannotBeWritten() throws {
    let directory = try TemporaryDirectory()
    try Data().write(to: URL(filePath: directory.path("file")))
    let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.path("file/x")))
    storage.setCookie(try Self.cookie("a"))
    #expect(Self.write(storage) == .failed)
    #expect(Self.names(storage) == ["a=1"])
    // The next write tries the failed changes again.
    try FileManager.default.removeItem(atPath: directory.path("file"))
    #expect(Self.write(storage) == .done)
    #expect(Self.names(HTTPCookieStorage(disk: CookieDisk(path: directory.path("file/x")))) == ["a=1"])
  }

  struct Killed: Error {}

  /// A process that is killed after any step of a write leaves a readable file. Unsynced bytes may be lost in part.
  @Test(arguments: CookieDisk.Step.allCases) func killedAfterAStep(step: CookieDisk.Step) throws {
    let directory = try TemporaryDirectory()
    var generator = SeededGenerator(for: "cookies killed after \(step)")
    let before = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))
    before.setCookie(try Self.cookie("a", "old"))
    #expect(Self.write(before) == .done)
    let disk = CookieDisk(path: directory.url.path) { if $0 == step { throw Killed() } }
    // The failing step may also occur in the write of the storage's deinitialization.
    var storage: HTTPCookieStorage? = HTTPCookieStorage(disk: disk)
    storage?.setCookie(try Self.cookie("a", "new"))
    storage?.setCookie(try Self.cookie("b", "new"))
    #expect(Self.write(try #require(storage)) == .failed)
    storage = nil
    let new = URL(filePath: directory.path("cookies.new"))
    if let bytes = try? Data(contentsOf: new), step != .synced {
      try bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)).write(to: new)
    }
    let next = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))
    #expect(Self.names(next) == (step == .renamed ? ["a=new", "b=new"] : ["a=old"]))
    next.setCookie(try Self.cookie("c"))
    #expect(Self.write(next) == .done)
    #expect(Self.names(next).last == "c=1")
    let left = try FileManager.default.contentsOfDirectory(atPath: directory.url.path).sorted()
    #expect(left == ["cookies", "cookies.lock"])
  }

  /// A write that starts while another of the same storage is under way returns `.busy`, so that its caller does not
  /// take the cookies for written.
  @Test func aWriteThatIsUnderWay() throws {
    let directory = try TemporaryDirectory()
    let own = Mutex<HTTPCookieStorage?>(nil)
    let found = Mutex<HTTPCookieStorage.Written?>(nil)
    let disk = CookieDisk(path: directory.url.path) { step in
      guard step == .half, let storage = own.withLock({ $0.take() }) else { return }
      found.withLock { $0 = storage.write() }
    }
    let storage = HTTPCookieStorage(disk: disk)
    storage.setCookie(try Self.cookie("a"))
    own.withLock { $0 = storage }
    #expect(Self.write(storage) == .done)
    #expect(found.withLock { $0 } == .busy)
    #expect(Self.write(storage) == .done)
    #expect(Self.names(HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))) == ["a=1"])
  }

  /// A write that finds the file locked by another storage does nothing and returns `.busy`.
  @Test func aLockedFile() throws {
    let directory = try TemporaryDirectory()
    let other = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path))
    other.setCookie(try Self.cookie("b"))
    let found = Mutex<HTTPCookieStorage.Written?>(nil)
    let disk = CookieDisk(path: directory.url.path) { step in
      if step == .half { found.withLock { $0 = other.write() } }
    }
    let storage = HTTPCookieStorage(disk: disk)
    storage.setCookie(try Self.cookie("a"))
    #expect(Self.write(storage) == .done)
    #expect(found.withLock { $0 } == .busy)
    #expect(Self.write(other) == .done)
    #expect(Self.names(other) == ["b=1", "a=1"])
  }

  @Test func places() {
    #expect(CookieLocation.dataHome(["XDG_DATA_HOME": "/data", "HOME": "/home/me"]) == "/data")
    #expect(CookieLocation.dataHome(["XDG_DATA_HOME": "data", "HOME": "/home/me"]) == "/home/me/.local/share")
    #expect(CookieLocation.dataHome([:]).hasSuffix("/.local/share"))
    #expect(CookieLocation.directory(ofProgram: "../x").hasSuffix("/%2E.%2Fx/larkspur"))
    #expect(CookieLocation.directory(ofGroup: "a/b").hasSuffix("/larkspur/groups/a%2Fb"))
  }
}
