import LarkspurBytes
import LarkspurHTTP

/// Checks the SOCKS machine on any bytes that a proxy could send.
///
/// An input begins with four bytes: the request (bit 0: SOCKS4a instead of SOCKS5; bit 1: user and password; bits 2 and
/// 3: the target), and the sizes of the pieces in which the rest arrives, in turn. The rest is the proxy's replies, and
/// behind them the bytes of the tunnel.
package enum SOCKSOracle {
  private struct Outcome: Equatable {
    var said: [[UInt8]] = []
    /// The number of bytes that belong to the proxy's replies.
    var taken = 0
    var isOpen = false
    var error: SOCKSError?
  }

  private struct Breach: Error {
    var what: String
  }

  /// - Returns: The error of the machine, or `nil` if there is none.
  package static func finding(in input: [UInt8]) -> String? {
    guard input.count >= 4 else { return nil }
    let bytes = Array(input[4...])
    do {
      let whole = try read(Cuts.whole(bytes), input[0])
      let cut = try read(Cuts.cycling(bytes, sizes: input[1..<4]), input[0])
      guard cut == whole else { return "whole: \(whole), cut by \(input[1..<4]): \(cut)" }
      switch whole.error {
      case .userTooLong, .passwordTooLong, .userInvalid, .hostTooLong, .hostInvalid, .noIPv4Address: return nil
      default: break
      }
      let opens = naiveTunnelStart(bytes, input[0])
      return opens == (whole.isOpen ? whole.taken : nil) ? nil : "\(whole), naively the tunnel starts at \(opens ?? -1)"
    } catch {
      return error.what
    }
  }

  private static func read(_ pieces: [ArraySlice<UInt8>], _ mode: UInt8) throws(Breach) -> Outcome {
    let isFour = mode & 1 != 0
    let targets: [SOCKSMachine.Target] = [
      .address(.ipv4(0x7f00_0001)), .name("a.example"), .address(.ipv6(high: 1, low: 2)),
      .name(String(repeating: "n", count: 256)),
    ]
    var machine = SOCKSMachine(
      isFour ? .socks4a : .socks5,
      credentials: mode & 2 != 0 ? UserInfo(user: [117], password: [112, 119]) : nil,
      target: targets[Int(mode >> 2 & 3)], port: 443)
    var outcome = Outcome()
    var actions: SOCKSMachine.Actions = []
    machine.start(into: &actions)
    try apply(&actions, to: &outcome)
    for piece in pieces {
      let bytes = Array(piece)
      let taken = machine.received(bytes.span, into: &actions)
      guard 0...bytes.count ~= taken else { throw Breach(what: "\(taken) of \(bytes.count) bytes were taken") }
      outcome.taken += taken
      let wasOver = outcome.isOpen || outcome.error != nil
      if wasOver, taken > 0 || !actions.isEmpty { throw Breach(what: "it goes on behind its end") }
      try apply(&actions, to: &outcome)
      let isOver = outcome.isOpen || outcome.error != nil
      if !isOver, taken < bytes.count { throw Breach(what: "bytes were left, and it waits for more") }
    }
    machine.peerClosed(into: &actions)
    try apply(&actions, to: &outcome)
    guard outcome.isOpen != (outcome.error != nil) else { throw Breach(what: "it has no end: \(outcome)") }
    return outcome
  }

  private static func apply(_ actions: inout SOCKSMachine.Actions, to outcome: inout Outcome) throws(Breach) {
    for action in actions {
      guard !outcome.isOpen, outcome.error == nil else { throw Breach(what: "\(action) behind the end") }
      switch action {
      case .send(let bytes): outcome.said.append(bytes)
      case .establish: outcome.isOpen = true
      case .fail(let error): outcome.error = error
      }
    }
    actions = []
  }

  /// Finds the beginning of the tunnel by a direct reading of RFC 1928 and RFC 1929.
  ///
  /// - Returns: The index, or `nil` if no tunnel is opened.
  private static func naiveTunnelStart(_ bytes: [UInt8], _ mode: UInt8) -> Int? {
    if mode & 1 != 0 { return bytes.count >= 8 && bytes[0] == 0 && bytes[1] == 90 ? 8 : nil }
    var at = 2
    guard bytes.count >= 2, bytes[0] == 5 else { return nil }
    if bytes[1] == 2 {
      guard mode & 2 != 0, bytes.count >= 4, bytes[2] == 1, bytes[3] == 0 else { return nil }
      at = 4
    } else if bytes[1] != 0 {
      return nil
    }
    guard bytes.count >= at + 5, bytes[at] == 5, bytes[at + 1] == 0 else { return nil }
    let lengths: [UInt8: Int] = [1: 10, 4: 22, 3: 7 + Int(bytes[at + 4])]
    guard let length = lengths[bytes[at + 3]], bytes.count >= at + length else { return nil }
    return at + length
  }
}
