@_implementationOnly import CLarkspurLinux

public enum ProcessorCount {
  /// How many processors the process may run on: fewer than the machine has where it is confined (`taskset`, containers).
  public static var available: Int { Int(larkspur_processor_count()) }
}
