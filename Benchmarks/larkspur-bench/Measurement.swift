import BenchmarkUsage

/// The clocks and the memory, read just before and just after the measured requests.
struct Measurement {
  private let arguments: Arguments
  private let residentBytes: Int
  private let cpuMicroseconds: Int
  private let instant: ContinuousClock.Instant

  init(of arguments: Arguments) {
    self.arguments = arguments
    // The first reading pages in its own code: half a megabyte that belongs to no connection.
    if arguments.workload.lifetime == .idle { _ = ProcessUsage.residentBytes }
    residentBytes = arguments.workload.lifetime == .idle ? ProcessUsage.residentBytes : 0
    cpuMicroseconds = ProcessUsage.cpuMicroseconds
    instant = ContinuousClock.now
  }

  /// Prints the result. All requests have to be answered, and in the workloads of idle connections all connections
  /// open.
  func finish() {
    let cpu = ProcessUsage.cpuMicroseconds - cpuMicroseconds
    let wall = Int((ContinuousClock.now - instant) / .microseconds(1))
    let requests = arguments.requests
    var line =
      "{\"requests\":\(requests),\"cpu_us\":\(cpu),\"wall_us\":\(wall),"
      + "\"bytes\":\(requests * arguments.workload.bodyBytes),\"peak_rss_kib\":\(ProcessUsage.peakRSSKiB)"
    if arguments.workload.lifetime == .idle {
      line += ",\"idle_bytes_per_connection\":\(max(0, ProcessUsage.residentBytes - residentBytes) / requests)"
    }
    print(line + "}")
  }
}
