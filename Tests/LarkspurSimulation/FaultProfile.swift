/// The fault profile of a world: its network, its kernel and its servers.
struct FaultProfile {
  /// Nothing goes wrong: every request has to be answered.
  let isCalm: Bool
  /// Latency of a segment in one direction, in nanoseconds.
  var latency: ClosedRange<UInt64>
  var segmentBytes: ClosedRange<Int>
  /// Maximum number of a socket's bytes that are in transit or not read by the server.
  var sendBufferBytes: Int
  /// Maximum number of bytes that are in transit to a socket or not read by the client.
  var receiveWindowBytes: Int
  /// Duration of a system call, in nanoseconds.
  var callTime: UInt64
  /// Maximum delay with which the loop's thread wakes up, in nanoseconds.
  var lateness: UInt64 = 0
  var eventsPerWaitMax: Int
  var descriptorsMax = Int.max

  // Probabilities in percent: per lookup, call, connect, connection, connection, answer.
  var nameFaults = 0
  var kernelFaults = 0
  var connectFaults = 0
  /// The network silently drops a connection.
  var cuts = 0
  /// A server closes an idle connection, or sends something on it.
  var idleFaults = 0
  var answerFaults = 0
  /// An answer has a status of failure, perhaps with `Retry-After`. Only in worlds of a client that retries.
  var statusFaults = 0

  init(_ random: inout SeededRandom, users: Scenario.Users) {
    if users == .retryingClient { statusFaults = random.pick([0, 20, 50, 90]) }
    isCalm = random.chance(1, of: 5)
    latency = random.pick([
      microseconds(10)...microseconds(50), microseconds(500)...milliseconds(3), milliseconds(20)...milliseconds(80),
      0...milliseconds(400),
    ])
    segmentBytes = random.pick([1...40, 1...1_500, 500...1_500, 1_000...20_000])
    sendBufferBytes = random.pick([200, 5_000, 100_000])
    receiveWindowBytes = random.pick([300, 10_000, 300_000])
    callTime = random.pick([0, 1_000, 20_000])
    eventsPerWaitMax = random.pick([1, 3, 128])
    guard !isCalm else { return }
    lateness = random.pick([0, milliseconds(1), milliseconds(300), seconds(100)])
    if random.chance(1, of: 10) { descriptorsMax = random.number(1...6) }
    if random.chance(1, of: 4) { kernelFaults = random.number(1...5) }
    if random.chance(1, of: 4) { nameFaults = random.number(5...60) }
    if random.chance(1, of: 3) { connectFaults = random.number(5...60) }
    if random.chance(1, of: 4) { cuts = random.number(5...50) }
    if random.chance(1, of: 2) { idleFaults = random.number(10...90) }
    if random.chance(2, of: 3) { answerFaults = random.number(5...60) }
  }
}
