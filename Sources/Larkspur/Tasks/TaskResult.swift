import Foundation

/// What an async function waits for: the end of a task that runs as a part of the caller's.
///
/// It is set on the loop, and read when the caller's task has come back from there: nobody else knows it, and it needs no
/// lock. (It is not generic: what is released without its type being known costs 3,000 instructions a task.)
final class TaskResult: @unchecked Sendable {
  enum Content {
    case data(Data)
    case file(URL)
  }

  private var stored: Result<(Content, URLResponse), any Error>?

  func set(_ result: Result<(Content, URLResponse), any Error>) { stored = result }

  func data() throws -> (Data, URLResponse) {
    guard let stored, case (.data(let data), let response) = try stored.get() else { throw URLError(.unknown) }
    return (data, response)
  }

  func file() throws -> (URL, URLResponse) {
    guard let stored, case (.file(let file), let response) = try stored.get() else { throw URLError(.unknown) }
    return (file, response)
  }
}
