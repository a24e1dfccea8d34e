import CLarkspurLinux

package enum ProcessorCount {
  /// How many processors the process may run on: fewer than the machine has where it is confined (`taskset`, containers).
  package static var available: Int { Int(larkspur_processor_count()) }
}
