import AFNetworking
import Foundation
import Larkspur
import Synchronization
import TestKit
import Testing

/// An AFNetworking manager and httpbin.
@Suite(.serialized, .ownThread) final class ManagerHTTPBinTests {
  private let bin: HTTPBin
  private let manager: AFHTTPSessionManager

  init() throws {
    bin = try HTTPBin()
    manager = AFHTTPSessionManager(baseURL: try bin.url("/"), sessionConfiguration: .ephemeral)
  }

  deinit { manager.invalidateSessionCancelingTasks(true, resetSession: false) }

  /// Returns a member of httpbin's answer as text, at a path of names in nested objects.
  private func member(_ object: Any?, _ path: String...) -> String? {
    var value = object
    for name in path { value = (value as? [String: Any])?[name] }
    return value.map { "\($0)" }
  }

  private func status(of error: any Error) -> Int? {
    ((error as NSError).userInfo[AFNetworkingOperationFailingURLResponseErrorKey] as? HTTPURLResponse)?.statusCode
  }

  @Test func parametersOfAGet() async throws {
    let object = try await manager.get(
      "get", parameters: ["name": "a value", "list": [1, 2], "of": ["one": "ü"]], headers: ["X-Larkspur": "yes"]
    ).value
    #expect(member(object, "args", "name") == "a value")
    #expect(((object as? [String: Any])?["args"] as? [String: Any])?["list[]"] as? [String] == ["1", "2"])
    #expect(member(object, "args", "of[one]") == "ü")
    #expect(member(object, "headers", "X-Larkspur") == "yes")
    #expect(
      member(object, "headers", "User-Agent") == manager.requestSerializer.value(forHTTPHeaderField: "User-Agent"))
  }

  /// Blocks run on the completion queue that the program sets: no thread serves the main queue here.
  @Test func blocks() async throws {
    manager.completionQueue = DispatchQueue(label: "completion")
    let name: String? = await withCheckedContinuation { continuation in
      manager.get("get", parameters: ["name": "value"], headers: nil, progress: nil) { [self] _, object in
        continuation.resume(returning: member(object, "args", "name"))
      } failure: { _, error in
        continuation.resume(returning: "\(error)")
      }
    }
    #expect(name == "value")
  }

  @Test func forms() async throws {
    let object = try await manager.post("post", parameters: ["a": 1, "b": "two words & more"]).value
    #expect(member(object, "form", "a") == "1")
    #expect(member(object, "form", "b") == "two words & more")
    #expect(member(object, "headers", "Content-Type") == "application/x-www-form-urlencoded")
  }

  @Test func documents() async throws {
    manager.requestSerializer = AFJSONRequestSerializer()
    for answer in [
      try await manager.post("post", parameters: ["list": [1, 2]]),
      try await manager.put("put", parameters: ["list": [1, 2]]),
      try await manager.patch("patch", parameters: ["list": [1, 2]]),
    ] {
      #expect(((answer.value as? [String: Any])?["json"] as? [String: [Int]]) == ["list": [1, 2]])
      #expect(member(answer.value, "headers", "Content-Type") == "application/json")
    }
    let deleted = try await manager.delete("delete", parameters: ["id": 7]).value
    #expect(member(deleted, "args", "id") == "7")
  }

  @Test func formsInParts() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "af-bin-\(UUID().uuidString).txt")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data("of a file".utf8).write(to: file)
    let fractions = Mutex<[Double]>([])
    let object = try await manager.post(
      "post", parameters: ["title": "Lärche"],
      constructingBodyWith: { form in
        try? form.appendPart(withFileURL: file, name: "file")
        form.appendPart(
          withFileData: Data("of memory".utf8), name: "data", fileName: "a \"name\".txt", mimeType: "text/plain")
      },
      progress: { progress in fractions.withLock { $0.append(progress.fractionCompleted) } }
    ).value
    #expect(member(object, "form", "title") == "Lärche")
    #expect(member(object, "files", "file") == "of a file")
    #expect(member(object, "files", "data") == "of memory")
    #expect(fractions.withLock { $0.last } == 1)
  }

  @Test func credentials() async throws {
    manager.setTaskDidReceiveAuthenticationChallenge { _, _, challenge, credential in
      guard challenge.previousFailureCount == 0 else { return .cancelAuthenticationChallenge }
      credential?.pointee = URLCredential(user: "me", password: "secret", persistence: .none)
      return .useCredential
    }
    for path in ["basic-auth/me/secret", "digest-auth/auth/me/secret"] {
      #expect(member(try await manager.get(path).value, "user") == "me")
    }
    // With another password, the block gives up.
    await #expect(throws: URLError.self) { try await self.manager.get("basic-auth/me/other").value == nil }
  }

  /// Credentials are sent unasked, as `hidden-basic-auth` requires: it sends no challenge.
  @Test func authorizationBeforeItIsAskedFor() async throws {
    manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("me", password: "secret")
    #expect(member(try await manager.get("hidden-basic-auth/me/secret").value, "user") == "me")
  }

  @Test func redirections() async throws {
    let (object, response) = try await manager.get("redirect/3")
    #expect(response.url?.path == "/get")
    #expect(member(object, "url")?.hasSuffix("/get") == true)
    let seen = Mutex<[String]>([])
    manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, request in
      seen.withLock { $0.append(request.url?.path ?? "") }
      return seen.withLock { $0.count } < 2 ? request : nil
    }
    await #expect {
      try await self.manager.get("relative-redirect/3").value == nil
    } throws: {
      self.status(of: $0) == 302
    }
    #expect(seen.withLock { $0 } == ["/relative-redirect/2", "/relative-redirect/1"])
  }

  @Test(arguments: [400, 401, 404, 418, 500, 503]) func wrongStatuses(_ code: Int) async throws {
    await #expect {
      try await self.manager.get("status/\(code)").value == nil
    } throws: {
      ($0 as NSError).domain == AFURLResponseSerializationErrorDomain
        && ($0 as NSError).code == NSURLErrorBadServerResponse && self.status(of: $0) == code
    }
  }

  @Test func nothing() async throws {
    let (object, response) = try await manager.get("status/204")
    #expect(object == nil)
    #expect((response as? HTTPURLResponse)?.statusCode == 204)
    #expect((try await manager.head("get") as? HTTPURLResponse)?.statusCode == 200)
  }

  /// A page of HTML is not a JSON document, and is loaded only by another serializer.
  @Test func anotherType() async throws {
    await #expect {
      try await self.manager.get("html").value == nil
    } throws: {
      ($0 as NSError).domain == AFURLResponseSerializationErrorDomain
        && ($0 as NSError).code == NSURLErrorCannotDecodeContentData
    }
    manager.responseSerializer = AFHTTPResponseSerializer()
    let page = try await manager.get("html").value as? Data
    #expect(page.map { String(decoding: $0, as: UTF8.self).contains("<html>") } == true)
  }

  @Test func images() async throws {
    manager.responseSerializer = AFImageResponseSerializer()
    for type in ["png", "jpeg", "webp"] {
      let image = try #require(try await manager.get("image/\(type)").value as? AFImage, "\(type)")
      #expect(image.size.width > 0 && image.size.height > 0)
    }
  }

  @Test func codings() async throws {
    #expect(member(try await manager.get("gzip").value, "gzipped") == "\(NSNumber(value: true))")
    #expect(member(try await manager.get("deflate").value, "deflated") == "\(NSNumber(value: true))")
  }

  @Test func cookies() async throws {
    #expect(member(try await manager.get("cookies/set", parameters: ["a": 1]).value, "cookies", "a") == "1")
    #expect(member(try await manager.get("cookies").value, "cookies", "a") == "1")
    manager.requestSerializer.httpShouldHandleCookies = false
    #expect(member(try await manager.get("cookies").value, "cookies", "a") == nil)
  }

  @Test func aServerThatIsTooSlow() async throws {
    manager.requestSerializer.timeoutInterval = 0.5
    await #expect {
      try await self.manager.get("delay/10").value == nil
    } throws: {
      ($0 as? URLError)?.code == .timedOut
    }
  }

  @Test(arguments: ["stream-bytes/100000?seed=1&chunk_size=1000", "range/100000"])
  func downloads(path: String) async throws {
    let target = FileManager.default.temporaryDirectory.appending(path: "af-bin-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: target) }
    let counts = Mutex<[Int64]>([])
    let last = Mutex(Double(0))
    // There are many pieces, if the network delivers them so.
    let (file, response) = try await manager.download(
      for: URLRequest(url: try bin.url("/" + path)),
      progress: { progress in
        counts.withLock { $0.append(progress.completedUnitCount) }
        last.withLock { $0 = progress.fractionCompleted }
      }, destination: { _, _ in target })
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(file == target)
    #expect(try Data(contentsOf: target).count == 100_000)
    let outcome = counts.withLock { $0 }
    #expect(outcome == outcome.sorted())
    #expect(outcome.last == 100_000)
    #expect(last.withLock { $0 } == 1)
  }

  /// An operation of AFNetworking 2, with a credential.
  @Test func operations() async throws {
    let manager = AFHTTPRequestOperationManager(baseURL: try bin.url("/"))
    manager.completionQueue = DispatchQueue(label: "completion")
    manager.credential = URLCredential(user: "me", password: "secret", persistence: .none)
    let user: String? = await withCheckedContinuation { continuation in
      manager.get("basic-auth/me/secret", parameters: nil) { [self] _, object in
        continuation.resume(returning: member(object, "user"))
      } failure: { _, error in
        continuation.resume(returning: "\(error)")
      }
    }
    #expect(user == "me")
  }
}
