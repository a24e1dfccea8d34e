import Glibc

/// The clocks and the memory, from just before the measured requests to just after them.
struct Measurement {
  private let arguments: Arguments
  private let residentBytes: Int
  private let cpuMicroseconds: Int
  private let instant: ContinuousClock.Instant

  init(of arguments: Arguments) {
    self.arguments = arguments
    // The first look pages in the code that looks: half a megabyte that belongs to no connection.
    if arguments.workload.lifetime == .idle { _ = Self.residentBytes }
    residentBytes = arguments.workload.lifetime == .idle ? Self.residentBytes : 0
    cpuMicroseconds = Self.cpuMicroseconds
    instant = ContinuousClock.now
  }

  /// Prints the result. All requests have to be answered and, if they are what is measured, all connections open.
  func finish() {
    let cpu = Self.cpuMicroseconds - cpuMicroseconds
    let wall = Int((ContinuousClock.now - instant) / .microseconds(1))
    let requests = arguments.requests
    var line =
      "{\"requests\":\(requests),\"cpu_us\":\(cpu),\"wall_us\":\(wall),"
      + "\"bytes\":\(requests * arguments.workload.bodyBytes),\"peak_rss_kib\":\(Self.peakRSSKiB)"
    if arguments.workload.lifetime == .idle {
      line += ",\"idle_bytes_per_connection\":\(max(0, Self.residentBytes - residentBytes) / requests)"
    }
    print(line + "}")
  }

  private static var cpuMicroseconds: Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
  }

  /// `VmHWM` rather than `ru_maxrss`, which survives the exec of whoever started us.
  private static var peakRSSKiB: Int { kib("VmHWM:", in: "/proc/self/status") }

  /// Not `VmRSS`: its counters may lag behind by dozens of pages for each thread.
  private static var residentBytes: Int { kib("Rss:", in: "/proc/self/smaps_rollup") * 1024 }

  private static func kib(_ name: String, in path: String) -> Int {
    guard let file = fopen(path, "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.hasPrefix(name) { return Int(text.filter(\.isNumber)) ?? 0 }
    }
    return 0
  }
}
