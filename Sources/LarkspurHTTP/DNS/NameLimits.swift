/// How long the answers for names are cached, and how many look-ups may be in progress. Every limit is inclusive.
public struct NameLimits: Hashable, Sendable {
  /// How long addresses are cached. The system's resolver does not report their time to live. Half a minute saves most
  /// look-ups, and a host that moves is found again before its users stop trying.
  public var foundLifetime = Duration.seconds(30)

  /// How long the answer that a name does not exist is cached: long enough for a burst of requests, and short
  /// enough that a new name is soon found. Other failures are not cached at all.
  public var noSuchNameLifetime = Duration.seconds(2)

  /// Maximum number of look-ups that run at once; a value below 1 counts as 1. With the system's resolver, each look-up
  /// holds a thread.
  public var lookUpsMax = 4

  /// Maximum number of abandoned look-ups that do not count against `lookUpsMax`. A look-up is abandoned when no caller
  /// waits for it any more and its source cannot cancel it. If abandoned look-ups counted, a few names whose servers do
  /// not answer would keep all other names from being looked up; without a limit, each of them would hold a thread.
  public var abandonedLookUpsMax = 28

  /// Maximum number of names in the queue for a look-up. A resolver that hangs would otherwise make the queue grow with
  /// every request.
  public var queuedNamesMax = 1000

  /// Maximum number of waiting callers, all names together. Callers that wait for one name share a look-up, but each of
  /// them takes memory.
  public var waitersMax = 10_000

  /// Maximum number of cached names. A crawler, or a page full of made-up names, would otherwise fill the memory.
  public var entriesMax = 1000

  public init() {}
}
