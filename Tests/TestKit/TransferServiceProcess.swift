import Foundation
import Glibc

/// The transfer services that run on this machine.
public enum TransferServiceProcess {
  /// Returns the process of the service that was started with an `XDG_RUNTIME_DIR`, or `nil` if there is none.
  public static func find(runtimeDirectory: String) -> pid_t? {
    all(runtimeDirectory: runtimeDirectory).first { process in
      let words = FileManager.default.contents(atPath: "/proc/\(process)/cmdline")?.split(separator: 0) ?? []
      return words.count == 3 && words[1] == Data("transfers".utf8)
    }
  }

  /// Returns the processes that were started with an `XDG_RUNTIME_DIR`: services, and programs.
  public static func all(runtimeDirectory: String) -> [pid_t] {
    let variable = Data("XDG_RUNTIME_DIR=\(runtimeDirectory)\0".utf8)
    return ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }.filter {
      FileManager.default.contents(atPath: "/proc/\($0)/environ")?.range(of: variable) != nil
    }
  }
}
