import Glibc

/// The resources that this process has used so far.
package enum ProcessUsage {
  /// The processor time of all threads, in the program and in the kernel, in microseconds.
  package static var cpuMicroseconds: Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
  }

  /// The peak of the resident size, from `VmHWM`. `ru_maxrss` survives an exec, so it could be the parent process's.
  package static var peakRSSKiB: Int { kib("VmHWM:", in: "/proc/self/status") }

  /// The resident size. The counters of `VmRSS` may lag behind by dozens of pages for each thread.
  package static var residentBytes: Int { kib("Rss:", in: "/proc/self/smaps_rollup") * 1024 }

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
