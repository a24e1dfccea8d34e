import Glibc
import LarkspurBytes

/// The machine's clocks, for times that outlive a process.
public enum MachineClock {
  /// The time in seconds since 1970. The clock may be wrong, and is set at any time.
  public static var wallSeconds: Double { larkspur_wall_seconds() }

  /// The time since the machine's start in seconds, with the time for which it slept. The clock only goes forward.
  public static var bootSeconds: Double { larkspur_seconds_since_boot() }

  /// A number that distinguishes the machine's start from all others, or `nil` if the kernel has none.
  public static let boot: UInt64? = {
    guard let file = try? OpenFile(reading: "/proc/sys/kernel/random/boot_id"), let text = try? file.read(atMost: 64),
      !text.isEmpty
    else { return nil }
    return Checksum.of(text.span)
  }()
}
