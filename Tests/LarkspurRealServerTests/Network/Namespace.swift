import CNamespaces
import Foundation
import Glibc
import LarkspurIO
import Testing

/// A machine of its own, as far as the network goes: interfaces, addresses, routes, and the names in `/etc/hosts`. It is gone
/// with its last user.
final class Namespace: Sendable {
  private let network: Int32
  private let mounts: Int32

  private struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ words: String, _ error: Int32) { description = "\(words): \(Errno(rawValue: error))" }
  }

  /// Cancels the test where namespaces are not permitted, and says so.
  init() throws {
    try requireProgram(Self.ip, package: "iproute2")
    let result = try Self.onThread { () throws(Failure) in
      let error = larkspur_enter_new_namespaces()
      guard error == 0 else { throw Failure("no namespace", error) }
      let network = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
      let mounts = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC)
      guard network >= 0, mounts >= 0 else { throw Failure("/proc/thread-self/ns", errno) }
      return (network, mounts)
    }
    if case .failure(let error) = result { try Self.cancelTest(error) }
    (network, mounts) = try result.get()
    try ip("link set lo up")
  }

  deinit {
    close(network)
    close(mounts)
  }

  /// Where they are not permitted there is nothing that could be installed: in CI, too.
  private static func cancelTest(_ error: Failure) throws {
    FileHandle.standardError.write(Data("skipped: network namespaces: \(error)\n".utf8))
    try Test.cancel("network namespaces: \(error)")
  }

  private static let ip = "/usr/sbin/ip"

  /// Runs `body` there, on a thread of its own: the sockets, threads and processes that it makes are there too.
  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) throws -> T {
    try Self.onThread { [self] () throws(Failure) in
      let error = larkspur_enter_namespaces(network, mounts)
      guard error == 0 else { throw Failure("the namespace cannot be entered", error) }
      return Result { try body() }
    }.get().get()
  }

  /// Calls `ip` with these words, each time on one line.
  func ip(_ lines: String...) throws {
    try run { for line in lines { try ServerProcess.run(Self.ip, line.split(separator: " ").map(String.init)) } }
  }

  /// Ties the two together by a cable, whose ends are called `cable`.
  func connect(to other: Namespace) throws {
    try ip("link add cable type veth peer name cable netns /proc/\(getpid())/fd/\(other.network)")
  }

  /// The names that are known there, as `/etc/hosts` has them.
  func setHosts(_ text: String) throws {
    try run {
      // The mounted file lives on when its name is gone.
      let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-hosts-\(UUID().uuidString)")
      try text.write(to: file, atomically: false, encoding: .utf8)
      defer { try? FileManager.default.removeItem(at: file) }
      let error = larkspur_mount_file(file.path, "/etc/hosts")
      guard error == 0 else { throw Failure("/etc/hosts", error) }
    }
  }

  /// More names, once there have been some: they are written to the file that stands in the place of `/etc/hosts`.
  func addHosts(_ text: String) throws {
    try run {
      let file = open("/etc/hosts", O_WRONLY | O_APPEND | O_CLOEXEC)
      defer { close(file) }
      var status = stat()
      // A file without a name: the machine's own has one.
      guard fstat(file, &status) == 0, status.st_nlink == 0, write(file, text, text.utf8.count) == text.utf8.count
      else {
        throw Failure("/etc/hosts", errno)
      }
    }
  }

  /// Writes to a file below /proc/sys/net, which shows the network of who opens it.
  func set(_ name: String, to value: String) throws {
    try run {
      let file = open("/proc/sys/net/\(name)", O_WRONLY | O_CLOEXEC)
      defer { close(file) }
      guard write(file, value, value.utf8.count) == value.utf8.count else { throw Failure(name, errno) }
    }
  }

  private static func onThread<T: Sendable, E: Error>(
    _ body: @escaping @Sendable () throws(E) -> T
  ) throws -> Result<T, E> {
    let box = Box<Result<T, E>>()
    let thread = try SystemThread(name: "namespace") {
      do throws(E) {
        box.value = .success(try body())
      } catch {
        box.value = .failure(error)
      }
    }
    thread.join()
    return try #require(box.value)
  }

  /// Written by a thread that is joined before it is read.
  private final class Box<T>: @unchecked Sendable {
    var value: T?
  }
}
