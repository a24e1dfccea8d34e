// Measures the response parser alone: nanoseconds and allocations per response, and bytes per second.
//
// Heads: a 373-byte head of eleven fields, a 400-byte head of ten, and a 1.5 KB head of thirty.

import CAllocations
import Glibc
import LarkspurBytes
import LarkspurHTTP

/// Field names as servers and content networks send them.
let names = [
  "Server", "Date", "Content-Type", "ETag", "Cache-Control", "Vary", "X-Request-Id", "Accept-Ranges", "Last-Modified",
  "Expires", "Age", "Via", "Content-Encoding", "Strict-Transport-Security", "X-Content-Type-Options",
  "X-Frame-Options", "X-XSS-Protection", "Referrer-Policy", "Permissions-Policy", "Access-Control-Allow-Origin",
  "Set-Cookie", "Link", "P3P", "CF-RAY", "X-Cache", "X-Served-By", "X-Timer", "Alt-Svc",
]

/// Returns a head of exactly this many fields and about this many bytes, distributed evenly over the fields.
func head(fields: Int, bytes: Int) -> [UInt8] {
  var text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n"
  let left = fields - 2
  let budget = bytes - text.utf8.count - 2
  for index in 0..<left {
    let name = names[index % names.count]
    let share = budget * (index + 1) / left - budget * index / left
    let value = String(repeating: "text/html; charset=utf-8, ", count: share / 26 + 1)
    text += "\(name): " + value.prefix(max(share - name.utf8.count - 4, 1)) + "\r\n"
  }
  return Array((text + "\r\n").utf8)
}

/// Parses the same response `rounds` times, in seven runs, and prints the best run.
func measure(_ name: String, _ input: [UInt8], rounds: Int) {
  var parser = ResponseParser()
  func parse() {
    var consumed = 0
    guard parser.start(RequestContext()) else { fail("the parser is busy") }
    do throws(ResponseError) {
      while true {
        if case .end = try parser.next(in: input.span, consumed: &consumed) { return }
      }
    } catch {
      fail("\(error)")
    }
  }
  for _ in 0..<rounds / 10 { parse() }
  var best = Double.infinity
  let allocations = larkspur_allocations()
  for _ in 0..<7 {
    let start = ContinuousClock.now
    for _ in 0..<rounds { parse() }
    best = min(best, (ContinuousClock.now - start) / .nanoseconds(1) / Double(rounds))
  }
  let perResponse = Double(larkspur_allocations() - allocations) / Double(7 * rounds)
  let figures = "\(Int(best.rounded())) ns, \(rounded(Double(input.count) / best)) GB/s"
  print("\(name), \(input.count) bytes: \(figures), \(perResponse) allocations")
}

func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

func fail(_ reason: String) -> Never {
  print("failed: \(reason)")
  exit(1)
}

// `larkspur-micro ROUNDS`: a small number of rounds serves as a check, or for a profiler.
let rounds = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) : 1_000_000
guard let rounds, rounds > 0 else { fail("usage: larkspur-micro [ROUNDS]") }
measure("eleven fields", head(fields: 11, bytes: 373), rounds: rounds)
measure("ten fields", head(fields: 10, bytes: 400), rounds: rounds)
measure("thirty fields", head(fields: 30, bytes: 1501), rounds: rounds)
