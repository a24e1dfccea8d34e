import Foundation
import Glibc
import Larkspur
import LarkspurIO
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

/// Tests the service of `larkspur transfers` as a process of its own.
@Suite struct TransfersTests {
  /// Directories for state and runtime files. Deinitialization removes them.
  private final class Place: Sendable {
    let path: String

    init() throws {
      path = FileManager.default.temporaryDirectory.path + "/lk-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: path + "/run", withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var environment: [String: String] {
      ["XDG_STATE_HOME": path + "/state", "XDG_RUNTIME_DIR": path + "/run", "HOME": path]
    }

    var session: TransferSession {
      get throws {
        let configuration = URLSessionConfiguration.background(withIdentifier: "downloads")
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        return TransferSession(
          identifier: "downloads",
          directory: TransferLocation.directory(stateHome: path + "/state", program: "app", session: "downloads"),
          settings: try TransferService.settings(of: configuration) { _ in })
      }
    }

    func command(_ words: String...) throws -> Command {
      try Command(["transfers"] + words, environment: environment)
    }

    /// Attaches to the session, once the service listens.
    func client() async throws -> TransferClient {
      let session = try session
      var client: TransferClient?
      try await Wait.until("the service listens") {
        do {
          client = try TransferClient(session, directory: path + "/run/larkspur-transfers")
        } catch TransferLinkError.unavailable {
        }
        return client != nil
      }
      return try #require(client)
    }
  }

  /// Collects the notices of a link.
  private final class Notices: Sendable {
    private let list = Mutex<[TransferNotice]>([])

    private let arrived = Event()

    init(of link: any TransferLink) {
      link.start { [weak self] notice in
        self?.list.withLock { $0.append(notice) }
        self?.arrived.fire()
      }
    }

    /// Waits for the first notice that fulfils a condition.
    func first<Value>(_ condition: (TransferNotice) -> Value?) async throws -> Value {
      while true {
        let notices = list.withLock { $0 }
        if let value = notices.lazy.compactMap(condition).first { return value }
        try await arrived.wait(for: notices.count + 1)
      }
    }

    func end() async throws -> TransferRecord {
      try await first { if case .changed(let record) = $0, record.state == .completed { record } else { nil } }
    }

    func loss() async throws -> String { try await first { if case .lost(let reason) = $0 { reason } else { nil } } }
  }

  private static func record(_ url: String, task: Int = 1, state: TransferRecord.State = .running) -> TransferRecord {
    var record = TransferRecord(
      task: task, session: "downloads", kind: .download, request: TransferRequest(url: url),
      createdSeconds: Date().timeIntervalSince1970)
    record.state = state
    return record
  }

  @Test(.timeLimit(.minutes(1))) func aDownloadByTheService() async throws {
    let (place, server) = (try Place(), try TestServer())
    let service = try place.command("run")
    let client = try await place.client()
    let notices = Notices(of: client)
    client.send(.create(Self.record(server.url("/bytes/100000"))))
    let record = try await notices.end()
    #expect(record.failure == nil && record.response?.status == 200)
    #expect(record.events == [.downloaded, .completed])
    let content = try place.session.directory + "/1.part"
    #expect(try OpenFile(reading: content).readToEnd().count == 100_000)
    // The second service does not disturb the first one.
    let second = try await place.command("run").end()
    #expect(second.status == 113 && second.errors.contains("a transfer service of this user runs already"))
    let list = try await place.command("list").end()
    #expect(list.status == 0 && list.errors == "")
    #expect(list.text.contains("downloads  (program attached)\n"))
    #expect(list.text.contains("1  complete  97.7 KiB"))
    client.send(.acknowledge(task: 1, count: 2))
    await withCheckedContinuation { continuation in client.flush { _ in continuation.resume() } }
    #expect(access(content, F_OK) == -1)
    service.send(signal: SIGKILL)
    _ = try await service.end()
    #expect(try await notices.loss() == "the transfer service has ended")
    let log = try await place.command("log").end()
    #expect(log.text.contains("has started\n"))
    #expect(!log.text.contains("127.0.0.1"))
  }

  @Test(.timeLimit(.minutes(1))) func theUsersCommands() async throws {
    let (place, server) = (try Place(), try TestServer())
    #expect(try await place.command("list").end().text == "no background sessions\n")
    let service = try place.command("run")
    var client: TransferClient? = try await place.client()
    let url = server.url("/bytes/10") + "?token=secret#fragment"
    client?.send(.create(Self.record(url.replacing("http://", with: "http://me:password@"), state: .suspended)))
    await withCheckedContinuation { continuation in client?.flush { _ in continuation.resume() } }
    await withCheckedContinuation { continuation in client?.close { continuation.resume() } }
    client = nil
    service.send(signal: SIGKILL)
    _ = try await service.end()
    // Without a service, the list is read from the journals.
    let list = try await place.command("list").end()
    #expect(list.text.contains("downloads  (at rest)\n  \(try place.session.directory)\n"))
    #expect(list.text.contains("  1  paused  0 B  "))
    for secret in ["secret", "password", "fragment", "me:"] { #expect(!list.text.contains(secret)) }
    // The command starts the service, which carries the task out.
    let resumed = try await place.command("resume", "downloads").end()
    #expect(resumed.text == "1 task\n", "\(resumed.errors)")
    client = try await place.client()
    let notices = Notices(of: try #require(client))
    if client?.records.first?.state != .completed { _ = try await notices.end() }
    #expect(try await place.command("cancel", "downloads", "1").end().text == "0 tasks\n")
    let unknown = try await place.command("cancel", "other").end()
    #expect(unknown.status == 113 && unknown.errors == "larkspur: no session other\n")
    // The service that the command has started is none of this test's children.
    let socket = try BlockingSocket.connect(to: .unix(path: place.path + "/run/larkspur-transfers/socket"))
    kill(pid_t(try socket.peerProcess()), SIGKILL)
    #expect(try await notices.loss() == "the transfer service has ended")
  }

  @Test(.timeLimit(.minutes(1))) func aServiceWithoutWorkEnds() async throws {
    let place = try Place()
    let result = try await place.command("run", "--idle-time", "0.01").end()
    #expect(result.status == 0)
    #expect(result.errors.contains("there was nothing to do"))
  }
}
