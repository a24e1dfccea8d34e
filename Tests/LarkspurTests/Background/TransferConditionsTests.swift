import Foundation
import Testing

@testable import Larkspur

@Suite struct TransferConditionsTests {
  /// Writes files below a directory of its own, and reads the state from them.
  private func conditions(_ files: [String: String]) throws -> TransferConditions {
    let root = FileManager.default.temporaryDirectory.appending(path: "larkspur-conditions-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: root) }
    for (path, text) in files {
      let url = root.appending(path: path)
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: url)
    }
    return TransferConditions.current(root: root.path + "/", isMetered: { false })
  }

  @Test func whatCannotBeReadIsQuiet() throws {
    #expect(try conditions([:]).isQuiet)
    #expect(try conditions(["proc/loadavg": "none", "sys/class/power_supply/BAT0/type": "Battery\n"]).isQuiet)
  }

  @Test func theLoadCountsForEachProcessor() throws {
    let busy = Double(ProcessInfo.processInfo.activeProcessorCount) * 0.75
    let conditions = try conditions(["proc/loadavg": "\(busy) 0.00 0.00 1/100 4711\n"])
    #expect(conditions.loadPerProcessor == 0.75 && !conditions.isQuiet)
  }

  @Test func batteriesCountUnlessTheyAreCharged() throws {
    let battery = "sys/class/power_supply/BAT0"
    let discharging = ["\(battery)/type": "Battery\n", "\(battery)/status": "Discharging\n"]
    #expect(try conditions(discharging).isOnBattery)
    let supply = ["sys/class/power_supply/AC/type": "Mains\n", "sys/class/power_supply/AC/online": "1\n"]
    #expect(try !conditions(discharging.merging(supply) { $1 }).isOnBattery)
    #expect(try !conditions(discharging.merging(["\(battery)/status": "Charging\n"]) { $1 }).isOnBattery)
    // The battery of a mouse.
    #expect(try !conditions(discharging.merging(["\(battery)/scope": "Device\n"]) { $1 }).isOnBattery)
  }

  @Test func networkManagersWord() {
    for (text, isMetered) in [
      ("u 0\n", false), ("u 1\n", true), ("u 2\n", false), ("u 3\n", true), ("u 4\n", false), ("", false),
      ("s 1", false), ("u", false),
    ] {
      #expect(NetworkManagerWord.isMetered(text) == isMetered, "\(text)")
    }
  }
}
