/// How long names are remembered, and how much may be under way. Every limit is inclusive.
public struct NameLimits: Hashable, Sendable {
  /// How long addresses are kept. The system's resolver does not tell how long they may be: half a minute saves
  /// most questions, and a host that moves is found again before its users give up.
  public var foundLifetime = Duration.seconds(30)

  /// How long it is remembered that a name does not exist. Long enough for a burst of requests, too short to be in the
  /// way of somebody who has just created it. Other failures are not kept at all.
  public var noSuchNameLifetime = Duration.seconds(2)

  /// Look-ups that run at once. With the system's resolver each of them holds a thread.
  public var lookUpsMax = 4

  /// Look-ups that nobody waits for any more and that their source cannot end: they go on beside the others. A few names whose
  /// servers do not answer would otherwise keep all names from being looked up; and without a limit each would hold a thread.
  public var abandonedLookUpsMax = 28

  /// Names that wait for their turn. A resolver that hangs would otherwise make the queue grow with every request.
  public var queuedNamesMax = 1000

  /// Callers that wait, all names together. Many may wait for one name, which costs one look-up but a record each.
  public var waitersMax = 10_000

  /// Names that are remembered. A crawler, or a page full of made-up names, would otherwise fill the memory.
  public var entriesMax = 1000

  public init() {}
}
