import Foundation
import Glibc
import LarkspurBytes
import LarkspurIO
import TestKit
import Testing

@Suite(.ownThread) struct DetachedProcessTests {
  /// A temporary directory. Deinitialization removes it.
  private final class Place {
    let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-detached-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Runs a script of the shell, and returns its output. `$$` is its process.
    func output(of script: String, environment: [String: String] = [:]) throws -> String {
      let path = url.path + "/" + UUID().uuidString
      let words = ["-c", "( \(script) ) > \"$0.new\"; mv \"$0.new\" \"$0\"", path]
      try DetachedProcess.start("/bin/sh", words, environment: environment)
      Wait.blocking(until: "the script has ended") { FileManager.default.fileExists(atPath: path) }
      return try String(contentsOfFile: path, encoding: .utf8)
    }
  }

  @Test func noChild() throws {
    let place = try Place()
    // The fields of `stat` behind the name: state, parent, process group, session.
    let words = try place.output(of: "cat /proc/$$/stat; echo $$").split { $0.isWhitespace }
    let number = try #require(words.last.flatMap { Int32($0) })
    #expect(words[3] != "\(getpid())")
    #expect(words[5] != "\(getsid(0))")
    // Neither of the two processes is left for this process to wait for.
    #expect(waitpid(number, nil, WNOHANG) == -1)
    let children = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").map { task in
      (try? String(contentsOfFile: "/proc/self/task/\(task)/children", encoding: .utf8)) ?? ""
    }
    #expect(!children.joined(separator: " ").split(separator: " ").contains("\(number)"))
  }

  @Test func noDescriptors() throws {
    let place = try Place()
    let file = try #require(fopen(place.url.path + "/open", "w"))
    defer { fclose(file) }
    // This descriptor is not closed on execution by itself.
    _ = fcntl(fileno(file), F_SETFD, 0)
    let copy = fcntl(fileno(file), F_DUPFD, 200)
    defer { close(copy) }
    let list = try place.output(
      of: "ls -l /proc/$$/fd | grep -c -e '->'; readlink /proc/$$/fd/0; readlink /proc/$$/fd/2; pwd"
    )
    .split(separator: "\n")
    #expect(list == ["3", "/dev/null", "/dev/null", "/"])
  }

  /// The end of the program and of those that it has left behind.
  @Test func life() throws {
    let place = try Place()
    let (start, end) = (place.url.path + "/start", place.url.path + "/end")
    for path in [start, end] { #expect(mkfifo(path, 0o600) == 0) }
    let script = "echo started > \"$0\"; (read line < \"$1\") & exit 0"
    let life = try DetachedProcess.startWatched("/bin/sh", ["-c", script, start, end])
    #expect(try OpenFile(reading: start).readToEnd() == Array("started\n".utf8))
    #expect(!life.waitForEnd(until: LinuxKernel.shared.now()))
    try OpenFile(overwriting: end).write("go\n")
    #expect(life.waitForEnd(until: .never))
    let ended = try DetachedProcess.startWatched("/bin/sh", ["-c", "exit 1"])
    #expect(ended.waitForEnd(until: .never))
    #expect(throws: Errno.noSuchFile) { try DetachedProcess.startWatched(place.url.path + "/none", []) }
  }

  @Test func environment() throws {
    let place = try Place()
    let text = try place.output(
      of: "echo \"$LARKSPUR_TEST_WORD\"; echo \"$PATH\"", environment: ["LARKSPUR_TEST_WORD": "a b=c"])
    #expect(text == "a b=c\n\(ProcessInfo.processInfo.environment["PATH"] ?? "")\n")
    #expect(try place.output(of: "echo \"$PATH\"", environment: ["PATH": "/bin:/usr/bin"]) == "/bin:/usr/bin\n")
  }

  /// Signals that this thread blocks are not blocked in the program.
  @Test func signals() throws {
    let place = try Place()
    var (set, before) = (sigset_t(), sigset_t())
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &set, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    let text = try place.output(of: "grep -e SigBlk -e SigIgn /proc/$$/status")
    let masks = text.split { $0.isWhitespace }.compactMap { UInt64($0, radix: 16) }
    // The signals 32 and 33 belong to the C library: no program can set what they do.
    #expect(masks.map { $0 & ~0x1_8000_0000 } == [0, 0])
  }

  @Test func programsThatCannotBeStarted() throws {
    let place = try Place()
    let path = place.url.path + "/file"
    #expect(throws: Errno.noSuchFile) { try DetachedProcess.start(path, []) }
    try Data("#!/bin/sh\n".utf8).write(to: URL(filePath: path))
    #expect(throws: Errno.accessDenied) { try DetachedProcess.start(path, []) }
    #expect(throws: Errno.invalidArgument) { try DetachedProcess.start("/bin/sh", ["a\0b"]) }
  }
}
