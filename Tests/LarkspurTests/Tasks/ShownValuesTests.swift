import Foundation
import Testing

@testable import Larkspur

/// The public values of a task do not change after `cancel()` or after completion.
@Suite struct ShownValuesTests {
  typealias State = URLSessionTask.State

  private func task() throws -> URLSessionTask {
    URLSession(configuration: .ephemeral).dataTask(with: try #require(URL(string: "http://127.0.0.1:9/first")))
  }

  @Test(arguments: [(State.suspended, true), (.running, true), (.canceling, false), (.completed, false)])
  func eachState(state: State, changes: Bool) throws {
    let task = try task()
    let (url, other) = (task.currentRequest?.url, try #require(URL(string: "http://127.0.0.1:9/second")))
    task.read { $0.state = state }
    task.response = HTTPURLResponse()
    task.currentRequest = URLRequest(url: other)
    task.countOfBytesSent = 1
    task.countOfBytesReceived = 2
    task.countOfBytesExpectedToSend = 3
    task.countOfBytesExpectedToReceive = 4
    let hasLeftOrigin = task.show {
      $0.hasLeftOrigin = true
      return $0.bytesSent
    }
    #expect((task.response != nil) == changes)
    #expect(task.currentRequest?.url == (changes ? other : url))
    #expect(task.countOfBytesSent == (changes ? 1 : 0) && task.countOfBytesReceived == (changes ? 2 : 0))
    #expect(
      task.countOfBytesExpectedToSend == (changes ? 3 : 0) && task.countOfBytesExpectedToReceive == (changes ? 4 : 0))
    #expect(hasLeftOrigin == task.countOfBytesSent && task.read { $0.shown.hasLeftOrigin } == changes)
  }

  /// A load that ends before it learns of `cancel()` fails as cancelled.
  @Test func aLoadThatEndsAfterCancelHasFailed() throws {
    let task = try task()
    task.read { $0.state = .canceling }
    let failure = task.complete(nil) { $0.response = HTTPURLResponse() }
    #expect((failure as? URLError)?.code == .cancelled && (task.error as? URLError)?.code == .cancelled)
    #expect(task.response == nil && task.state == .completed)
    #expect((failure as? URLError)?.failingURL == task.originalRequest?.url)
    // A second completion changes nothing.
    task.complete(URLError(.timedOut))
    #expect((task.error as? URLError)?.code == .cancelled)
  }

  /// A task whose file has been handed to the program completes successfully despite `cancel()`.
  @Test func cancelComesTooLateForWhatIsGiven() throws {
    let task = try task()
    task.read { $0.state = .canceling }
    #expect(task.complete(nil, isDelivered: true) == nil && task.error == nil)
  }

  @Test func anErrorStays() throws {
    let task = try task()
    task.read { $0.state = .canceling }
    #expect((task.complete(URLError(.timedOut)) as? URLError)?.code == .timedOut)
  }

  /// A protocol that cancels its task and then sends a response changes nothing on the task.
  @Test func nothingIsShownThatComesAfterCancel() async throws {
    for round in 0..<20 {
      let script = try ScriptedProtocol.script {
        $0.task?.cancel()
        $0.respond(404)
        $0.load("content")
        $0.finish()
      }
      let delegate = RecordingDelegate()
      let task = script.session(delegate).dataTask(with: script.url)
      task.resume()
      await delegate.wait()
      #expect((delegate.error as? URLError)?.code == .cancelled, "\(round)")
      #expect(task.response == nil && task.countOfBytesReceived == 0 && task.state == .completed, "\(round)")
    }
  }

  @Test func aHandlerIsShownNoMoreThanTheTask() async throws {
    let script = try ScriptedProtocol.script {
      $0.task?.cancel()
      $0.respond(404)
      $0.finish()
    }
    let (data, response, error): (Data?, URLResponse?, (any Error)?) = await withCheckedContinuation { continuation in
      script.session().dataTask(with: script.url) { continuation.resume(returning: ($0, $1, $2)) }.resume()
    }
    #expect(data == nil && response == nil && (error as? URLError)?.code == .cancelled)
  }
}
