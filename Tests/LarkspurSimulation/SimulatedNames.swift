import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// A name server that answers at once, after the network's latency, after up to 100 s, or with a failure.
final class SimulatedNames: NameSource, @unchecked Sendable {
  struct Name {
    let text: String
    let addresses: [SocketAddress]
  }

  private let names: [Name]
  private let kernel: SimulatedKernel
  private unowned let loop: ClientLoop
  private var random: SeededRandom

  init(_ names: [Name], on kernel: SimulatedKernel, _ loop: ClientLoop) {
    self.names = names
    self.kernel = kernel
    self.loop = loop
    random = kernel.random.fork()
  }

  /// Draws the names of a world. Some are IP addresses, which need no lookup.
  static func draw(_ random: inout SeededRandom) -> [Name] {
    let most = random.pick([1, 1, 3])
    return (0..<random.number(1...4)).map { index in
      let first = SocketAddress.ipv4(0xc000_0200 + UInt32(index * 4), port: 80)
      if most == 1, random.chance(1, of: 2) { return Name(text: "192.0.2.\(index * 4)", addresses: [first]) }
      let others = (1..<random.number(1...most)).map { other in
        random.chance(1, of: 2)
          ? SocketAddress.ipv4(0xc000_0200 + UInt32(index * 4 + other), port: 80)
          : .ipv6(high: 0x2001_0db8_0000_0001, low: UInt64(index * 4 + other), scope: 0, port: 80)
      }
      return Name(text: "host\(index).example", addresses: [first] + others)
    }
  }

  func start(_ question: NameQuestion) {
    kernel.note("look up", Int(question.number))
    let isFaulty = random.chance(kernel.faults.nameFaults, of: 100)
    let delay = random.pick([0, random.time(kernel.faults.latency), isFaulty ? seconds(random.time(1...100)) : 0])
    let answer: NameAnswer<[SocketAddress]> =
      if isFaulty, random.chance(2, of: 3) {
        random.chance(1, of: 2) ? .failed(reason: "no answer") : .noSuchName(reason: "unknown")
      } else {
        .found(names.first { $0.text == question.name.text }?.addresses ?? [])
      }
    guard delay > 0 || random.chance(1, of: 2) else { return question.answer(answer) }
    kernel.after(delay) { [unowned self] in loop.post { question.answer(answer) } }
  }
}
