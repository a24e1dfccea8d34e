import CNamespaces
import Foundation
import Glibc
import LarkspurIO
import Testing

/// A machine as far as the network is concerned: interfaces, addresses, routes, and the names in `/etc/hosts`.
/// Disappears with its last reference.
final class Namespace: Sendable {
  private let network: Int32
  private let mounts: Int32

  private struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ message: String, _ error: Int32) { description = "\(message): \(Errno(rawValue: error))" }
  }

  /// Cancels the test with a message where namespaces are not permitted.
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

  /// Cancels the test, in CI, too: where namespaces are not permitted, no package could be installed to permit them.
  private static func cancelTest(_ error: Failure) throws {
    FileHandle.standardError.write(Data("skipped: network namespaces: \(error)\n".utf8))
    try Test.cancel("network namespaces: \(error)")
  }

  private static let ip = "/usr/sbin/ip"

  /// Runs `body` in the namespace, on a thread of its own. Sockets, threads and processes that `body` makes are in the
  /// namespace, too.
  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) throws -> T {
    try Self.onThread { [self] () throws(Failure) in
      let error = larkspur_enter_namespaces(network, mounts)
      guard error == 0 else { throw Failure("the namespace cannot be entered", error) }
      return Result { try body() }
    }.get().get()
  }

  /// Runs `ip` once for each line, with the line's words as arguments.
  func ip(_ lines: String...) throws {
    try run { for line in lines { try ServerProcess.run(Self.ip, line.split(separator: " ").map(String.init)) } }
  }

  /// Connects two namespaces by a virtual cable, whose ends have its name.
  func connect(to other: Namespace, by cable: String = "cable") throws {
    try ip("link add \(cable) type veth peer name \(cable) netns /proc/\(getpid())/fd/\(other.network)")
  }

  /// Sets the names in the namespace, in the format of `/etc/hosts`.
  func setHosts(_ text: String) throws { try setFile("/etc/hosts", to: text) }

  /// Gives a file of the machine another text in the namespace.
  func setFile(_ place: String, to text: String) throws {
    try run {
      // The mounted file stays after its name is removed.
      let file = FileManager.default.temporaryDirectory.appending(path: "larkspur-file-\(UUID().uuidString)")
      try text.write(to: file, atomically: false, encoding: .utf8)
      defer { try? FileManager.default.removeItem(at: file) }
      let error = larkspur_mount_file(file.path, place)
      guard error == 0 else { throw Failure(place, error) }
    }
  }

  /// Appends names to the file that is mounted over `/etc/hosts`, after `setHosts`.
  func addHosts(_ text: String) throws {
    try run {
      let file = open("/etc/hosts", O_WRONLY | O_APPEND | O_CLOEXEC)
      defer { close(file) }
      var status = stat()
      // The mounted file has no name; the machine's own file has one.
      guard fstat(file, &status) == 0, status.st_nlink == 0, write(file, text, text.utf8.count) == text.utf8.count
      else {
        throw Failure("/etc/hosts", errno)
      }
    }
  }

  /// Returns a number that the kernel counts for multipath TCP in the namespace, or `nil` if it has no such number.
  func multipathCount(_ name: String) throws -> Int? {
    let text = try run { try String(contentsOfFile: "/proc/thread-self/net/netstat", encoding: .utf8) }
    let lines = text.split(separator: "\n").filter { $0.hasPrefix("MPTcpExt:") }.map { $0.split(separator: " ") }
    guard lines.count == 2, let index = lines[0].firstIndex(where: { $0 == name }), index < lines[1].count else {
      return nil
    }
    return Int(lines[1][index])
  }

  /// Mounts a disk in memory of so many pages over a directory, or changes the size of the one there. One page has room
  /// for the content of a small file.
  func mountDisk(at path: String, pages: Int, again: Bool = false) throws {
    try run {
      let error = larkspur_mount_memory(path, "nr_blocks=\(pages)", again ? 1 : 0)
      guard error == 0 else { throw Failure(path, error) }
    }
  }

  /// Writes to a file below /proc/sys/net, which shows the network of the thread that opens the file.
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

  /// A value that one thread writes; read after the thread has been joined.
  private final class Box<T>: @unchecked Sendable {
    var value: T?
  }
}
