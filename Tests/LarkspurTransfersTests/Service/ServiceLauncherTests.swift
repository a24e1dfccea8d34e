import Foundation
import LarkspurBytes
import LarkspurIO
import Synchronization
import TestKit
import Testing

@testable import LarkspurTransfers

@Suite(.ownThread) struct ServiceLauncherTests {
  private static let running = life(true)

  /// The life of a program that does not end, or has ended at once.
  private static func life(_ isStarted: Bool) -> @Sendable (Deadline) -> Bool {
    { deadline in
      if isStarted { WakeUp().wait(until: deadline) }
      return !isStarted
    }
  }

  private static func launcher(
    _ environment: [String: String], own: String? = nil,
    start: @escaping ServiceLauncher.Start = { (_, _) throws(Errno) -> @Sendable (Deadline) -> Bool in running }
  ) -> ServiceLauncher {
    ServiceLauncher(environment: { environment[$0] }, ownDirectory: own, start: start)
  }

  /// A temporary directory with programs in it.
  private final class Programs {
    let url = FileManager.default.temporaryDirectory.appending(path: "lk-\(UUID().uuidString.prefix(8))")
    var path: String { url.path }

    init(_ programs: [String]) throws {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      for program in programs {
        let file = url.appending(path: program)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("#!/bin/sh\n".utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.path)
      }
    }

    deinit { try? FileManager.default.removeItem(at: url) }
  }

  @Test func theProgramsPlaces() throws {
    let programs = try Programs(["own/larkspur", "bin/larkspur", "bin/app", "other/app"])
    let (own, bin) = (programs.path + "/own", programs.path + "/bin")
    let path = "relative:\(programs.path)/none:\(programs.path)/other:\(bin)"
    #expect(Self.launcher(["PATH": path], own: own).program == own + "/larkspur")
    #expect(Self.launcher(["PATH": path], own: programs.path).program == bin + "/larkspur")
    #expect(Self.launcher(["PATH": path], own: nil).program == bin + "/larkspur")
    #expect(Self.launcher(["PATH": programs.path], own: nil).program == nil)
    #expect(Self.launcher([:], own: nil).program == nil)
    #expect(Self.launcher(["LARKSPUR_TRANSFER_SERVICE": "/x/y", "PATH": path], own: own).program == "/x/y")
    #expect(Self.launcher(["LARKSPUR_TRANSFER_SERVICE": "", "PATH": path], own: own).program == nil)
    // Where every user may write, another user may have put the file.
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: own)
    #expect(Self.launcher(["PATH": path], own: own).program == bin + "/larkspur")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: own)
    #expect(Self.launcher(["PATH": path], own: own).program == own + "/larkspur")
    // A file that cannot be executed, and a directory, are no programs.
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: own + "/larkspur")
    try FileManager.default.createDirectory(
      atPath: programs.path + "/other/larkspur", withIntermediateDirectories: true)
    #expect(Self.launcher(["PATH": path], own: own).program == bin + "/larkspur")
    #expect(Self.launcher(["PATH": path]).path(of: "app") == programs.path + "/other/app")
    // The service has another current directory.
    let current = try FilePaths.resolved(".")
    #expect(Self.launcher(["PATH": path]).path(of: "./app") == "\(current)/./app")
    #expect(Self.launcher(["PATH": path]).path(of: "/bin/app") == "/bin/app")
  }

  @Test func noService() throws {
    let service = try TestService()
    let environment = ["XDG_RUNTIME_DIR": service.url.path]
    #expect(try Self.launcher(environment).open(service.session()) == nil)
    #expect(try Self.launcher([:]).open(service.session()) == nil)
  }

  /// Several programs that start the service at once end with one.
  @Test func theServiceIsStartedOnce() throws {
    let service = try TestService()
    let starts = Happenings<[String]>()
    let environment = ["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": "/the/service"]
    let launcher = Self.launcher(environment) { (path, arguments) throws(Errno) in
      starts.add([path] + arguments)
      // A second server ends at once.
      return Self.life((try? service.start()) != nil)
    }
    let clients = Happenings<Result<TransferClient?, any Error>>()
    for number in 0..<6 {
      try SystemThread(name: "program") {
        clients.add(Result { try launcher.open(service.session("\(number)"), timeout: .seconds(60)) })
      }.detach()
    }
    let all = try clients.wait(for: 6)
    for result in all { #expect(try result.get() != nil) }
    #expect(starts.all.allSatisfy { $0 == ["/the/service", "transfers", "run"] })
    // A service that runs is found without another start, and without a program.
    let count = starts.all.count
    _ = try launcher.open(service.session("x"))
    #expect(try Self.launcher(["XDG_RUNTIME_DIR": service.url.path]).open(service.session("y")) != nil)
    #expect(starts.all.count == count)
    // The variable without a value forbids the service even where it runs.
    let without = Self.launcher(["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": ""])
    #expect(try without.open(service.session("z")) == nil)
    #expect(throws: TransferLinkError.inUse) { try launcher.open(service.session("1")) }
    withExtendedLifetime(all) {}
  }

  @Test func aServiceThatCannotBeStarted() throws {
    let service = try TestService()
    let environment = ["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": "/the/service"]
    let launcher = Self.launcher(environment) { (_, _) throws(Errno) in throw .accessDenied }
    do throws(TransferLinkError) {
      _ = try launcher.open(service.session())
      Issue.record("the session was opened")
    } catch {
      #expect("\(error)".contains("/the/service cannot be started: Permission denied"), "\(error)")
    }
  }

  /// Without a wait: the end of the program is noticed.
  @Test func aServiceThatEndsAtOnce() throws {
    let service = try TestService()
    let environment = ["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": "/bin/false"]
    let starts = Happenings<String>()
    let launcher = Self.launcher(environment) { (path, arguments) throws(Errno) in
      starts.add(path)
      let life = try DetachedProcess.startWatched(path, arguments)
      return { life.waitForEnd(until: $0) }
    }
    do throws(TransferLinkError) {
      // A session that waited for the time would wait for longer than any test may run.
      _ = try launcher.open(service.session(), timeout: .seconds(100_000))
      Issue.record("the session was opened")
    } catch {
      #expect("\(error)".contains("/bin/false ends at once"), "\(error)")
    }
    #expect(starts.all.count == 2)
  }

  /// A service that ends holds its lock and has no socket. The next one is started when the lock is free.
  @Test func aServiceThatStartsWhileAnotherEnds() throws {
    let service = try TestService()
    let environment = ["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": "/the/service"]
    let lock = Mutex(try Directory.ofOwner(at: service.directory).lock(TransferLocation.lock))
    let starts = Happenings<Bool>()
    let launcher = Self.launcher(environment) { (_, _) throws(Errno) in
      let isStarted = (try? service.start()) != nil
      starts.add(isStarted)
      // The earlier service ends after the first start has failed.
      lock.withLock { $0 = nil }
      return Self.life(isStarted)
    }
    #expect(try launcher.open(service.session(), timeout: .seconds(60)) != nil)
    #expect(starts.all == [false, true])
  }

  @Test func aServiceThatDoesNotListen() throws {
    let service = try TestService()
    let environment = ["XDG_RUNTIME_DIR": service.url.path, "LARKSPUR_TRANSFER_SERVICE": "/the/service"]
    do throws(TransferLinkError) {
      _ = try Self.launcher(environment).open(service.session(), timeout: .milliseconds(20))
      Issue.record("the session was opened")
    } catch {
      #expect("\(error)".contains("was started, and does not listen"), "\(error)")
    }
  }

  /// A launched program gets its arguments and the session's identifier.
  @Test func launching() throws {
    let programs = try Programs([])
    let output = programs.path + "/output"
    let script = "echo \"$LARKSPUR_BACKGROUND_SESSION $1\" > \"$0.new\" && mv \"$0.new\" \"$0\""
    var session = TransferSession(identifier: "the session", directory: "/d", settings: [])
    // Not a file of this test: another thread that starts a program has it open for a moment, and cannot be waited for.
    session.launchCommand = ["/bin/sh", "-c", script, output, "word"]
    try Self.launcher([:]).launch(session)
    Wait.blocking(until: "the program has written") { FileManager.default.fileExists(atPath: output) }
    #expect(try String(contentsOfFile: output, encoding: .utf8) == "the session word\n")
    session.launchCommand = [programs.path + "/absent"]
    #expect(throws: TransferLinkError.self) { try Self.launcher([:]).launch(session) }
  }
}
