/// A setting that Darwin lacks: Darwin starts the application that created the session.
extension URLSessionConfiguration {
  /// The program, by path or as a name in `PATH`, and its arguments, that the transfer service starts when all tasks of a
  /// background session have ended and no program has taken the events, and at each start of the service while that is so.
  /// The environment variable `LARKSPUR_BACKGROUND_SESSION` has the identifier of the session then.
  ///
  /// Empty by default: nothing is started, and the next start of the program delivers the events. See
  /// <doc:BackgroundTransfers>.
  public var launchCommand: [String] {
    get { storage.launchCommand }
    set { storage.launchCommand = newValue }
  }
}
