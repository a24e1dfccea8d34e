import Foundation
import Larkspur
import Synchronization
import TestKit
import Testing

/// Tests protocols that call their clients in random order from several threads, while the program suspends, resumes
/// and cancels the task.
@Suite struct ProtocolModelTests {
  private enum Call: CaseIterable {
    case respond, load, redirect, challenge, withdraw, cachedIsValid, finish, fail
  }

  private final class Sender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
  }

  private static func perform(_ call: Call, _ number: Int, on one: ScriptedProtocol, _ sender: Sender) {
    switch call {
    case .respond: one.respond()
    case .load: one.load("\(number)")
    case .redirect: if let url = one.request.url { one.redirect(to: url) }
    case .challenge, .withdraw:
      let space = URLProtectionSpace(
        host: "host", port: 80, protocol: "http", realm: "here",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
      let challenge = URLAuthenticationChallenge(
        protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
        sender: sender)
      one.client?.urlProtocol(one, didReceive: challenge)
      if call == .withdraw { one.client?.urlProtocol(one, didCancel: challenge) }
    case .cachedIsValid:
      let response = URLResponse(
        url: URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
      one.client?.urlProtocol(
        one, cachedResponseIsValid: CachedURLResponse(response: response, data: Data("c".utf8)))
    case .finish: one.finish()
    case .fail: one.fail(URLError(.badServerResponse))
    }
  }

  @Test(.timeLimit(.minutes(2))) func whateverAProtocolSaysATaskEndsOnce() async throws {
    var dice = SeededGenerator(for: "protocols")
    for _ in 0..<150 {
      let plans = (0..<Int.random(in: 1...3, using: &dice)).map { _ in
        (0..<Int.random(in: 0...6, using: &dice)).map { _ in Call.allCases.randomElement(using: &dice) ?? .load }
      }
      let isSynchronous = Bool.random(using: &dice)
      let refuses = Bool.random(using: &dice)
      let userCalls = (0..<Int.random(in: 0...3, using: &dice)).map { _ in Int.random(in: 0..<3, using: &dice) }
      let isDownload = Int.random(in: 0..<3, using: &dice) == 0
      try await round(plans, isSynchronous, refuses, userCalls, isDownload)
    }
  }

  private func round(
    _ plans: [[Call]], _ isSynchronous: Bool, _ refuses: Bool, _ userCalls: [Int], _ isDownload: Bool
  ) async throws {
    let sender = Sender()
    let script = try ScriptedProtocol.script { one in
      if isSynchronous {
        for (number, call) in plans.joined().enumerated() { Self.perform(call, number, on: one, sender) }
        one.finish()
        return
      }
      let group = DispatchGroup()
      for plan in plans {
        DispatchQueue.global().async(group: group) {
          for (number, call) in plan.enumerated() { Self.perform(call, number, on: one, sender) }
        }
      }
      // Finishes the load after the random calls, so that the task completes in any case.
      group.notify(queue: .global()) { one.finish() }
    }
    let delegate = RecordingDelegate(redirection: { refuses ? nil : $0 })
    let session = script.session(delegate)
    let task = isDownload ? session.downloadTask(with: script.url) : session.dataTask(with: script.url)
    task.resume()
    for call in userCalls {
      switch call {
      case 0: task.suspend()
      case 1: task.resume()
      default: task.cancel()
      }
      await Task.yield()
    }
    for _ in userCalls { task.resume() }
    await delegate.wait()
    // Every started load is stopped. Loads that start after this count do not matter.
    let starts = script.events.count { $0 == "start" }
    await script.wait(for: "stop", count: starts)
    #expect(script.events.count { $0 == "stop" } <= script.events.count { $0 == "start" })
    for one in script.made {
      for (number, call) in Call.allCases.enumerated() { Self.perform(call, number, on: one, sender) }
    }
    await withCheckedContinuation { continuation in
      session.delegateQueue.addOperation { continuation.resume() }
    }
    let events = delegate.events
    let about: Comment = "\(plans) \(isSynchronous) \(refuses) \(userCalls): \(events)"
    #expect(events.count { $0 == "end" || $0 == "failure" } == 1, about)
    #expect(events.last == "end" || events.last == "failure", about)
    #expect(events.count { $0.hasPrefix("metrics") } == 1, about)
    #expect(events.dropLast().last?.hasPrefix("metrics") == true, about)
    #expect(events.count { $0.hasPrefix("response") } <= 1, about)
    // A protocol may deliver no response, or one after content; none follows the metrics.
    if let metrics = events.firstIndex(where: { $0.hasPrefix("metrics") }) {
      #expect(!events[metrics...].contains { $0.hasPrefix("response") || $0.hasPrefix("data") }, about)
    }
    #expect(task.state == .completed)
    session.invalidateAndCancel()
  }
}
