// The response parser by itself: nanoseconds and allocations per response, and bytes per second.
//
// Heads: a 373-byte head of eleven fields, a 400-byte head of ten, and a 1.5 KB head of thirty.

import LarkspurBytes
import LarkspurHTTP

func head(fields: Int, bytes: Int) -> [UInt8] {
  var text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n"
  let names = ["Server", "Date", "Content-Type", "ETag", "Cache-Control", "Vary", "X-Request-Id", "Accept-Ranges"]
  let left = fields - 2
  let budget = bytes - text.utf8.count - 2
  for index in 0..<left {
    let name = index < names.count ? names[index] : "X-Field-Number-\(index)"
    let share = budget * (index + 1) / left - budget * index / left
    let value = max(share - name.utf8.count - 4, 1)
    text +=
      "\(name): " + String(String(repeating: "text/html; charset=utf-8, ", count: value / 26 + 1).prefix(value))
      + "\r\n"
  }
  return Array((text + "\r\n").utf8)
}

func measure(_ name: String, _ input: [UInt8], rounds: Int) {
  var parser = ResponseParser()
  var fields = 0
  func one() {
    let span = input.span
    var consumed = 0
    guard parser.begin(RequestContext()) else { return }
    do {
      while true {
        switch try parser.next(in: span, consumed: &consumed) {
        case .head: fields &+= parser.head.fields.count
        case .end: return
        case .needMore, .interim, .body: continue
        }
      }
    } catch { print("failed: \(error)") }
  }
  for _ in 0..<rounds / 10 { one() }
  var best = Duration.seconds(1_000_000)
  for _ in 0..<7 {
    let start = ContinuousClock.now
    for _ in 0..<rounds { one() }
    best = min(best, ContinuousClock.now - start)
  }
  let nanoseconds =
    Double(best.components.attoseconds) / 1e9 / Double(rounds) + Double(best.components.seconds) * 1e9 / Double(rounds)
  print("\(name): \(input.count) bytes, \(nanoseconds) ns, \(Double(input.count) / nanoseconds) GB/s")
}

// `larkspur-micro ROUNDS` for a profiler: few rounds of the first head alone.
if CommandLine.arguments.count > 1, let rounds = Int(CommandLine.arguments[1]) {
  measure("eleven fields", head(fields: 11, bytes: 373), rounds: rounds)
} else {
  measure("eleven fields", head(fields: 11, bytes: 373), rounds: 1_000_000)
  measure("ten fields", head(fields: 10, bytes: 400), rounds: 1_000_000)
  measure("thirty fields", head(fields: 30, bytes: 1501), rounds: 300_000)
}
