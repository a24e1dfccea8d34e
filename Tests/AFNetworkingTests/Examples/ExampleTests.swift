import AFNetworking
import Dispatch
import LarkspurTestServer
import TestKit
import Testing

/// The examples of the catalogue. Examples that load from `api.example.com`, which does not exist, are compiled only;
/// the others also run.
@Suite struct ExampleTests {
  let fixture: ManagerFixture

  init() throws {
    fixture = try ManagerFixture()
    fixture.server.route("GET", "/songs") { _ in .json(["dawn", "noon"]) }
    fixture.server.route("POST", "/songs") { _ in .json(["id": 17]) }
  }

  // MARK: - AFNetworking.md

  private func first() {
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://api.example.com/v1"))
    manager.get("songs", parameters: ["page": 2], headers: nil, progress: nil) { task, songs in
      print(songs ?? "nothing")
    } failure: { task, error in
      print(error.localizedDescription)
    }
  }

  @Test func asyncForms() async throws {
    let manager = fixture.manager
    let (songs, response) = try await manager.get("songs", parameters: ["page": 2])
    #expect((songs as? [String]) == ["dawn", "noon"] && response.url?.query == "page=2")
  }

  // MARK: - MainQueue.md

  func songs(of manager: AFHTTPSessionManager) async throws -> [Any] {
    let (value, _) = try await manager.get("songs", parameters: ["page": 2])
    return value as? [Any] ?? []
  }

  @Test func asyncFunction() async throws {
    #expect(try await songs(of: fixture.manager).count == 2)
  }

  /// The answer, which the semaphore hands from one thread to the other.
  final class Answer: @unchecked Sendable {
    var text = ""
  }

  func wait(for manager: AFHTTPSessionManager) -> String {
    manager.completionQueue = DispatchQueue(label: "org.example.completion")
    let done = DispatchSemaphore(value: 0)
    let answer = Answer()
    manager.get("songs", parameters: nil, headers: nil, progress: nil) { _, songs in
      answer.text = "\(songs ?? "nothing")"
      done.signal()
    } failure: { _, error in
      answer.text = error.localizedDescription
      done.signal()
    }
    done.wait()
    return answer.text
  }

  @Test func completionQueue() async {
    let text = await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: wait(for: fixture.manager)) }
    }
    #expect(text.contains("dawn"))
  }

  // MARK: - FromIOSToLinux.md

  private func end(_ manager: AFHTTPSessionManager) {
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
  }

  private func pin(_ certificates: Set<Data>) {
    let policy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: certificates)
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://api.example.com/"))
    manager.securityPolicy = policy
  }

  private func upload(_ file: URL, by manager: AFHTTPSessionManager) {
    manager.post("songs", parameters: ["title": "Dawn"], headers: nil) { form in
      try? form.appendPart(withFileURL: file, name: "song")
    } progress: { progress in
      print(progress.fractionCompleted)
    } success: { task, answer in
      print(answer ?? "nothing")
    } failure: { task, error in
      print(error.localizedDescription)
    }
  }

  @Test func upload() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("song.mp3")
    try Data("la la".utf8).write(to: file)
    upload(file, by: fixture.manager)
    let request = try #require(try await fixture.server.waitForRequests(1).first)
    #expect(request.bodyText.contains("la la") && request.bodyText.contains("filename=\"song.mp3\""))
    pin([])
    end(fixture.manager)
  }
}
