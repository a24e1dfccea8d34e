import Foundation
import Glibc

/// The transfer services that run on this machine.
public enum TransferServiceProcess {
  /// Returns the process of the service that was started with an `XDG_RUNTIME_DIR`, or `nil` if there is none.
  public static func find(runtimeDirectory: String) -> pid_t? {
    let variable = Data("XDG_RUNTIME_DIR=\(runtimeDirectory)\0".utf8)
    for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let process = pid_t(name),
        let words = FileManager.default.contents(atPath: "/proc/\(name)/cmdline")?.split(separator: 0),
        words.count == 3, words[1] == Data("transfers".utf8),
        FileManager.default.contents(atPath: "/proc/\(name)/environ")?.range(of: variable) != nil
      else { continue }
      return process
    }
    return nil
  }
}
