// Saves the files of a list: `save [--jobs N] LIST FOLDER`. The list is the URL of a JSON document such as
// `{"files": [{"name": "a.txt", "url": "https://example.org/a.txt"}]}`.

import Glibc
import LarkspurClient

struct Failure: Error { var reason: String }

/// The line that shows how many files and bytes have arrived.
actor Progress {
  private(set) var files = 0
  private(set) var bytes = 0
  private let filesInAll: Int

  init(_ filesInAll: Int) { self.filesInAll = filesInAll }

  func add(files: Int = 0, bytes: Int = 0) {
    let shown = self.bytes >> 20
    self.files += files
    self.bytes += bytes
    guard files > 0 || self.bytes >> 20 > shown else { return }
    let line = Array("\r\(self.files) of \(filesInAll) files, \(self.bytes >> 20) MiB".utf8)
    write(STDERR_FILENO, line, line.count)
  }
}

func save(_ item: JSON, in folder: String, _ progress: Progress) async throws {
  guard let name = item["name"]?.string, let url = item["url"]?.string, !name.isEmpty,
    !name.contains("/"), name != ".."
  else { throw Failure(reason: "a file of the list has no usable name and URL") }
  guard let file = fopen("\(folder)/\(name)", "w") else { throw Failure(reason: "\(folder)/\(name) cannot be written") }
  defer { fclose(file) }
  try await HTTPClient.shared.get(url) { response in
    guard response.status == 200 else { throw Failure(reason: "\(url): the status is \(response.status)") }
    for try await piece in response.body {
      guard fwrite(piece, 1, piece.count, file) == piece.count else { throw Failure(reason: "the disk is full") }
      await progress.add(bytes: piece.count)
    }
  }
  await progress.add(files: 1)
}

var arguments = CommandLine.arguments.dropFirst()
var jobs = 4
if arguments.first == "--jobs" {
  jobs = max(1, arguments.dropFirst().first.flatMap { Int($0) } ?? jobs)
  arguments = arguments.dropFirst(2)
}
guard let list = arguments.first, let folder = arguments.last, arguments.count == 2 else {
  print("usage: save [--jobs N] LIST FOLDER")
  exit(2)
}
do {
  let document = try await HTTPClient.shared.get(list) { response in
    guard response.status == 200 else { throw Failure(reason: "\(list): the status is \(response.status)") }
    return try JSON(parsing: try await response.body.collect(upTo: 16 << 20))
  }
  let items = document["files"]?.array ?? []
  let progress = Progress(items.count)
  try await withThrowingTaskGroup(of: Void.self) { group in
    for (index, item) in items.enumerated() {
      if index >= jobs { try await group.next() }
      group.addTask { try await save(item, in: folder, progress) }
    }
    try await group.waitForAll()
  }
  print("\n{\"files\":\(await progress.files),\"bytes\":\(await progress.bytes)}")
} catch {
  print("save: \((error as? Failure)?.reason ?? "\(error)")")
  exit(1)
}
