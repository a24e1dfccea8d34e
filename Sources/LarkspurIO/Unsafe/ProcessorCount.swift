import Glibc

public enum ProcessorCount {
  /// The number of processors that the process may run on. With `taskset` and in containers that use cpusets it is less
  /// than the machine's.
  public static var available: Int { Int(larkspur_processor_count()) }
}
