/// The interface between `ServedSessionMachine` and its shell.
extension ServedSessionMachine {
  /// One use of the session: by the connection of a program, by a command of the user, or by the start of the service.
  package typealias VisitID = Int
  package typealias FlushID = Int

  /// What a visit is for.
  package enum Wish: Hashable, Sendable {
    /// The visitor is the session's program, with its settings and launch command.
    case attach(TransferSession)
    /// A command of the user needs a runner.
    case open
    /// An earlier service has left the session. Events that no program has taken launch their program once more: the
    /// earlier service may have been killed before it did so, or the program before it took them.
    case restore
  }

  /// What a visit waits for, for a limited time.
  package enum Wait: Hashable, Sendable {
    /// The end of the connection of a program that has gone.
    case program
    /// An earlier runner, which releases the session.
    case runner
  }

  /// What a visit is to do next. A visit waits until it has a word.
  package enum Word: Hashable, Sendable {
    case admitted
    /// Report `waitedTooLong` if there is no other word in time.
    case wait(Wait)
    /// Make a runner, and report `made` or `notMade`.
    case make(TransferSession)
    case refused(TransferLinkError)
    /// The service ends. Because it gets no answer, the program starts a new service.
    case over
  }

  package enum Action: Hashable, Sendable {
    case say(VisitID, Word)
    /// Report with `probed` whether the attached program has gone, although the end of its connection has not been read.
    case probe(VisitID)
    /// Write the session's file.
    case store(TransferSession)

    /// Send the program the tasks, before all notices.
    case welcome(VisitID, [TransferRecord])
    case notify(VisitID, TransferNotice)
    /// End the connection of the program.
    case dismiss(VisitID)
    case launch(TransferSession)

    /// Take the notices of the runner, which is the one with this generation.
    case start(generation: Int)
    case pass(TransferCommand)
    /// Report with `flushed` that the runner has carried out all commands so far.
    case flush(FlushID)
    /// Make the runner release the session, and report `closed`.
    case close

    case complete(FlushID, isConfirmed: Bool)
    case log(String)
    /// Nothing uses the session.
    case rest
    /// The session is over: its runner has released it, or was never created.
    case finish
  }

  package typealias Actions = [Action]
}

extension TransferQuestion {
  /// The answer of a program without the delegate method.
  package var byDefault: TransferAnswer {
    switch self {
    case .beginDelayed: .continueLoading
    case .challenge, .trust, .clientCertificate: .challenge(disposition: .performDefaultHandling, credential: nil)
    }
  }
}
