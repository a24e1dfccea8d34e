import TestKit
import Testing

@testable import AFNetworking

@Suite struct OrderedTableTests {
  /// Random scripts, beside an array that is searched.
  @Test(arguments: 0..<10) func model(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var table = OrderedTable<Int, Int>()
    var naive: [(key: Int, value: Int)] = []
    for step in 0..<2000 {
      let key = Int.random(in: 0..<30, using: &random)
      let old = naive.first { $0.key == key }?.value
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        #expect(table.append(key, step) == old)
        naive.removeAll { $0.key == key }
        naive.append((key, step))
      case 1:
        #expect(table.prepend(key, step) == old)
        naive.removeAll { $0.key == key }
        naive.insert((key, step), at: 0)
      case 2:
        #expect(table.moveToBack(key) == old)
        naive.removeAll { $0.key == key }
        if let old { naive.append((key, old)) }
      case 3:
        #expect(table.remove(key) == old)
        naive.removeAll { $0.key == key }
      case 4:
        let first = table.popFirst()
        #expect(first?.key == naive.first?.key && first?.value == naive.first?.value)
        if !naive.isEmpty { naive.removeFirst() }
      default: #expect(table[key] == old && table.first?.key == naive.first?.key)
      }
      #expect(table.values == naive.map(\.value) && table.count == naive.count)
    }
  }
}
