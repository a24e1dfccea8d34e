import Foundation
import LarkspurIO

/// The state of the machine on which the start of discretionary transfers depends. `TransferPace` has the rule for their
/// rate.
///
/// Apple leaves the choice of the time to the system. Here a discretionary task begins while the machine is quiet: its
/// load is below one process for each two processors, no battery supplies it, and its connection is not metered. What
/// cannot be read counts as quiet.
struct TransferConditions: Hashable, Sendable {
  /// The load of the last minute for each processor.
  var loadPerProcessor = 0.0
  var isOnBattery = false
  var isMetered = false

  static let loadMax = 0.5
  /// The time between two looks at the machine, in seconds.
  static let secondsBetween = 60.0

  var isQuiet: Bool { loadPerProcessor < Self.loadMax && !isOnBattery && !isMetered }

  /// Reads the state. Blocks for the time that NetworkManager needs to answer.
  ///
  /// - Parameter root: The directory that holds `proc` and `sys`.
  static func current(root: String = "/", isMetered: () -> Bool = NetworkManagerWord.isMetered) -> Self {
    var conditions = Self()
    if let text = try? String(contentsOfFile: root + "proc/loadavg", encoding: .utf8),
      let load = text.split(separator: " ").first.flatMap({ Double($0) })
    {
      conditions.loadPerProcessor = load / Double(max(ProcessInfo.processInfo.activeProcessorCount, 1))
    }
    conditions.isOnBattery = isOnBattery(root + "sys/class/power_supply")
    conditions.isMetered = isMetered()
    return conditions
  }

  /// Whether a battery is being discharged, and no other supply is connected.
  private static func isOnBattery(_ folder: String) -> Bool {
    func text(_ supply: String, _ name: String) -> String? {
      (try? String(contentsOfFile: "\(folder)/\(supply)/\(name)", encoding: .utf8))?
        .trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let supplies = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    // Batteries of mice and keyboards have the scope "Device".
    let own = supplies.filter { text($0, "scope") != "Device" }
    if own.contains(where: { text($0, "type") != "Battery" && text($0, "online") == "1" }) { return false }
    return own.contains { text($0, "type") == "Battery" && text($0, "status") == "Discharging" }
  }
}

/// What NetworkManager says of the machine's connection.
enum NetworkManagerWord {
  /// Whether the connection is metered, certainly or probably (`NMMetered` 1 and 3). `false` if NetworkManager does not
  /// run, or there is no `busctl` to ask it with.
  static func isMetered() -> Bool {
    let program = "/usr/bin/busctl"
    guard FileManager.default.isExecutableFile(atPath: program) else { return false }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    // Without `--auto-start=no` the question would start a NetworkManager that the user has not started.
    process.arguments = [
      "--system", "--auto-start=no", "--timeout=2", "get-property", "org.freedesktop.NetworkManager",
      "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "Metered",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return isMetered(text)
  }

  /// Reads the output of `busctl`, for example `u 4`.
  static func isMetered(_ text: String) -> Bool {
    let words = text.split(whereSeparator: \.isWhitespace)
    return words.count == 2 && words[0] == "u" && (words[1] == "1" || words[1] == "3")
  }
}
